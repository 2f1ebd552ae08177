/* When a host's agent is started, and when it is let go.  Pure: facts in, one step for
 * each host out.
 *
 * A host that is kept always is started as soon as it may be.  One that is kept where
 * needed is started for work, until its devices are known, and after a failure; it is
 * let go once it had nothing to do for a while.  Of the hosts of one entry so many run at
 * once as it says: who waits longest comes next.  For those who wait, hosts without work
 * are let go sooner, hosts that had their turn end their runs, and one that does not come
 * up goes to the end.  A host that is held back is not started. */
#ifndef DAEMON_FLEET_FLEET_POLICY_H
#define DAEMON_FLEET_FLEET_POLICY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FLEET_TURN_MS = 15 * 60 * 1000, /* that a host has while others wait for its room */
    FLEET_PAUSE_MS = 5000 /* without work, before it makes room: what follows from what it
                             did may be on its way */
};

enum fleet_stage {
    FLEET_CLOSED,   /* it has no agent */
    FLEET_LEAVING,  /* its agent is ending, and still takes room */
    FLEET_STARTING, /* its launch command runs */
    FLEET_ONLINE
};

enum fleet_step {
    FLEET_STAY,
    FLEET_START,
    FLEET_DRAIN,  /* it gets no more runs */
    FLEET_RELEASE /* its agent is to end now */
};

/* One host.  Times are monotonic; 0: never. */
struct fleet_standing {
    bool needed; /* as struct host_settings has it, as are these */
    int64_t idle_release_ms;
    int entry, at_once;
    enum fleet_stage stage;
    bool held;           /* it is not to be started, */
    bool held_when_idle; /* and is let go after its runs */
    bool known;          /* its devices are */
    bool failed;         /* its last agent: not since it was let go, or came up */
    bool recorded;       /* what it said of itself is durable */
    bool work;           /* waits for its devices */
    bool busy;           /* a run is there */
    int64_t retry_ms;    /* not before */
    int64_t wanted_ms;   /* since when it was to be started */
    int64_t started_ms;  /* when its launch command was */
    int64_t online_ms;   /* since when */
    int64_t used_ms;     /* when it last had a run or work */
    /* What follows. */
    bool wanted;      /* it is to be started */
    bool has_to_wait; /* for room, and for nothing else */
    enum fleet_step step;
};

void fleet_policy(struct fleet_standing *hosts, int count, int64_t now_ms);

#endif
