#include "daemon/recurring.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/expand.h"
#include "daemon/jobs/schedule.h"
#include "db/recurring/schedules.h"

enum { TRY_AGAIN_MS = 10 * 1000 };

/* Items of a job that wait until UNTIL_MS (monotonic). */
struct held {
    char job[ID_SIZE];
    int item;
    int64_t until_ms;
};

/* What is being stored: a job, or that none was made. */
struct firing {
    bool passes, skipped;
    char id[ID_SIZE], name[SCHEDULE_NAME_SIZE];
    int64_t due_ms, next_ms, now_ms;
    char problem[SCHEDULE_PROBLEM_SIZE];
    struct job job;
};

struct recurring {
    struct store *store;
    struct scheduler *scheduler;
    struct recurring_hooks hooks;
    int64_t open_items_limit;
    struct schedule *schedules; /* as they were last read */
    int count;
    struct schedule *fresh; /* as they are being read */
    int fresh_count;
    bool outdated, reading, storing;
    bool unchecked; /* whether each is due as soon as its rule says, at this time */
    int64_t wall_ms, monotonic_ms; /* of the last tick */
    struct firing firing;
    struct retry {
        char id[ID_SIZE];
        int64_t at_ms; /* monotonic */
    } * retries;       /* schedules that are due, and to be tried again */
    int retry_count;
    struct held *held;
    int held_count;
};

struct recurring *recurring_new(struct store *store, struct scheduler *scheduler,
                                const struct recurring_hooks *hooks,
                                int64_t open_items_limit)
{
    struct recurring *r = xcalloc(1, sizeof *r);

    r->store = store;
    r->scheduler = scheduler;
    r->hooks = *hooks;
    r->open_items_limit = open_items_limit;
    r->outdated = true;
    return r;
}

static void free_list(struct schedule *list, int count)
{
    for (int i = 0; i < count; i++) {
        schedule_release(&list[i]);
    }
    free(list);
}

void recurring_free(struct recurring *r)
{
    if (r) {
        free_list(r->schedules, r->count);
        free_list(r->fresh, r->fresh_count);
        job_release(&r->firing.job);
        free(r->retries);
        free(r->held);
        free(r);
    }
}

void recurring_changed(struct recurring *r)
{
    r->outdated = true;
}

/* Reading them */

static void take(void *arg, const struct schedule *schedule)
{
    struct recurring *r = arg;
    struct schedule *copy;

    r->fresh = xgrow(r->fresh, r->fresh_count, sizeof *r->fresh);
    copy = &r->fresh[r->fresh_count++];
    *copy = *schedule;
    copy->request = xstrdup(schedule->request);
}

static enum err_code read_all(struct tx *tx, void *arg, struct err *err)
{
    return schedules_each(tx, "", SCHEDULES_MAX, take, arg, err);
}

static void advance(struct recurring *r);

static bool was_damaged(const struct recurring *r, const char *id)
{
    for (int i = 0; i < r->count; i++) {
        if (strcmp(r->schedules[i].id, id) == 0) {
            return r->schedules[i].damaged;
        }
    }
    return false;
}

/* Once each. */
static void tell_damaged(const struct recurring *r)
{
    for (int i = 0; i < r->fresh_count; i++) {
        const struct schedule *s = &r->fresh[i];

        if (s->damaged && !was_damaged(r, s->id)) {
            log_error("schedule %s: %s", s->name, s->problem);
        }
    }
}

static void were_read(void *arg, const struct err *result)
{
    struct recurring *r = arg;

    r->reading = false;
    r->unchecked = true;
    if (result->code == ERR_OK) {
        tell_damaged(r);
        free_list(r->schedules, r->count);
        r->schedules = r->fresh;
        r->count = r->fresh_count;
    } else {
        log_error("schedules: %s", result->message);
        free_list(r->fresh, r->fresh_count);
        r->outdated = true;
    }
    r->fresh = NULL;
    r->fresh_count = 0;
    if (result->code == ERR_OK) {
        advance(r);
    }
}

static void read_again(struct recurring *r)
{
    struct err err;

    r->outdated = false;
    r->reading = true;
    if (store_read(r->store, read_all, r, were_read, &err) != ERR_OK) {
        r->reading = false;
        r->outdated = true;
    }
}

