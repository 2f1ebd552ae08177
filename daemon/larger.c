#include "daemon/larger.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/config/external.h"
#include "daemon/jobs/expand.h"
#include "daemon/jobs/larger.h"
#include "db/cells.h"
#include "db/fleet.h"
#include "db/jobs.h"
#include "db/recurring/larger_rows.h"

/* A workload on a device with one of its stacks, as the newest survey of it has it. */
struct surveyed {
    int64_t job;
    bool finished;
    char device[CASE_TITLE_SIZE], stack[CASE_NAME_SIZE];
    char workload[CASE_NAME_SIZE], dtype[CASE_NAME_SIZE];
    int version;
    struct larger_surveyed last;
    int environment; /* of step.environments; -1: none */
    int next;        /* the rank of the size that is to be measured; -1: none */
};

struct environment_cells {
    char id[DIGEST_TEXT_SIZE];
    struct larger_cell *cells;
    int count;
};

struct step {
    bool all; /* whatever the mark says */
    struct larger_mark before, mark;
    struct surveyed *surveyed;
    int surveyed_count;
    struct environment_cells *environments;
    int environment_count;
    struct job *jobs; /* to be stored */
    int job_count;
};

struct larger {
    struct store *store;
    struct larger_hooks hooks;
    bool busy;
    bool again;              /* there may be more to do, whatever the store says */
    uint64_t generation;     /* of the store, when it was last read */
    struct larger_mark mark; /* then */
    struct step step;
};

struct larger *larger_new(struct store *store, const struct larger_hooks *hooks)
{
    struct larger *l = xcalloc(1, sizeof *l);

    l->store = store;
    l->hooks = *hooks;
    l->again = true;
    return l;
}

static void release_step(struct step *step)
{
    for (int i = 0; i < step->environment_count; i++) {
        free(step->environments[i].cells);
    }
    for (int i = 0; i < step->job_count; i++) {
        job_release(&step->jobs[i]);
    }
    free(step->environments);
    free(step->surveyed);
    free(step->jobs);
    *step = (struct step){ .job_count = 0 };
}

void larger_free(struct larger *l)
{
    if (l) {
        release_step(&l->step);
        free(l);
    }
}

void larger_look(struct larger *l)
{
    l->again = true;
}

/* Reading, on a reader. */

/* By device, stack, workload and what it computes; the newest first. */
static int compare(const void *a, const void *b)
{
    const struct surveyed *x = a, *y = b;
    int order = strcmp(x->device, y->device);

    order = order ? order : strcmp(x->stack, y->stack);
    order = order ? order : strcmp(x->workload, y->workload);
    order = order ? order : x->version - y->version;
    order = order ? order : strcmp(x->dtype, y->dtype);
    return order ? order : (x->job < y->job) - (x->job > y->job);
}

static bool is_same(const struct surveyed *a, const struct surveyed *b)
{
    struct surveyed other = *b;

    other.job = a->job;
    return compare(a, &other) == 0;
}

static void join(struct surveyed *s, const struct surveyed *more)
{
    s->last.rank = more->last.rank > s->last.rank ? more->last.rank : s->last.rank;
    s->last.run_ms =
        more->last.run_ms > s->last.run_ms ? more->last.run_ms : s->last.run_ms;
}

/* Variants and sizes of a workload stand side by side. */
static void take_row(void *arg, const struct larger_row *row)
{
    struct step *step = arg;
    struct surveyed s = { .job = row->job,
                          .finished = row->finished,
                          .version = row->key.version,
                          .last = { larger_rank(row->key.size), row->run_ms,
                                    row->memory_bytes },
                          .environment = -1,
                          .next = -1 };
    struct surveyed *last =
        step->surveyed_count > 0 ? &step->surveyed[step->surveyed_count - 1] : NULL;

    if (s.last.rank < 0 || external_stack_is(row->stack)) {
        return;
    }
    copy_text(s.device, sizeof s.device, row->device);
    copy_text(s.stack, sizeof s.stack, row->stack);
    copy_text(s.workload, sizeof s.workload, row->key.workload);
    copy_text(s.dtype, sizeof s.dtype, row->key.dtype);
    if (last && compare(last, &s) == 0) {
        join(last, &s);
        return;
    }
    step->surveyed = xgrow(step->surveyed, step->surveyed_count, sizeof *step->surveyed);
    step->surveyed[step->surveyed_count++] = s;
}

