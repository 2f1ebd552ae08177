#include "daemon/background.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/config/external.h"
#include "daemon/jobs/expand.h"
#include "db/jobs.h"
#include "db/recurring/unattended.h"

enum { PPM_OF_PERCENT = 10000, DAY_MS = 24 * 3600 * 1000 };

struct device_time {
    char device[CASE_TITLE_SIZE];
    struct background_budget budget;
    int64_t since_ms;  /* wall clock: its time counts from then on */
    char job[ID_SIZE]; /* the last one it was in; "": none, or its cost was settled */
    int64_t cost_ms;   /* what that was expected to take, and was taken from the budget */
    int64_t looked_ms; /* wall clock, when its cells were last looked at; 0: never */
    struct background_standing standing; /* then, with all of its stacks */
};

/* A device with a stack, in a look; what a reader needs is a copy. */
struct look {
    int device; /* of background.devices */
    char id[CASE_TITLE_SIZE], stack[CASE_NAME_SIZE];
    int64_t saved_ms;
    char job[ID_SIZE]; /* whose cost is to be settled; "": none */
    int64_t cost_ms;   /* as in struct device_time */
    int64_t took_ms;   /* what it really took */
    struct background_standing standing;
    bool picked;
    struct background_pick pick;
};

struct background {
    struct store *store;
    const struct scheduler *scheduler;
    struct background_hooks hooks;
    struct background_options options;
    int64_t looked_ms; /* monotonic, when the last look began; 0: never */
    int64_t now_ms;    /* wall clock, of the look that is going on */
    struct background_options looked_for; /* by that */
    struct device_time *devices;
    int device_count;
    bool busy; /* a look, or the jobs that came of it, are in the store */
    struct look *looks;
    int look_count;
    struct job *jobs; /* to be stored */
    int job_count;
};

struct background *background_new(struct store *store, const struct scheduler *scheduler,
                                  const struct background_hooks *hooks,
                                  const struct background_options *options)
{
    struct background *b = xcalloc(1, sizeof *b);

    b->store = store;
    b->scheduler = scheduler;
    b->hooks = *hooks;
    b->options = *options;
    return b;
}

static void release_jobs(struct background *b)
{
    for (int i = 0; i < b->job_count; i++) {
        job_release(&b->jobs[i]);
    }
    free(b->jobs);
    b->jobs = NULL;
    b->job_count = 0;
}

void background_free(struct background *b)
{
    if (b) {
        release_jobs(b);
        free(b->looks);
        free(b->devices);
        free(b);
    }
}

void background_configure(struct background *b, const struct background_options *options)
{
    b->options = *options;
}

static int find_device(struct background *b, const char *id)
{
    struct device_time *device;

    for (int i = 0; i < b->device_count; i++) {
        if (strcmp(b->devices[i].device, id) == 0) {
            return i;
        }
    }
    b->devices = xgrow(b->devices, b->device_count, sizeof *b->devices);
    device = &b->devices[b->device_count];
    *device = (struct device_time){ .since_ms = clock_wall_ms() };
    copy_text(device->device, sizeof device->device, id);
    return b->device_count++;
}

/* Making jobs of what was chosen */

static bool same_pick(const struct look *a, const struct look *b)
{
    if (!b->picked || strcmp(a->stack, b->stack) != 0 ||
        !case_siblings(&a->pick.key, &b->pick.key) ||
        a->pick.variant_count != b->pick.variant_count) {
        return false;
    }
    for (int i = 0; i < a->pick.variant_count; i++) {
        if (strcmp(a->pick.variants[i], b->pick.variants[i]) != 0) {
            return false;
        }
    }
    return true;
}

/* The request of LOOK and of those behind it that need the same, which are done with. */
static json_t *request_of(struct background *b, int first)
{
    const struct look *look = &b->looks[first];
    const struct background_pick *pick = &look->pick;
    json_t *devices = json_array();
    json_t *variants = json_array();
    int runs = pick->runs;

    for (int i = 0; i < pick->variant_count; i++) {
        json_array_append_new(variants, json_string(pick->variants[i]));
    }
    for (int i = first; i < b->look_count; i++) {
        if (i == first || same_pick(look, &b->looks[i])) {
            json_array_append_new(devices,
                                  json_string(b->devices[b->looks[i].device].device));
            runs = b->looks[i].pick.runs < runs ? b->looks[i].pick.runs : runs;
        }
    }
    return json_pack("{s:[s],s:o,s:[s],s:[s],s:[I],s:o,s:[s],s:i,s:s,s:s}", "workloads",
                     pick->key.workload, "variants", variants, "sizes", pick->key.size,
                     "dtypes", pick->key.dtype, "seeds", (json_int_t)pick->key.seed,
                     "devices", devices, "stacks", look->stack, "runs", runs, "priority",
                     job_priority_name(JOB_BACKGROUND), "note", "background evidence");
}

