#include "daemon/screening.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/lookup.h"
#include "daemon/base/mem.h"
#include "daemon/config/external.h"
#include "daemon/jobs/case_requests.h"
#include "daemon/jobs/expand.h"
#include "daemon/jobs/request.h"
#include "daemon/jobs/survey_jobs.h"
#include "db/screening/screening_judge.h"
#include "db/screening/screenings.h"

enum {
    DUE_MAX = 10000, /* that are read at a time */
    AT_A_TIME = 16,  /* devices that get jobs of their own in one step */
    JUDGED_AT_A_TIME = 32,
};

/* A device that is due and there. */
struct due {
    int64_t number;
    char device[CASE_TITLE_SIZE], reason[CASE_NAME_SIZE];
    json_t *requests; /* of what was measured on devices like it */
};

/* What is being read or stored, one thing at a time. */
struct step {
    char (*there)[CASE_TITLE_SIZE]; /* online, or started where there is work */
    int there_count;
    int online_count;       /* the first of them */
    struct lookup there_of; /* the same */
    int64_t now_ms;
    bool plans;    /* jobs may be made */
    bool any;      /* device was screened before */
    bool ended;    /* a screening can be judged */
    int64_t after; /* those from here on are */
    struct due *due;
    int due_count;
    struct survey_jobs jobs;
    int64_t given_up; /* number of the one that nothing can measure; 0: there is none */
    char cause[SCREENING_WORDS_SIZE];
};

struct screener {
    struct store *store;
    struct screener_hooks hooks;
    bool enabled, busy;
    bool looked;         /* somebody wants to hear that there is nothing to do */
    bool again;          /* there may be more to do, whatever the store says */
    uint64_t generation; /* of the store, when it was last read */
    int64_t looked_ms;   /* monotonic, of the last screener_look */
    int64_t present_ms;  /* monotonic, when presence was last stored; 0: never */
    int64_t judged;      /* the last that was looked at; 0: from the first */
    struct step step;
};

struct screener *screener_new(struct store *store, const struct screener_hooks *hooks)
{
    struct screener *s = xcalloc(1, sizeof *s);

    s->store = store;
    s->hooks = *hooks;
    return s;
}

static void release_step(struct step *step)
{
    for (int i = 0; i < step->due_count; i++) {
        json_decref(step->due[i].requests);
    }
    free(step->due);
    free(step->there);
    lookup_release(&step->there_of);
    survey_jobs_release(&step->jobs);
    *step = (struct step){ .now_ms = 0 };
}

void screener_free(struct screener *s)
{
    if (s) {
        release_step(&s->step);
        free(s);
    }
}

void screener_look(struct screener *s, bool enabled)
{
    s->enabled = enabled;
    s->looked = s->again = true;
    s->looked_ms = clock_monotonic_ms();
}

/* Reading what is due. */

static void take_due(void *arg, const struct screening *screening)
{
    struct step *step = arg;
    struct due *due;

    if (lookup_get(&step->there_of, screening->device)) {
        step->due = xgrow(step->due, step->due_count, sizeof *step->due);
        due = &step->due[step->due_count++];
        *due = (struct due){ .number = screening->number };
        copy_text(due->device, sizeof due->device, screening->device);
        copy_text(due->reason, sizeof due->reason, screening->reason);
    }
}

/* What commands of the configuration cost is their owner's to decide: a survey has those
 * that ask for it. */
static void take_case(void *arg, const struct case_key *key, const char *stack)
{
    struct due *due = arg;
    char name[CASE_NAME_SIZE];

    copy_text(name, sizeof name, stack);
    name[strcspn(name, "/")] = '\0';
    if (!external_stack_is(name)) {
        case_requests_add(due->requests, key, due->device, stack, "screening");
    }
}

static enum err_code read_due(struct tx *tx, void *arg, struct err *err)
{
    struct step *step = &((struct screener *)arg)->step;
    enum err_code code = screenings_any(tx, &step->any, err);

    if (code == ERR_OK) {
        code = screenings_ended(tx, &step->ended, err);
    }
    if (code == ERR_OK) {
        code = screenings_each_due(tx, DUE_MAX, take_due, step, err);
    }
    for (int i = 0; step->plans && step->any && i < step->due_count && i < AT_A_TIME &&
                    code == ERR_OK;
         i++) {
        step->due[i].requests = json_array();
        code =
            screenings_each_case(tx, step->due[i].number, take_case, &step->due[i], err);
    }
    return code;
}

/* Making jobs of it. */

