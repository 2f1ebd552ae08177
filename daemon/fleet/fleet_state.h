/* What the fleet is made of: private to daemon/fleet and its tests. */
#ifndef DAEMON_FLEET_FLEET_STATE_H
#define DAEMON_FLEET_FLEET_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/base/lookup.h"
#include "daemon/config/config.h"
#include "daemon/evidence/catalogue.h"
#include "daemon/jobs/case.h"
#include "daemon/jobs/device.h"
#include "daemon/link/link_wire.h"
#include "daemon/run/runner.h"
#include "db/store.h"

struct fleet_options {
    uv_loop_t *loop;
    const struct config *config;
    struct store *store;
    struct runner *runner;
    bool idle;                /* no host is used: the service only reads */
    void (*hello)(void *arg); /* a host's hello was taken in */
    void *arg;
};

struct fleet_host {
    struct fleet *fleet;
    char *name;
    char **argv;       /* launch command, NULL-terminated */
    struct link *link; /* NULL while waiting for retry_ms */
    bool online;       /* hello was taken in and the link is open */
    bool recorded;     /* a hello of it is durable: its devices are in the database */
    int recording;     /* how many are on their way there */
    json_t *hello;     /* the last one that was taken in; NULL: never */
    json_t *refused;   /* the hello of the open link, while its catalogue contradicts that
                          of a host that is online; NULL: it does not */
    char cause[256];   /* why it is not online; "" */
    char refusal[256]; /* online: why a device is not its own; "" */
    int64_t
        silent_ms;    /* online: it has not answered since then, wall clock; 0: it does */
    int64_t noisy_ms; /* online: it says more than is logged since then; 0: it does not */
    int64_t backoff_ms;
    int64_t retry_ms; /* monotonic */
};

/* Which host has a device (daemon/fleet/fleet_claims.h). */
struct fleet_claim {
    char device[CASE_TITLE_SIZE];
    const struct fleet_host *host;
    bool contested; /* by another host that was online at the same time */
    bool shared;    /* another host said once that it has it */
};

/* Who else uses a device (daemon/fleet/fleet_foreign.h). */
struct fleet_foreign {
    char device[CASE_TITLE_SIZE];
    json_t *processes; /* array of texts; NULL: not known */
    char cause[CASE_TITLE_SIZE];
    int64_t since_ms; /* wall clock: since when it is used, or is not */
};

struct fleet {
    struct fleet_options options;
    struct link_events link_events;
    struct fleet_host *hosts;
    int host_count;
    struct catalogue *catalogue;
    json_t *catalogues; /* array: one of those that stacks have alike, which they share */
    struct device_stack *devices;
    int device_count;
    struct fleet_claim **claims;
    int claim_count;
    struct lookup claim_of; /* a device */
    struct fleet_foreign **foreign;
    int foreign_count;
    struct lookup foreign_of; /* a device */
    char not_ready[512];
    bool closing;
    int open_links;
    void (*closed)(void *arg);
    void *closed_arg;
};

#endif
