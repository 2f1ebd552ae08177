/* Jobs that localise: after each of their runs, looks at what was stored of it, and
 * either lets the scheduler go on, turns to capturing the place, or ends the job.
 *
 * The happy path of a job: added → a look (on a reader thread:
 * daemon/localise/localise_look.h) → the scheduler may start a run → the run is stored →
 * a look → … → the place is known (stored, then item 1 may run) → … → the end is stored,
 * and the job is forgotten.
 *
 * What can go wrong: a look or a decision cannot be stored or read (tried again on the
 * next tick; the job is ended as failed when that does not help); the job is cancelled
 * meanwhile (forgotten); the service is killed (the next one adds the job again, and
 * looks at the stored traces again).
 *
 * Loop thread only. */
#ifndef DAEMON_LOCALISE_LOCALISE_H
#define DAEMON_LOCALISE_LOCALISE_H

#include "daemon/jobs/scheduler.h"
#include "db/store.h"

struct localiser;

struct localiser_hooks {
    void *arg;
    void (*kick)(void *arg); /* there may be a run to start */
};

/* STORE and SCHEDULER are borrowed for the localiser's life. */
struct localiser *localiser_new(struct store *store, struct scheduler *scheduler,
                                const struct localiser_hooks *hooks);

/* The store must be drained (store_pending 0).  NULL is fine. */
void localiser_free(struct localiser *localiser);

/* The scheduler has this job, which localises.  It is looked at on the next tick. */
void localiser_add(struct localiser *localiser, const char *job);

/* A run of JOB, which may be any, was stored. */
void localiser_run_stored(struct localiser *localiser, const char *job);

/* The cancellation of JOB is stored. */
void localiser_cancel(struct localiser *localiser, const char *job);

/* Looks at what is due: after jobs were added, and once a second. */
void localiser_tick(struct localiser *localiser);

#endif
