/* The daemon's configuration: defaults, then one JSON file (--config), then options.
 * Commands and library paths come from here only, never over HTTP. */
#ifndef DAEMON_CONFIG_CONFIG_H
#define DAEMON_CONFIG_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/webhooks/address.h"
#include "daemon/webhooks/webhook.h"

struct config {
    char *address; /* numeric address to listen on */
    int port;
    char *data;  /* folder of the database; created if it is missing */
    bool survey; /* start a survey on a new database */
    struct config_background {
        double budget_percent; /* of each device's time; 0: no background evidence */
        double target_percent; /* a bound that is lower needs no more runs */
        int target_days;       /* nothing should be older; 0: as old as it gets */
        int every_seconds;     /* between two looks at what is needed */
    } background;
    struct config_screening {
        int returned_days; /* a device that was away for longer is screened; 0: none is */
    } screening;
    struct config_slurm {
        int every_seconds; /* between two looks at its nodes and jobs */
    } slurm;
    bool foreign_waits;    /* no run on a device that others use; else it is marked */
    int stale_after_hours; /* a reproducible cell is stale after this; 0: never */
    int connection_limit;
    int open_items_limit;   /* JOB_ITEMS_MAX or more: so any job fits when none is open */
    int backup_every_hours; /* beside the database, after it was found whole; 0: never */
    bool accept_loss;       /* fsck --accept-loss */
    char *read_only;        /* serve --read-only FILE; NULL: the database is served */
    int grace_ms;           /* between SIGTERM and SIGKILL of a worker */
    int retention_days;     /* alike runs that are older are folded; 0: never */
    int retention_runs;     /* of each cell, the newest, that never are */
    bool fsck_full;         /* of the command line: trust nothing that was verified */
    json_t *stacks;   /* array of {"name","worker"?,"library_path"?,"env"?,"threads"?} */
    json_t *profiles; /* array of paths of further profile tables */
    json_t *gpu_reports;      /* array of paths of further reports of `make gpu-check` */
    json_t *hosts;            /* one each, for hosts_settings
                                 (daemon/config/hosts.h); empty: this host */
    json_t *peers;            /* array of {"name","launch":[argv],"every_seconds"?}
                                 (daemon/config/peers.h) */
    json_t *workloads;        /* array of complete ones (daemon/config/external.h) */
    struct webhook *webhooks; /* with their secrets */
    int webhook_count;
    bool webhooks_wait;               /* serve --no-webhooks: nothing is sent */
    struct networks webhook_networks; /* to which they may go although they may not */
    char *webhook_ca;                 /* file of further authorities; NULL: none */
};

void config_init(struct config *config); /* the defaults */
void config_release(struct config *config);

/* Reads FILE over what CONFIG has.  ERR_INVALID or ERR_IO: the message names the file,
 * the key as JSON pointer, and the reason. */
enum err_code config_read(struct config *config, const char *file, struct err *err);

/* A stack of a configuration; texts and JSON are borrowed from it. */
struct config_stack {
    const char *name;
    const char *worker;       /* NULL: the one that comes with this executable */
    const char *library_path; /* NULL: the system's */
    const json_t *env;        /* object of texts; NULL: none */
    int threads;              /* 0: it says nothing */
    int probe_seconds;        /* in which its worker says what it is; 0: likewise */
};

/* Reads one stack as an array of them has it.  ERR_INVALID: the message begins with WHERE
 * and the member as JSON pointer. */
enum err_code config_read_stack(const json_t *json, const char *where,
                                struct config_stack *ret_stack, struct err *err);

/* Sets address and port from "ADDRESS:PORT", "[ADDRESS]:PORT" or "PORT". */
enum err_code config_set_listen(struct config *config, const char *text, struct err *err);

#endif