/* Each device of JOB pays for its part of it. */
static void charge(struct background *b, int first, const struct job *job, int runs)
{
    struct look *look = &b->looks[first];

    for (int i = b->look_count - 1; i >= first; i--) {
        struct look *each = &b->looks[i];

        if (i == first || same_pick(look, each)) {
            struct device_time *device = &b->devices[each->device];

            device->cost_ms = each->pick.cost_ms / each->pick.runs * runs;
            copy_text(device->job, sizeof device->job, job->id);
            background_spend(&device->budget, device->cost_ms);
            each->picked = false;
        }
    }
}

static void add_job(struct background *b, int first)
{
    const struct device_stack *devices;
    int count = b->hooks.devices(b->hooks.arg, &devices);
    struct problems problems = { .count = 0 };
    json_t *request = request_of(b, first);
    struct job job;

    if (job_request_expand(request, b->hooks.catalogue(b->hooks.arg), devices, count,
                           &job, &problems) == ERR_OK) {
        job.created_ms = clock_wall_ms();
        id_new(job.created_ms, job.id);
        b->jobs = xgrow(b->jobs, b->job_count, sizeof *b->jobs);
        b->jobs[b->job_count++] = job;
        charge(b, first, &job, (int)json_integer_value(json_object_get(request, "runs")));
    } else { /* it went away meanwhile, or is not computed any more */
        b->looks[first].picked = false;
    }
    problems_release(&problems);
    json_decref(request);
}

static enum err_code store_jobs(struct tx *tx, void *arg, struct err *err)
{
    struct background *b = arg;
    enum err_code code = ERR_OK;

    for (int i = 0; i < b->job_count && code == ERR_OK; i++) {
        char existing[ID_SIZE];

        code = jobs_insert(tx, &b->jobs[i], NULL, existing, err);
    }
    return code;
}

static void jobs_stored(void *arg, const struct err *result)
{
    struct background *b = arg;

    b->busy = false;
    if (result->code != ERR_OK) {
        log_warning("background evidence: %s", result->message);
    }
    for (int i = 0; i < b->job_count && result->code == ERR_OK; i++) {
        b->hooks.accepted(b->hooks.arg, &b->jobs[i]);
    }
    release_jobs(b);
}

/* Looking what is needed */

struct collected {
    struct background_cell *cells;
    int count;
};

static void collect(void *arg, const struct background_cell *cell)
{
    struct collected *c = arg;

    c->cells = xgrow(c->cells, c->count, sizeof *c->cells);
    c->cells[c->count++] = *cell;
}

/* On a reader. */
static enum err_code look_at(struct tx *tx, struct look *l,
                             const struct background_options *options, int64_t now_ms,
                             struct err *err)
{
    struct collected found = { .count = 0 };

    if (l->job[0] && unattended_spent(tx, l->job, l->id, &l->took_ms, err) != ERR_OK) {
        return err->code;
    }
    if (unattended_cells(tx, l->id, l->stack, collect, &found, err) != ERR_OK) {
        free(found.cells);
        return err->code;
    }
    background_stand(found.cells, found.count, options, &l->standing);
    l->picked =
        background_choose(found.cells, found.count, options,
                          l->saved_ms + l->cost_ms - l->took_ms, now_ms, &l->pick);
    free(found.cells);
    return ERR_OK;
}

static enum err_code look(struct tx *tx, void *arg, struct err *err)
{
    struct background *b = arg;
    enum err_code code = ERR_OK;

    for (int i = 0; i < b->look_count && code == ERR_OK; i++) {
        code = look_at(tx, &b->looks[i], &b->looked_for, b->now_ms, err);
    }
    return code;
}

/* The last job of a device took what it took, not what was expected. */
static void settle(struct background *b)
{
    for (int i = 0; i < b->look_count; i++) {
        const struct look *l = &b->looks[i];
        struct device_time *device = &b->devices[l->device];

        if (l->job[0] && strcmp(l->job, device->job) == 0) {
            background_spend(&device->budget, l->took_ms - l->cost_ms);
            device->job[0] = '\0';
        }
    }
}

static void add_standing(struct background_standing *sum,
                         const struct background_standing *more)
{
    if (more->cells == 0) {
        return;
    }
    if (sum->cells == 0 || more->oldest_run_ms < sum->oldest_run_ms) {
        sum->oldest_run_ms = more->oldest_run_ms;
    }
    if (more->weakest_bound > sum->weakest_bound) {
        sum->weakest_bound = more->weakest_bound;
    }
    sum->cells += more->cells;
    sum->below_target += more->below_target;
}

/* A device with several stacks has the cells of all of them. */
static void keep_standings(struct background *b)
{
    for (int i = 0; i < b->look_count; i++) {
        struct device_time *device = &b->devices[b->looks[i].device];

        if (device->looked_ms != b->now_ms) {
            device->looked_ms = b->now_ms;
            device->standing = (struct background_standing){ .cells = 0 };
        }
        add_standing(&device->standing, &b->looks[i].standing);
    }
}

