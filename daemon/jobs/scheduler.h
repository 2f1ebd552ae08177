/* The scheduler: which run comes next on a device.  Pure state: no clock, no I/O, no uv.
 * The daemon tells it what was accepted, started and finished; it answers what to start.
 *
 * Order: priority first, then the job that was served least recently, so that jobs of one
 * priority share a device run by run.  Within a job the items of one workload, size,
 * dtype, seed and device form a group; groups are finished one after another.  Within a
 * group the variants alternate.  So a workload's control and its ordered variants are
 * compared under the same conditions, and its cells settle together.
 *
 * With each pick it draws whether that run is to be a challenge instead
 * (daemon/jobs/challenge.h): whether it becomes one is decided by whoever knows its cell.
 * A challenge is no answer: the item is picked again after it.
 *
 * The items of a job that localises wait.  Its runs are looked at first; then
 * scheduler_release lets one item be picked once.  Until then no job of lower priority
 * gets the device: looking takes milliseconds.  An item that is held waits for its
 * release, too, but only once, and nobody else waits for it. */
#ifndef DAEMON_JOBS_SCHEDULER_H
#define DAEMON_JOBS_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/jobs/challenge.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/outcome.h"

struct scheduler;

/* What to run.  Borrowed from the scheduler: valid until it is told or asked anything
 * else. */
struct scheduler_pick {
    const char *job;
    const struct job_item *item; /* its number, case, device, stack and options */
    int iterations;
    int64_t timeout_ms;
    struct challenge_offer challenge;
};

struct scheduler_progress {
    int runs_total, runs_done, runs_failed;
    int64_t eta_ms; /* device time left on the slowest device, work of higher priority
                       included; -1: no run has finished yet */
};

struct scheduler *scheduler_new(void);

/* What is drawn from here on follows from SEED. */
void scheduler_seed(struct scheduler *scheduler, uint64_t seed);

void scheduler_free(struct scheduler *scheduler); /* NULL is fine */

/* Takes a copy of JOB and its items, with the counts they already have (a restart). */
void scheduler_add(struct scheduler *scheduler, const struct job *job);

/* The next run for DEVICE, or false.  The item counts as in flight until
 * scheduler_finished.  An item has at most one run in flight. */
bool scheduler_next(struct scheduler *scheduler, const char *device,
                    struct scheduler_pick *ret_pick);

/* The run in flight of ITEM ended after MS of device time.  GIVEN_UP: the item is to have
 * no more runs.  Unknown jobs (cancelled meanwhile) are ignored. */
void scheduler_finished(struct scheduler *scheduler, const char *job, int item,
                        enum outcome outcome, int64_t ms, bool given_up);

/* The run in flight of ITEM was a challenge, and ended, whatever its outcome. */
void scheduler_challenged(struct scheduler *scheduler, const char *job, int item);

/* The run in flight of ITEM was not started after all: it is to be picked again. */
void scheduler_put_back(struct scheduler *scheduler, const char *job, int item);

/* ITEM of a job that localises may have one more run, with OPTIONS (struct job_item;
 * NULL: those it has); an item that was held may have all of its runs. */
void scheduler_release(struct scheduler *scheduler, const char *job, int item,
                       const struct run_options *options);

/* ITEM waits for scheduler_release from now on, as one that was held when it was added.
 */
void scheduler_hold(struct scheduler *scheduler, const char *job, int item);

/* ITEM of a job is to have RUNS_WANTED runs, more than before, also if it was done. */
void scheduler_want(struct scheduler *scheduler, const char *job, int item,
                    int runs_wanted);

/* ITEM is to have no more runs; one that is in flight still finishes. */
void scheduler_give_up(struct scheduler *scheduler, const char *job, int item);

/* Forgets the job; its run in flight may still finish. */
void scheduler_cancel(struct scheduler *scheduler, const char *job);

/* False if the job is not open. */
bool scheduler_progress(const struct scheduler *scheduler, const char *job,
                        struct scheduler_progress *ret_progress);

/* Whether an open job has runs for DEVICE, or one in flight. */
bool scheduler_uses(const struct scheduler *scheduler, const char *device);

/* Calls VISIT for each device for which an open job has runs, or one in flight. */
void scheduler_each_device(const struct scheduler *scheduler,
                           void (*visit)(void *arg, const char *device), void *arg);

int scheduler_open_jobs(const struct scheduler *scheduler);

/* Items of the open jobs together, also those that are done. */
int64_t scheduler_open_items(const struct scheduler *scheduler);

#endif