/* Older surveys say nothing any more. */
static void keep_newest(struct step *step)
{
    int kept = 0;

    if (step->surveyed_count > 0) {
        qsort(step->surveyed, (size_t)step->surveyed_count, sizeof *step->surveyed,
              compare);
    }
    for (int i = 0; i < step->surveyed_count; i++) {
        struct surveyed *s = &step->surveyed[i];
        struct surveyed *newest = kept > 0 ? &step->surveyed[kept - 1] : NULL;

        if (!newest || !is_same(newest, s)) {
            step->surveyed[kept++] = *s;
        } else if (newest->job == s->job) {
            join(newest, s);
        }
    }
    step->surveyed_count = kept;
}

static void take_cell(void *arg, const struct cell *cell)
{
    struct environment_cells *e = arg;

    if (larger_rank(cell->key.size) >= 0 && cell->times.runs >= TIMES_COST_RUNS) {
        e->cells = xgrow(e->cells, e->count, sizeof *e->cells);
        e->cells[e->count++] =
            (struct larger_cell){ cell->key, cell->is_control, cell->times };
    }
}

/* Devices in one environment share its cells. */
static enum err_code find_environment(struct tx *tx, struct step *step,
                                      struct surveyed *s, struct err *err)
{
    struct environment_cells *e;
    char id[DIGEST_TEXT_SIZE];

    if (environments_of_stack(tx, s->device, s->stack, id, err) != ERR_OK || !id[0]) {
        return err->code;
    }
    for (int i = 0; i < step->environment_count && s->environment < 0; i++) {
        s->environment = strcmp(step->environments[i].id, id) == 0 ? i : -1;
    }
    if (s->environment >= 0) {
        return ERR_OK;
    }
    s->environment = step->environment_count;
    step->environments =
        xgrow(step->environments, step->environment_count, sizeof *step->environments);
    e = &step->environments[step->environment_count++];
    *e = (struct environment_cells){ .count = 0 };
    copy_text(e->id, sizeof e->id, id);
    return cells_each(tx, id, 0, take_cell, e, err);
}

static bool same_place(const struct surveyed *a, const struct surveyed *b)
{
    return strcmp(a->device, b->device) == 0 && strcmp(a->stack, b->stack) == 0;
}