/* Making a job */

static void try_again(struct recurring *r, const char *id, int64_t monotonic_ms)
{
    struct retry *retry;

    r->retries = xgrow(r->retries, r->retry_count, sizeof *r->retries);
    retry = &r->retries[r->retry_count++];
    copy_text(retry->id, sizeof retry->id, id);
    retry->at_ms = monotonic_ms + TRY_AGAIN_MS;
}

static bool waits(const struct recurring *r, const char *id)
{
    for (int i = 0; i < r->retry_count; i++) {
        if (strcmp(r->retries[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

static void forget_retries(struct recurring *r, int64_t monotonic_ms)
{
    int kept = 0;

    for (int i = 0; i < r->retry_count; i++) {
        if (r->retries[i].at_ms > monotonic_ms) {
            r->retries[kept++] = r->retries[i];
        }
    }
    r->retry_count = kept;
}

static enum err_code store_firing(struct tx *tx, void *arg, struct err *err)
{
    struct recurring *r = arg;
    struct firing *f = &r->firing;

    return f->passes ? schedules_pass(tx, f->id, f->due_ms, f->next_ms, f->skipped,
                                      f->problem, f->now_ms, err)
                     : schedules_fire(tx, f->id, f->due_ms, f->next_ms, &f->job, err);
}

static void firing_stored(void *arg, const struct err *result)
{
    struct recurring *r = arg;
    struct firing *f = &r->firing;

    r->storing = false;
    r->outdated = true;
    if (result->code == ERR_OK && !f->passes) {
        log_info("schedule %s: job %s, %d runs", f->name, f->job.id, f->job.runs_total);
        r->hooks.accepted(r->hooks.arg, &f->job);
    } else if (result->code == ERR_OK) {
        log_warning("schedule %s: no job was made: %s", f->name, f->problem);
    } else if (result->code != ERR_NOT_FOUND) { /* changed meanwhile: it is read again */
        log_error("schedule %s: %s", f->name, result->message);
        try_again(r, f->id, clock_monotonic_ms());
    }
    job_release(&f->job);
    *f = (struct firing){ .passes = false };
    if (result->code == ERR_OK) {
        advance(r); /* many may be due at the same time */
    }
}

static void begin(struct recurring *r, const struct schedule *s, int64_t now_ms)
{
    r->firing = (struct firing){ .due_ms = s->next_ms,
                                 .next_ms = schedule_next(s, now_ms),
                                 .now_ms = now_ms };
    copy_text(r->firing.id, sizeof r->firing.id, s->id);
    copy_text(r->firing.name, sizeof r->firing.name, s->name);
}

static void store(struct recurring *r)
{
    r->storing = true;
    store_write(r->store, store_firing, r, firing_stored);
}

/* No job this time. */
static void pass(struct recurring *r, bool skipped, const char *problem)
{
    r->firing.passes = true;
    r->firing.skipped = skipped;
    copy_text(r->firing.problem, sizeof r->firing.problem, problem);
    store(r);
}

/* No job yet: S stays due, and says why, once. */
static void postpone(struct recurring *r, const struct schedule *s, int64_t monotonic_ms,
                     const char *problem)
{
    try_again(r, s->id, monotonic_ms);
    if (strcmp(s->problem, problem) != 0) {
        r->firing.next_ms = s->next_ms;
        pass(r, false, problem);
    } else {
        r->firing = (struct firing){ .passes = false };
    }
}

static const char *host_of(const struct device_stack *devices, int count, const char *id)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(devices[i].id, id) == 0) {
            return devices[i].host;
        }
    }
    return "";
}

static int count_hosts(const struct device_stack *devices, int count,
                       const struct job *job)
{
    const char *last = NULL;
    int hosts = 0;

    for (int i = 0; i < job->item_count && hosts < 2; i++) {
        const char *host = host_of(devices, count, job->items[i].device);

        hosts += !last || strcmp(host, last) != 0;
        last = host;
    }
    return hosts;
}

/* Items on several hosts begin one after another. */
static void hold(struct recurring *r, const struct schedule *s,
                 const struct device_stack *devices, int count, int64_t monotonic_ms)
{
    struct job *job = &r->firing.job;
    int hosts = count_hosts(devices, count, job);
    int64_t gap = hosts > 1 ? schedule_gap_ms(s, r->firing.now_ms) : 0;

    for (int i = 0; i < job->item_count; i++) {
        const char *host = host_of(devices, count, job->items[i].device);
        int64_t delay = schedule_delay_ms(s, host, hosts, gap);

        if (delay > 0) {
            struct held held = { .item = i, .until_ms = monotonic_ms + delay };

            copy_text(held.job, sizeof held.job, job->id);
            job->items[i].held = true;
            r->held = xgrow(r->held, r->held_count, sizeof *r->held);
            r->held[r->held_count++] = held;
        }
    }
}

/* The same after a restart. */

struct resumed {
    struct schedule_item *items;
    int count;
    struct schedule *schedules;
    int schedule_count;
};

static void take_item(void *arg, const struct schedule_item *item)
{
    struct resumed *resumed = arg;

    resumed->items = xgrow(resumed->items, resumed->count, sizeof *resumed->items);
    resumed->items[resumed->count++] = *item;
}

static void take_schedule(void *arg, const struct schedule *schedule)
{
    struct resumed *resumed = arg;

    resumed->schedules =
        xgrow(resumed->schedules, resumed->schedule_count, sizeof *resumed->schedules);
    resumed->schedules[resumed->schedule_count] = *schedule;
    resumed->schedules[resumed->schedule_count++].request = NULL;
}

static enum err_code read_resumed(struct tx *tx, void *arg, struct err *err)
{
    return schedules_each_open_item(tx, take_item, arg, err) == ERR_OK
               ? schedules_each(tx, "", SCHEDULES_MAX, take_schedule, arg, err)
               : err->code;
}

static const struct schedule *schedule_of(const struct resumed *resumed,
                                          const struct schedule_item *item)
{
    for (int i = 0; i < resumed->schedule_count; i++) {
        if (strcmp(resumed->schedules[i].id, item->schedule) == 0) {
            return &resumed->schedules[i];
        }
    }
    return NULL;
}

/* Items from FIRST up to END are of one job. */
static void hold_again(struct recurring *r, const struct resumed *resumed, int first,
                       int end, int64_t passed_ms, int64_t monotonic_ms)
{
    const struct schedule_item *items = resumed->items;
    const struct schedule *s = schedule_of(resumed, &items[first]);
    int hosts = 1;
    int64_t gap;

    for (int i = first + 1; i < end && hosts < 2; i++) {
        hosts += strcmp(items[i].host, items[first].host) != 0;
    }
    if (!s || hosts < 2) {
        return;
    }
    gap = schedule_gap_ms(s, items[first].created_ms);
    for (int i = first; i < end; i++) {
        int64_t delay = schedule_delay_ms(s, items[i].host, hosts, gap);

        if (delay > passed_ms) {
            struct held held = { .item = items[i].item,
                                 .until_ms = monotonic_ms + delay - passed_ms };

            copy_text(held.job, sizeof held.job, items[i].job);
            scheduler_hold(r->scheduler, held.job, held.item);
            r->held = xgrow(r->held, r->held_count, sizeof *r->held);
            r->held[r->held_count++] = held;
        }
    }
}

enum err_code recurring_resume(struct recurring *r, int64_t now_ms, int64_t monotonic_ms,
                               struct err *err)
{
    struct resumed resumed = { .count = 0 };
    enum err_code code = store_read_sync(r->store, read_resumed, &resumed, err);

    for (int first = 0, end; first < resumed.count && code == ERR_OK; first = end) {
        int64_t passed = now_ms - resumed.items[first].created_ms;

        end = first + 1;
        while (end < resumed.count &&
               strcmp(resumed.items[end].job, resumed.items[first].job) == 0) {
            end++;
        }
        hold_again(r, &resumed, first, end, passed > 0 ? passed : 0, monotonic_ms);
    }
    free(resumed.items);
    free(resumed.schedules);
    return code;
}

static bool expand(struct recurring *r, const struct schedule *s,
                   const struct device_stack *devices, int count, int64_t monotonic_ms)
{
    struct problems problems = { .count = 0 };
    json_t *request = json_loads(s->request, 0, NULL);
    enum err_code code = job_request_expand(request, r->hooks.catalogue(r->hooks.arg),
                                            devices, count, &r->firing.job, &problems);
    const char *detail = problems.count ? problems.items[0].detail : err_name(code);

    if (code == ERR_BUSY) {
        postpone(r, s, monotonic_ms, detail);
    } else if (code != ERR_OK) {
        pass(r, false, detail);
    }
    problems_release(&problems);
    json_decref(request);
    return code == ERR_OK;
}

static bool has_room(struct recurring *r, const struct schedule *s, int64_t monotonic_ms)
{
    if (scheduler_open_items(r->scheduler) + r->firing.job.item_count <=
        r->open_items_limit) {
        return true;
    }
    job_release(&r->firing.job);
    r->firing.job = (struct job){ .state = JOB_QUEUED };
    postpone(r, s, monotonic_ms, "too many items of jobs are open (open_items_limit)");
    return false;
}

static void fire(struct recurring *r, const struct schedule *s, int64_t now_ms,
                 int64_t monotonic_ms)
{
    const struct device_stack *devices;
    int count = r->hooks.devices(r->hooks.arg, &devices);
    struct scheduler_progress ignored;
    char problem[SCHEDULE_PROBLEM_SIZE];

    begin(r, s, now_ms);
    if (s->last_job[0] && scheduler_progress(r->scheduler, s->last_job, &ignored)) {
        snprintf(problem, sizeof problem, "its last job, %s, is still open", s->last_job);
        pass(r, true, problem);
    } else if (expand(r, s, devices, count, monotonic_ms) &&
               has_room(r, s, monotonic_ms)) {
        r->firing.job.created_ms = now_ms;
        id_new(now_ms, r->firing.job.id);
        hold(r, s, devices, count, monotonic_ms);
        store(r);
    }
}

/* The schedule that has been due for the longest time. */
static const struct schedule *find_due(const struct recurring *r, int64_t now_ms)
{
    const struct schedule *due = NULL;

    for (int i = 0; i < r->count; i++) {
        const struct schedule *s = &r->schedules[i];

        if (!s->paused && !s->damaged && s->next_ms <= now_ms && !waits(r, s->id) &&
            (!due || s->next_ms < due->next_ms)) {
            due = s;
        }
    }
    return due;
}

/* A schedule that is due later than its rule says: that was counted from a clock that was
 * ahead. */
static const struct schedule *find_late(const struct recurring *r, int64_t now_ms)
{
    for (int i = 0; i < r->count; i++) {
        const struct schedule *s = &r->schedules[i];
        bool looked_at = s->next_ms > now_ms && !s->paused && !s->damaged;
        int64_t next = looked_at ? schedule_next(s, now_ms) : 0;

        if (next > 0 && s->next_ms > next && !waits(r, s->id)) {
            return s;
        }
    }
    return NULL;
}

static void advance(struct recurring *r)
{
    const struct schedule *found = NULL;

    if (r->storing || r->reading) {
        return;
    }
    if (r->outdated) {
        read_again(r);
        return;
    }
    if (r->unchecked) {
        found = find_late(r, r->wall_ms);
        r->unchecked = found;
    }
    if (found) {
        begin(r, found, r->wall_ms);
        pass(r, false, "the clock was set back: it is due by the time that is now");
        return;
    }
    while (!r->storing && r->hooks.catalogue(r->hooks.arg) &&
           (found = find_due(r, r->wall_ms))) {
        fire(r, found, r->wall_ms, r->monotonic_ms);
    }
}

static void release_held(struct recurring *r, int64_t monotonic_ms)
{
    int kept = 0;

    for (int i = 0; i < r->held_count; i++) {
        if (r->held[i].until_ms > monotonic_ms) {
            r->held[kept++] = r->held[i];
        } else {
            scheduler_release(r->scheduler, r->held[i].job, r->held[i].item, NULL);
        }
    }
    if (kept < r->held_count) {
        r->held_count = kept;
        r->hooks.released(r->hooks.arg);
    }
}

void recurring_tick(struct recurring *r, int64_t now_wall_ms, int64_t now_monotonic_ms)
{
    release_held(r, now_monotonic_ms);
    forget_retries(r, now_monotonic_ms);
    r->unchecked |= now_wall_ms < r->wall_ms;
    r->wall_ms = now_wall_ms;
    r->monotonic_ms = now_monotonic_ms;
    advance(r);
}
