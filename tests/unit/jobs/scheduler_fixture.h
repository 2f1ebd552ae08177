/* What tests of the scheduler share: jobs in a few words, and runs that end at once. */
#ifndef TESTS_UNIT_JOBS_SCHEDULER_FIXTURE_H
#define TESTS_UNIT_JOBS_SCHEDULER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/mem.h"
#include "daemon/jobs/scheduler.h"

static inline struct job_item item(int seq, const char *workload, const char *variant,
                                   const char *device, int runs)
{
    struct job_item i = { .seq = seq, .runs_wanted = runs };

    copy_text(i.key.workload, sizeof i.key.workload, workload);
    copy_text(i.key.variant, sizeof i.key.variant, variant);
    copy_text(i.device, sizeof i.device, device);
    return i;
}

static inline struct job make_job(const char *id, enum job_priority priority,
                                  struct job_item *items, int count)
{
    struct job j = { .priority = priority, .iterations = 7, .timeout_ms = 1000 };

    copy_text(j.id, sizeof j.id, id);
    j.items = items;
    j.item_count = count;
    return j;
}

/* Picks on DEVICE and finishes at once; returns "job/variant" or "". */
static inline const char *serve_as(struct scheduler *s, const char *device,
                                   enum outcome outcome, int64_t ms)
{
    static char text[128];
    struct scheduler_pick pick;
    char id[ID_SIZE];

    if (!scheduler_next(s, device, &pick)) {
        return "";
    }
    snprintf(text, sizeof text, "%s/%s", pick.job, pick.item->key.variant);
    copy_text(id, sizeof id, pick.job);
    scheduler_finished(s, id, pick.item->seq, outcome, ms, false);
    return text;
}

static inline const char *serve(struct scheduler *s, const char *device)
{
    return serve_as(s, device, OUTCOME_COMPLETED, 10);
}

static inline struct scheduler_progress progress_of(const struct scheduler *s,
                                                    const char *id)
{
    struct scheduler_progress progress;

    assert_true(scheduler_progress(s, id, &progress));
    return progress;
}

#endif