static enum err_code read_step(struct tx *tx, struct step *step, struct err *err)
{
    if (larger_mark_read(tx, &step->mark, err) != ERR_OK) {
        return err->code;
    }
    if (!step->all && step->mark.finished == step->before.finished &&
        step->mark.last_ms == step->before.last_ms) {
        return ERR_OK;
    }
    if (larger_each_row(tx, take_row, step, err) != ERR_OK) {
        return err->code;
    }
    keep_newest(step);
    for (int i = 0; i < step->surveyed_count; i++) {
        struct surveyed *s = &step->surveyed[i];
        const struct surveyed *before = i > 0 ? s - 1 : NULL;

        if (!s->finished) {
            continue;
        }
        if (before && same_place(before, s) && before->environment >= 0) {
            s->environment = before->environment;
        } else if (find_environment(tx, step, s, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

static enum err_code read_larger(struct tx *tx, void *arg, struct err *err)
{
    return read_step(tx, &((struct larger *)arg)->step, err);
}

/* Making jobs of it. */

static void choose(struct larger *l)
{
    const struct catalogue *catalogue = l->hooks.catalogue(l->hooks.arg);

    for (int i = 0; i < l->step.surveyed_count; i++) {
        struct surveyed *s = &l->step.surveyed[i];
        const struct catalogue_workload *w =
            catalogue_find(catalogue, s->workload, "cuda");

        if (s->environment >= 0 && w && w->version == s->version &&
            strcmp(w->dtypes[0], s->dtype) == 0) {
            const struct environment_cells *e = &l->step.environments[s->environment];

            s->next = larger_next(w, &s->last, e->cells, e->count);
        }
    }
}

static bool holds(const json_t *names, const char *name)
{
    size_t i;
    json_t *each;

    json_array_foreach((json_t *)names, i, each)
    {
        if (strcmp(json_string_value(each), name) == 0) {
            return true;
        }
    }
    return false;
}

/* Those of S's workload that have times: what was not asked for, or cannot be computed
 * there, is not in a larger size either. */
static void add_variants(const struct larger *l, const struct surveyed *s,
                         json_t *variants)
{
    const struct environment_cells *e = &l->step.environments[s->environment];

    for (int i = 0; i < e->count; i++) {
        const struct case_key *key = &e->cells[i].key;

        if (strcmp(key->workload, s->workload) == 0 && key->version == s->version &&
            !holds(variants, key->variant)) {
            json_array_append_new(variants, json_string(key->variant));
        }
    }
}

/* Of FIRST, with all that need the same size on the same device, which are done with. */
static json_t *request_of(struct larger *l, int first)
{
    const struct surveyed place = l->step.surveyed[first];
    json_t *workloads = json_array();
    json_t *variants = json_array();

    for (int i = first; i < l->step.surveyed_count; i++) {
        struct surveyed *s = &l->step.surveyed[i];

        if (s->next == place.next && same_place(s, &place)) {
            json_array_append_new(workloads, json_string(s->workload));
            add_variants(l, s, variants);
            s->next = -1;
        }
    }
    return json_pack("{s:b,s:o,s:o,s:[s],s:[s],s:[s],s:i,s:i,s:i,s:s}", "survey", 1,
                     "workloads", workloads, "variants", variants, "sizes",
                     larger_size(place.next), "devices", place.device, "stacks",
                     place.stack, "runs", LARGER_RUNS, "iterations", LARGER_ITERATIONS,
                     "timeout_seconds", LARGER_TIMEOUT_SECONDS, "note",
                     "a larger size, where a survey's kernels took less than 1 ms");
}

static void add_job(struct larger *l, int first)
{
    struct step *step = &l->step;
    const struct device_stack *devices;
    int count = l->hooks.devices(l->hooks.arg, &devices);
    struct problems problems = { .count = 0 };
    json_t *request = request_of(l, first);
    struct job job;

    if (job_request_expand(request, l->hooks.catalogue(l->hooks.arg), devices, count,
                           &job, &problems) == ERR_OK) {
        job.created_ms = clock_wall_ms();
        id_new(job.created_ms, job.id);
        step->jobs = xgrow(step->jobs, step->job_count, sizeof *step->jobs);
        step->jobs[step->job_count++] = job;
    } /* else it went away: larger_look follows when it comes back */
    problems_release(&problems);
    json_decref(request);
}

static enum err_code store_jobs(struct tx *tx, void *arg, struct err *err)
{
    const struct step *step = &((struct larger *)arg)->step;
    enum err_code code = ERR_OK;

    for (int i = 0; i < step->job_count && code == ERR_OK; i++) {
        char existing[ID_SIZE];

        code = jobs_insert(tx, &step->jobs[i], NULL, existing, err);
    }
    return code;
}

static void conclude(struct larger *l, bool done)
{
    l->again = l->again || !done;
    l->busy = false;
    release_step(&l->step);
}

static void jobs_stored(void *arg, const struct err *result)
{
    struct larger *l = arg;

    if (result->code != ERR_OK) {
        log_warning("larger sizes of a survey: %s", result->message);
    }
    for (int i = 0; i < l->step.job_count && result->code == ERR_OK; i++) {
        const struct job *job = &l->step.jobs[i];

        log_info("survey of device %s in size %s: job %s, %d runs", job->items[0].device,
                 job->items[0].key.size, job->id, job->runs_total);
        l->hooks.accepted(l->hooks.arg, job);
    }
    conclude(l, result->code == ERR_OK);
}

static void step_read(void *arg, const struct err *result)
{
    struct larger *l = arg;

    if (result->code != ERR_OK) {
        log_warning("larger sizes of a survey: %s", result->message);
        conclude(l, false);
        return;
    }
    l->mark = l->step.mark;
    choose(l);
    for (int i = 0; i < l->step.surveyed_count; i++) {
        if (l->step.surveyed[i].next >= 0) {
            add_job(l, i);
        }
    }
    if (l->step.job_count > 0) {
        store_write(l->store, store_jobs, l, jobs_stored);
        return;
    }
    conclude(l, true);
}

void larger_tick(struct larger *l)
{
    uint64_t generation = store_generation(l->store);
    struct err err;

    if (l->busy || !l->hooks.catalogue(l->hooks.arg) ||
        (!l->again && generation == l->generation)) {
        return;
    }
    l->generation = generation;
    l->busy = true;
    l->step.all = l->again;
    l->step.before = l->mark;
    l->again = false;
    if (store_read_heavy(l->store, read_larger, l, step_read, &err) != ERR_OK) {
        conclude(l, false);
    }
}