static bool has_item(const struct job *job, const struct job_item *item)
{
    for (int i = 0; i < job->item_count; i++) {
        const struct job_item *other = &job->items[i];

        if (case_siblings(&other->key, &item->key) &&
            strcmp(other->key.variant, item->key.variant) == 0 &&
            strcmp(other->stack, item->stack) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds to JOB, of one device, what REQUEST has more.  What cannot be run any more is left
 * out. */
static void add_cases(struct screener *s, const json_t *request, struct job *job)
{
    const struct device_stack *devices;
    int count = s->hooks.devices(s->hooks.arg, &devices);
    struct problems problems = { .count = 0 };
    struct job more;

    if (job_request_expand(request, s->hooks.catalogue(s->hooks.arg), devices, count,
                           &more, &problems) == ERR_OK) {
        for (int i = 0; i < more.item_count && job->item_count < JOB_ITEMS_MAX; i++) {
            if (!has_item(job, &more.items[i])) {
                job->items = xgrow(job->items, job->item_count, sizeof *job->items);
                job->items[job->item_count] = more.items[i];
                job->items[job->item_count].seq = job->item_count;
                job->runs_total += more.items[i].runs_wanted;
                job->item_count++;
            }
        }
        job_release(&more);
    }
    problems_release(&problems);
}

static void name_jobs(struct survey_jobs *jobs, int from, bool first)
{
    for (int i = from; i < jobs->count; i++) {
        jobs->jobs[i].created_ms = clock_wall_ms();
        id_new(jobs->jobs[i].created_ms, jobs->jobs[i].id);
        if (!first) {
            jobs->jobs[i].priority = JOB_CONFIRMATION;
        }
    }
}

static void append(struct survey_jobs *all, struct survey_jobs *jobs)
{
    for (int i = 0; i < jobs->count; i++) {
        all->jobs = xgrow(all->jobs, all->count, sizeof *all->jobs);
        all->jobs[all->count++] = jobs->jobs[i];
    }
    free(jobs->jobs);
    *jobs = (struct survey_jobs){ .count = 0 };
}

/* The jobs of DUE; NULL: of all that are there.  False: none can be made now. */
static bool make_jobs(struct screener *s, const struct due *due)
{
    struct step *step = &s->step;
    const struct device_stack *devices;
    int count = s->hooks.devices(s->hooks.arg, &devices);
    struct problems problems = { .count = 0 };
    struct survey_jobs made;
    size_t i;
    json_t *request;
    enum err_code code =
        due ? survey_jobs_of_device(s->hooks.catalogue(s->hooks.arg), devices, count,
                                    due->device, &made, &problems)
            : survey_jobs_make(s->hooks.catalogue(s->hooks.arg), devices, count, &made,
                               &problems);

    if (code == ERR_OK) {
        int from = step->jobs.count;

        if (due) {
            json_array_foreach(due->requests, i, request)
            {
                add_cases(s, request, &made.jobs[0]);
            }
        }
        append(&step->jobs, &made);
        name_jobs(&step->jobs, from, !due);
    } else {
        const char *detail = problems.count ? problems.items[0].detail : err_name(code);

        log_warning("%s%s: %s", due ? "screening of device " : "survey",
                    due ? due->device : "", detail);
        if (code == ERR_INVALID && (due || step->due_count > 0)) {
            step->given_up = due ? due->number : step->due[0].number;
            copy_text(step->cause, sizeof step->cause, detail);
        }
    }
    problems_release(&problems);
    return code == ERR_OK;
}

static enum err_code store_jobs(struct tx *tx, void *arg, struct err *err)
{
    const struct step *step = &((struct screener *)arg)->step;

    return step->given_up
               ? screenings_give_up(tx, step->given_up, step->cause, step->now_ms, err)
               : screenings_plan(tx, step->jobs.jobs, step->jobs.count, step->now_ms,
                                 err);
}

/* A large fleet's survey has a job for each device: the first tell of the others. */
static void log_job(const struct step *step, int i)
{
    const struct job *job = &step->jobs.jobs[i];

    if (i == AT_A_TIME) {
        log_info("survey: and %d jobs more", step->jobs.count - i);
    } else if (i < AT_A_TIME && step->any) {
        log_info("screening of device %s: job %s, %d runs", job->items[0].device, job->id,
                 job->runs_total);
    } else if (i < AT_A_TIME) {
        log_info("survey: job %s, %d runs", job->id, job->runs_total);
    }
}

static void jobs_stored(void *arg, const struct err *result)
{
    struct screener *s = arg;
    struct step *step = &s->step;

    if (result->code != ERR_OK) {
        log_error("screening: %s", result->message);
    }
    for (int i = 0; i < step->jobs.count && result->code == ERR_OK && !step->given_up;
         i++) {
        log_job(step, i);
        s->hooks.accepted(s->hooks.arg, &step->jobs.jobs[i]);
    }
    s->again = true;
    s->busy = false;
    release_step(step);
}

static enum err_code store_judged(struct tx *tx, void *arg, struct err *err)
{
    struct screener *s = arg;

    return screenings_judge(tx, s->step.after, JUDGED_AT_A_TIME, s->step.now_ms,
                            &s->judged, err);
}

static void judged(void *arg, const struct err *result)
{
    struct screener *s = arg;
    bool from_first = s->step.after == 0;

    if (result->code != ERR_OK) {
        log_error("screening: %s", result->message);
        s->judged = 0;
    } else if (s->judged > 0) {
        s->step.after = s->judged; /* others write in between */
        store_write(s->store, store_judged, s, judged);
        return;
    }
    /* What ended meanwhile may be before those that were looked at. */
    s->again = s->judged > 0 || !from_first;
    s->busy = false;
    release_step(&s->step);
}

/* Who is there. */

static enum err_code store_present(struct tx *tx, void *arg, struct err *err)
{
    const struct step *step = &((struct screener *)arg)->step;
    enum err_code code = ERR_OK;

    for (int i = 0; i < step->online_count && code == ERR_OK; i++) {
        code = screenings_present(tx, step->there[i], step->now_ms, err);
    }
    return code;
}

static void present_stored(void *arg, const struct err *result)
{
    struct screener *s = arg;

    if (result->code != ERR_OK) {
        log_error("devices that are online: %s", result->message);
    }
    s->busy = false;
    release_step(&s->step);
}

/* One step. */

static void find_there(struct screener *s)
{
    const struct device_stack *devices;
    int count = s->hooks.devices(s->hooks.arg, &devices);
    struct step *step = &s->step;

    step->there = xcalloc((size_t)count + 1, sizeof *step->there);
    for (int online = 1; online >= 0; online--) {
        for (int i = 0; i < count; i++) {
            if (devices[i].is_default && devices[i].online == online &&
                device_is_there(&devices[i])) {
                char *there = step->there[step->there_count++];

                copy_text(there, CASE_TITLE_SIZE, devices[i].id);
                lookup_put(&step->there_of, there, there);
            }
        }
        step->online_count = online ? step->there_count : step->online_count;
    }
}

/* Whether there is something to store. */
static bool plan(struct screener *s)
{
    struct step *step = &s->step;

    if (!step->any) {
        return make_jobs(s, NULL) || step->given_up;
    }
    for (int i = 0; i < step->due_count && step->due[i].requests; i++) {
        if (!make_jobs(s, &step->due[i]) && step->given_up) {
            survey_jobs_release(&step->jobs); /* they are made in the next step */
            return true;
        }
    }
    return step->jobs.count > 0;
}

static void step_read(void *arg, const struct err *result)
{
    struct screener *s = arg;
    struct step *step = &s->step;

    if (result->code != ERR_OK) {
        log_error("screening: %s", result->message);
        s->again = true;
    } else if (step->plans && step->due_count > 0 && plan(s)) {
        store_write(s->store, store_jobs, s, jobs_stored);
        return;
    } else if (step->ended) {
        step->after = s->judged;
        store_write(s->store, store_judged, s, judged);
        return;
    } else if (s->looked && step->due_count == 0) {
        s->looked = false;
        s->hooks.nothing(s->hooks.arg);
    }
    s->again = s->again || (s->enabled && !step->plans && step->due_count > 0);
    s->busy = false;
    release_step(step);
}

void screener_tick(struct screener *s, int64_t now_ms, int64_t monotonic_ms)
{
    uint64_t generation = store_generation(s->store);
    struct err err;

    if (s->busy || !s->hooks.catalogue(s->hooks.arg) ||
        !s->hooks.recorded(s->hooks.arg)) {
        return;
    }
    if (s->present_ms && monotonic_ms - s->present_ms >= SCREENING_PRESENT_MS) {
        s->busy = true;
        s->present_ms = monotonic_ms;
        s->step.now_ms = now_ms;
        find_there(s);
        store_write(s->store, store_present, s, present_stored);
        return;
    }
    s->present_ms = s->present_ms ? s->present_ms : monotonic_ms;
    if (!s->again && generation == s->generation) {
        return;
    }
    s->generation = generation;
    s->again = false;
    s->busy = true;
    s->step.now_ms = now_ms;
    s->step.plans = s->enabled && (s->hooks.complete(s->hooks.arg) ||
                                   monotonic_ms - s->looked_ms >= SCREENING_SETTLE_MS);
    find_there(s);
    if (store_read_heavy(s->store, read_due, s, step_read, &err) != ERR_OK) {
        s->busy = false;
        s->again = true;
        release_step(&s->step);
    }
}
