/* Recurring jobs: makes the job of a schedule (daemon/jobs/schedule.h) when it is due.
 *
 * The happy path: a schedule is due, its request is expanded as if it were posted now,
 * and the job is stored in the transaction that says when the schedule is due next, so
 * each time makes one job at most, whenever the service ends.  Where the job has several
 * hosts they begin one after another.
 *
 * What can go wrong: no device is online (it is tried again every ten seconds); the
 * request cannot be expanded any more (the schedule says why, until its next time); its
 * last job is still open (skipped, and counted); the clock was ahead when the next time
 * was counted (it is counted anew).  Times that were missed are made up once.
 *
 * Loop thread only. */
#ifndef DAEMON_RECURRING_H
#define DAEMON_RECURRING_H

#include <stdint.h>

#include "daemon/evidence/catalogue.h"
#include "daemon/jobs/device.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/scheduler.h"
#include "db/store.h"

struct recurring;

struct recurring_hooks {
    void *arg;
    const struct catalogue *(*catalogue)(void *arg); /* NULL: no agent said hello yet */
    int (*devices)(void *arg, const struct device_stack **ret_devices);
    void (*accepted)(void *arg, const struct job *job); /* durable; borrowed */
    void (*released)(void *arg);                        /* held runs may begin */
};

/* Everything is borrowed for its life; freed after the store was closed.  A job is made
 * only where the open items of all jobs stay within OPEN_ITEMS_LIMIT. */
struct recurring *recurring_new(struct store *store, struct scheduler *scheduler,
                                const struct recurring_hooks *hooks,
                                int64_t open_items_limit);
void recurring_free(struct recurring *recurring); /* NULL is fine */

/* After the open jobs of the database were added to the scheduler: hosts whose turn has
 * not come wait on.  When that is follows from what is stored. */
enum err_code recurring_resume(struct recurring *recurring, int64_t now_wall_ms,
                               int64_t now_monotonic_ms, struct err *err);

/* The schedules in the database changed. */
void recurring_changed(struct recurring *recurring);

/* Makes the jobs that are due, one after another; to be called about once a second. */
void recurring_tick(struct recurring *recurring, int64_t now_wall_ms,
                    int64_t now_monotonic_ms);

#endif
