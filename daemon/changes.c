#include "daemon/changes.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/render/drift.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/changes.h"
#include "daemon/jobs/case_requests.h"
#include "daemon/jobs/expand.h"
#include "daemon/jobs/request.h"
#include "db/views/changes.h"
#include "db/views/drift.h"

enum { OPEN_MAX = 100, CASES_MAX = 1000, REPORTS_MAX = 16, NAMED_MAX = 10 };

/* A step of one change: read what it needs, decide on the loop, store what follows. */
struct step {
    int64_t number; /* 0: there is nothing to do */
    char host[CASE_TITLE_SIZE];
    int64_t at_ms;
    bool surveys; /* are on */
    bool measure; /* else its survey is over */
    char *facts;  /* what changed, JSON */
    json_t *requests;
    struct job *jobs;
    int job_count;
    struct drift drifts[REPORTS_MAX];
    int drift_count;
    char *reports;
};

struct changes {
    struct store *store;
    struct changes_hooks hooks;
    bool busy;
    bool settled;        /* nothing is open, as of the generation below */
    uint64_t generation; /* of the store */
    struct step step;
};

struct changes *changes_new(struct store *store, const struct changes_hooks *hooks)
{
    struct changes *changes = xcalloc(1, sizeof *changes);

    changes->store = store;
    changes->hooks = *hooks;
    return changes;
}

static void release_step(struct step *step)
{
    for (int i = 0; i < step->job_count; i++) {
        job_release(&step->jobs[i]);
    }
    for (int i = 0; i < step->drift_count; i++) {
        drift_release(&step->drifts[i]);
    }
    free(step->jobs);
    free(step->reports);
    free(step->facts);
    json_decref(step->requests);
    *step = (struct step){ .number = 0 };
}

void changes_free(struct changes *changes)
{
    if (changes) {
        release_step(&changes->step);
        free(changes);
    }
}

bool changes_idle(const struct changes *changes)
{
    return !changes->busy;
}

/* Reading. */

static void choose(void *arg, const struct change *change)
{
    struct step *step = arg;
    bool due =
        step->surveys && change->due; /* what its screenings measure is not known */
    bool measure = change->state == CHANGE_SEEN && change->surveyed && !due;
    bool otherwise =
        change->state == CHANGE_SEEN && !change->surveyed && change->measured && !due;
    bool report = otherwise || (change->state == CHANGE_MEASURING && !change->surveying);

    if (!step->number && (measure || report)) {
        step->number = change->number;
        step->at_ms = change->at_ms;
        step->measure = measure;
        step->facts = xstrdup(change->facts);
        copy_text(step->host, sizeof step->host, change->host);
    }
}

static void add_case(void *arg, const struct case_key *key, const char *device,
                     const char *stack)
{
    struct step *step = arg;

    case_requests_add(step->requests, key, device, stack,
                      "measured before the host changed");
}

static enum err_code read_drifts(struct tx *tx, struct step *step, struct err *err)
{
    struct drift_pair pairs[DRIFT_PAIRS_MAX];
    int count = 0;
    int64_t until_ms = 0;
    enum err_code code = drift_next_change(tx, step->host, step->at_ms, &until_ms, err);

    if (code == ERR_OK) {
        code = drift_pairs(tx, step->host, step->at_ms, until_ms, pairs, &count, err);
    }
    for (int i = 0; i < count && i < REPORTS_MAX && code == ERR_OK; i++) {
        code =
            drift_read_pair(tx, &pairs[i], step->host, step->at_ms, until_ms,
                            clock_wall_ms(), 0, &step->drifts[step->drift_count++], err);
    }
    return code;
}

static enum err_code read_step(struct tx *tx, void *arg, struct err *err)
{
    struct step *step = &((struct changes *)arg)->step;

    if (changes_each_open(tx, OPEN_MAX, choose, step, err) != ERR_OK) {
        return err->code;
    }
    if (!step->number) {
        return ERR_OK;
    }
    step->requests = json_array();
    return step->measure
               ? changes_each_case(tx, step->number, CASES_MAX, add_case, step, err)
               : read_drifts(tx, step, err);
}

/* Deciding. */

static void add_job(struct changes *changes, const json_t *request)
{
    struct step *step = &changes->step;
    const struct device_stack *devices;
    int count = changes->hooks.devices(changes->hooks.arg, &devices);
    struct problems problems = { .count = 0 };
    struct job job;

    if (job_request_expand(request, changes->hooks.catalogue(changes->hooks.arg), devices,
                           count, &job, &problems) == ERR_OK) {
        job.created_ms = clock_wall_ms();
        id_new(job.created_ms, job.id);
        step->jobs = xgrow(step->jobs, step->job_count, sizeof *step->jobs);
        step->jobs[step->job_count++] = job;
    } else {
        log_info("host %s: not measured again after its change: %s", step->host,
                 problems.count ? problems.items[0].detail : "it cannot be run");
    }
    problems_release(&problems);
}

