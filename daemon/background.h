/* Background evidence in the service: now and then each device that nobody uses and
 * that has saved some of its budget (daemon/jobs/background.h) gets what its cells need
 * most. What several devices need alike is one job.  Its priority is `background`:
 * whatever else is requested comes before its next run.
 *
 * Commands of the configuration are not measured so: what they cost is their owner's to
 * decide, by a schedule.  Loop thread only. */
#ifndef DAEMON_BACKGROUND_H
#define DAEMON_BACKGROUND_H

#include <stdint.h>

#include "daemon/evidence/catalogue.h"
#include "daemon/jobs/background.h"
#include "daemon/jobs/device.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/scheduler.h"
#include "db/store.h"

struct background;

struct background_hooks {
    void *arg;
    const struct catalogue *(*catalogue)(void *arg); /* NULL: no agent said hello yet */
    int (*devices)(void *arg, const struct device_stack **ret_devices);
    void (*accepted)(void *arg, const struct job *job); /* durable; borrowed */
};

/* Everything but OPTIONS is borrowed for its life; freed after the store was closed. */
struct background *background_new(struct store *store, const struct scheduler *scheduler,
                                  const struct background_hooks *hooks,
                                  const struct background_options *options);
void background_free(struct background *background); /* NULL is fine */

/* From now on. */
void background_configure(struct background *background,
                          const struct background_options *options);

/* To be called about once a second. */
void background_tick(struct background *background, int64_t now_wall_ms,
                     int64_t now_monotonic_ms);

/* {"budget_percent","target_percent","target_days","every_seconds","items":[{"device",
 * "since","share_percent","spent_seconds","saved_seconds","looked_at","cells",
 * "below_target","weakest_bound","oldest_run_at"}]}.  New reference. */
json_t *background_json(const struct background *background);

/* The weakest bound of all devices, 0 where no cell was looked at, and what was spent on
 * all of them since the service started. */
void background_figures(const struct background *background, double *ret_weakest,
                        int64_t *ret_spent_ms);

#endif
