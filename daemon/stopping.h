/* How the service stops, stage by stage: nothing more is started; runs in flight may
 * finish, for a while; what does not is cancelled; the agents end; the store and the
 * replies drain. Pure except for what it calls: its owner gives the time. */
#ifndef DAEMON_STOPPING_H
#define DAEMON_STOPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "daemon/fleet/fleet.h"
#include "daemon/peers/peers.h"
#include "daemon/run/runner.h"
#include "db/store.h"

struct slurm;

enum stopping_stage {
    STOPPING_NOT,        /* serving */
    STOPPING_FINISHING,  /* waits for runs in flight */
    STOPPING_CANCELLING, /* they were told to stop */
    STOPPING_DRAINING,   /* agents and pulls end; waits for the store and the
                            replies */
    STOPPING_DONE
};

struct stopping {
    struct runner *runner; /* these are set by the owner, and borrowed */
    struct fleet *fleet;
    struct slurm *slurm; /* NULL: there is none */
    struct peers *peers;
    struct api *api;
    struct store *store;
    int64_t grace_ms; /* between SIGTERM and SIGKILL of a worker */

    enum stopping_stage stage; /* the rest is private; zero-initialised */
    int64_t deadline_ms;
    bool agents_gone, pulls_gone;
};

/* The first call starts to stop, the second cancels what is running. */
void stopping_request(struct stopping *stopping, int64_t now_monotonic_ms);

/* Moves on as far as it can; to be called often.  True once everything has come to rest.
 */
bool stopping_advance(struct stopping *stopping, int64_t now_monotonic_ms);

#endif