/* What changed where no environment did. */
static char *title_of(const struct step *step, const struct drift *drift)
{
    json_t *facts;
    char *words;
    char *title;

    if (!drift->since_ms) {
        return drift_title(drift);
    }
    facts = json_loads(step->facts, 0, NULL);
    words = changes_text(facts);
    title = xasprintf("%s on %s", words, step->host);
    free(words);
    json_decref(facts);
    return title;
}

/* Of those that are worst, by name. */
static json_t *worst_of(const struct drift *drift)
{
    json_t *list = json_array();

    for (int i = 0; i < drift->case_count && json_array_size(list) < NAMED_MAX; i++) {
        const struct drift_case *c = &drift->cases[i];
        const struct case_key *key = &c->key;

        if (c->kind <= DRIFT_BITS) {
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "kind",
                                drift_kind_name(c->kind), "workload", key->workload,
                                "variant", key->variant, "size", key->size, "dtype",
                                key->dtype, "seed", json_sprintf("%" PRIu64, key->seed)));
        }
    }
    return list;
}

static json_t *report_of(const struct step *step, const struct drift *drift)
{
    char headline[DRIFT_HEADLINE_SIZE];
    char *title = title_of(step, drift);
    char *href = drift_href(drift);
    struct drift_counts counts = drift_count(drift->cases, drift->case_count);
    json_t *kinds = json_object();
    json_t *report;

    for (int k = 0; k < DRIFT_KIND_COUNT; k++) {
        json_object_set_new(
            kinds, drift_kind_name((enum drift_kind)k),
            json_integer(k == DRIFT_SAME ? counts.same_bits : counts.kinds[k]));
    }
    drift_headline(drift->cases, drift->case_count, headline);
    report = json_pack("{s:s, s:s, s:s, s:s?, s:o, s:o, s:s}", "title", title, "headline",
                       drift->unmeasured ? DRIFT_UNMEASURED : headline, "from",
                       drift->from.environment.id, "to",
                       drift->unmeasured ? NULL : drift->to.environment.id, "counts",
                       kinds, "cases", worst_of(drift), "href", href);
    free(title);
    free(href);
    return report;
}

static void make_reports(struct changes *changes)
{
    struct step *step = &changes->step;
    const struct device_stack *devices;
    int count = changes->hooks.devices(changes->hooks.arg, &devices);
    json_t *reports = json_array();

    for (int i = 0; i < step->drift_count; i++) {
        drift_settle(&step->drifts[i], devices, count);
        json_array_append_new(reports, report_of(step, &step->drifts[i]));
    }
    step->reports = json_dumps(reports, JSON_COMPACT);
    json_decref(reports);
}

/* Storing. */

static enum err_code store_step(struct tx *tx, void *arg, struct err *err)
{
    const struct step *step = &((struct changes *)arg)->step;

    return step->measure
               ? changes_measure(tx, step->number, step->jobs, step->job_count, err)
               : changes_report(tx, step->number, clock_wall_ms(), step->reports, err);
}

static void step_stored(void *arg, const struct err *err)
{
    struct changes *changes = arg;
    struct step *step = &changes->step;

    if (err->code != ERR_OK) {
        log_error("change %" PRId64 " of host %s: %s", step->number, step->host,
                  err->message);
    }
    for (int i = 0; i < step->job_count && err->code == ERR_OK; i++) {
        changes->hooks.accepted(changes->hooks.arg, &step->jobs[i]);
    }
    release_step(step);
    changes->busy = false;
}

static void step_read(void *arg, const struct err *err)
{
    struct changes *changes = arg;
    struct step *step = &changes->step;
    size_t i;
    json_t *request;

    if (err->code != ERR_OK || !step->number ||
        !changes->hooks.catalogue(changes->hooks.arg)) {
        if (err->code != ERR_OK) {
            log_error("changes of hosts: %s", err->message);
        }
        changes->settled = err->code == ERR_OK && !step->number;
        release_step(step);
        changes->busy = false;
        return;
    }
    json_array_foreach(step->requests, i, request)
    {
        add_job(changes, request);
    }
    if (!step->measure) {
        make_reports(changes);
    }
    store_write(changes->store, store_step, changes, step_stored);
}

void changes_tick(struct changes *changes)
{
    uint64_t generation = store_generation(changes->store);
    struct err err;

    if (changes->busy || (changes->settled && generation == changes->generation)) {
        return;
    }
    changes->generation = generation;
    changes->busy = true;
    changes->step.surveys = changes->hooks.surveys(changes->hooks.arg);
    if (store_read_heavy(changes->store, read_step, changes, step_read, &err) != ERR_OK) {
        changes->busy = false;
    }
}
