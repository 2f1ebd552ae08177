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
#include "daemon/fleet/fleet_hooks.h"
#include "daemon/fleet/fleet_policy.h"
#include "daemon/jobs/case.h"
#include "daemon/jobs/device.h"
#include "daemon/jobs/presence.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/link/link_wire.h"
#include "daemon/run/runner.h"
#include "db/store.h"

enum { FLEET_WORDS_SIZE = 320 };

struct fleet_options {
    uv_loop_t *loop;
    const struct config *config;
    struct store *store;
    const struct scheduler *scheduler;
    struct runner *runner;
    bool idle;                /* no host is used: the service only reads */
    void (*hello)(void *arg); /* a host's hello was taken in */
    void *arg;
    struct fleet_engine engine; /* all NULL: none */
};

/* What of a host is seen at a glance; the API and the page have these names. */
enum fleet_state {
    FLEET_STATE_OFFLINE,  /* its agent went away, or could not be started */
    FLEET_STATE_RELEASED, /* it has no agent: there is nothing to do */
    FLEET_STATE_WITHHELD, /* an engine holds it */
    FLEET_STATE_WAITING,  /* for room, or in the queue of its launch command */
    FLEET_STATE_STARTING, /* its launch command runs, and brought no hello yet */
    FLEET_STATE_ENDING,   /* its agent was told to end, and ends its runs */
    FLEET_STATE_ONLINE
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
    char unusable[320]; /* the first stack of `hello` that is not usable, and why; "" */
    int64_t
        silent_ms;    /* online: it has not answered since then, wall clock; 0: it does */
    int64_t noisy_ms; /* online: it says more than is logged since then; 0: it does not */
    int64_t backoff_ms;
    int64_t retry_ms; /* monotonic, as are the four below; 0: never */
    int64_t wanted_ms, started_ms, online_ms, used_ms; /* as in fleet_policy.h */
    bool needed;                                       /* likewise */
    int64_t idle_release_ms;
    int64_t
        hello_ms; /* in which it has to say hello; 0: usual; -1: as long as it takes */
    int entry, at_once;
    bool has_to_wait;          /* for room */
    bool failed;               /* its agent did, and it was not online since */
    bool held, held_when_idle; /* by an engine, */
    char held_cause[256];      /* because of this */
    char note[256];            /* what it waits for while it is started; "" */
    int leaving;               /* agents that it had, and that are ending */
    struct link *lost;      /* its agent ended, and its runs wait for the cause until */
    int64_t explain_ms;     /* then (monotonic); */
    char lost_cause[256];   /* as far as it is known */
    enum fleet_state state; /* as it was last looked at, */
    int64_t state_ms;       /* since then, wall clock; 0: it was not */
    bool released;          /* likewise: what is asked of its devices will be done */
    char shown[FLEET_WORDS_SIZE]; /* its cause, likewise */
    json_t *node; /* what its engine says of it; NULL: that was not asked since it heard
                     something */
    struct link_events events; /* its deadline is its own */
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
    struct fleet_standing *standings; /* one a host */
    bool any_needed;                  /* some host is kept where needed */
    bool left; /* a host went away: those that contradicted it are to be heard again */
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
    struct presence *presence; /* NULL: it is made when it is asked for */
    bool presence_waits;       /* what the configuration said then */
    bool closing;
    int open_links;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* What daemon/fleet/fleet_presence.h shows of FLEET is other than before. */
static inline void fleet_changed(struct fleet *fleet)
{
    presence_unref(fleet->presence);
    fleet->presence = NULL;
}

#endif