/* A device with several stacks measures with the one that needs it most. */
static void keep_one_of_each(struct background *b)
{
    for (int i = 0; i < b->look_count; i++) {
        for (int j = i + 1; j < b->look_count; j++) {
            if (b->looks[i].device == b->looks[j].device && b->looks[i].picked &&
                b->looks[j].picked) {
                bool first = b->looks[i].pick.need >= b->looks[j].pick.need;

                b->looks[first ? j : i].picked = false;
            }
        }
    }
}

static void looked(void *arg, const struct err *result)
{
    struct background *b = arg;

    b->busy = false;
    if (result->code != ERR_OK) {
        log_warning("background evidence: %s", result->message);
        return;
    }
    settle(b);
    keep_standings(b);
    keep_one_of_each(b);
    for (int i = 0; i < b->look_count; i++) {
        if (b->looks[i].picked) {
            add_job(b, i);
        }
    }
    if (b->job_count > 0) {
        b->busy = true;
        store_write(b->store, store_jobs, b, jobs_stored);
    }
}

static void add_look(struct background *b, const struct device_stack *device)
{
    int at = find_device(b, device->id);
    struct look *look;

    b->looks = xgrow(b->looks, b->look_count, sizeof *b->looks);
    look = &b->looks[b->look_count++];
    *look =
        (struct look){ .device = at,
                       .saved_ms = b->devices[at].budget.saved_ms,
                       .cost_ms = b->devices[at].job[0] ? b->devices[at].cost_ms : 0 };
    copy_text(look->id, sizeof look->id, device->id);
    copy_text(look->stack, sizeof look->stack, device->stack);
    copy_text(look->job, sizeof look->job, b->devices[at].job);
}

void background_tick(struct background *b, int64_t now_ms, int64_t monotonic_ms)
{
    const struct device_stack *devices;
    struct err err;
    int count;

    if (b->busy || b->options.budget_ppm == 0 || !b->hooks.catalogue(b->hooks.arg) ||
        (b->looked_ms && monotonic_ms - b->looked_ms < b->options.every_ms)) {
        return;
    }
    b->looked_ms = monotonic_ms;
    b->now_ms = now_ms;
    b->looked_for = b->options;
    b->look_count = 0;
    count = b->hooks.devices(b->hooks.arg, &devices);
    for (int i = 0; i < count; i++) {
        if (devices[i].online) {
            int at = find_device(b, devices[i].id);
            struct background_budget *budget = &b->devices[at].budget;

            background_save(budget, &b->options, monotonic_ms);
            if (!scheduler_uses(b->scheduler, devices[i].id) &&
                !external_stack_is(devices[i].stack)) {
                add_look(b, &devices[i]);
            }
        }
    }
    if (b->look_count > 0) {
        b->busy = true;
        if (store_read(b->store, look, b, looked, &err) != ERR_OK) {
            b->busy = false;
        }
    }
}

static json_t *device_json(const struct device_time *d, int64_t now_ms)
{
    const struct background_standing *cells = &d->standing;
    double passed = (double)(now_ms - d->since_ms);
    char since[CLOCK_RFC3339_SIZE], looked[CLOCK_RFC3339_SIZE],
        oldest[CLOCK_RFC3339_SIZE];

    clock_rfc3339(d->since_ms, since);
    clock_rfc3339(d->looked_ms, looked);
    clock_rfc3339(cells->oldest_run_ms, oldest);
    return json_pack("{s:s,s:s,s:f,s:f,s:f,s:s?,s:i,s:i,s:o,s:s?}", "device", d->device,
                     "since", since, "share_percent",
                     passed > 0 ? 100.0 * (double)d->budget.spent_ms / passed : 0.0,
                     "spent_seconds", (double)d->budget.spent_ms / 1000, "saved_seconds",
                     (double)d->budget.saved_ms / 1000, "looked_at",
                     d->looked_ms ? looked : NULL, "cells", cells->cells, "below_target",
                     cells->below_target, "weakest_bound",
                     cells->cells ? json_real(cells->weakest_bound) : json_null(),
                     "oldest_run_at", cells->cells ? oldest : NULL);
}

json_t *background_json(const struct background *b)
{
    json_t *devices = json_array();
    int64_t now = clock_wall_ms();

    for (int i = 0; i < b->device_count; i++) {
        json_array_append_new(devices, device_json(&b->devices[i], now));
    }
    return json_pack("{s:f,s:f,s:I,s:I,s:o}", "budget_percent",
                     (double)b->options.budget_ppm / PPM_OF_PERCENT, "target_percent",
                     (double)b->options.target_ppm / PPM_OF_PERCENT, "target_days",
                     (json_int_t)(b->options.age_ms / DAY_MS), "every_seconds",
                     (json_int_t)(b->options.every_ms / 1000), "items", devices);
}

void background_figures(const struct background *b, double *ret_weakest,
                        int64_t *ret_spent_ms)
{
    *ret_weakest = 0;
    *ret_spent_ms = 0;
    for (int i = 0; i < b->device_count; i++) {
        double bound = b->devices[i].standing.weakest_bound;

        *ret_weakest = bound > *ret_weakest ? bound : *ret_weakest;
        *ret_spent_ms += b->devices[i].budget.spent_ms;
    }
}
