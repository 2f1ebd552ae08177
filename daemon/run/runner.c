#include "daemon/run/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/lookup.h"
#include "daemon/base/mem.h"
#include "daemon/link/link.h"
#include "daemon/link/link_wire.h"
#include "daemon/process/wire.h"
#include "daemon/run/run_judge.h"
#include "db/runs.h"

enum slot_state { SLOT_IDLE, SLOT_BEGINNING, SLOT_RUNNING, SLOT_FINISHING };

struct slot {
    struct runner *runner;
    char device[CASE_TITLE_SIZE];
    char boot_id[CASE_NAME_SIZE];
    struct link *link; /* NULL: offline */
    enum slot_state state;

    struct run_intent intent; /* these describe the run while not idle */
    struct case_key key;
    char stack[CASE_NAME_SIZE];
    struct run_options options;
    int iterations;
    int64_t timeout_ms;
    int64_t started_monotonic_ms;
    bool cancelled; /* its job was cancelled, or the service stops */
    char cancel_cause[CASE_TITLE_SIZE];
    struct run_judge judge;
    bool has_judge;

    struct run_record run; /* the result while finishing */
    struct run_result result;
    struct run_effect effect;
    bool store_failed; /* the last attempt failed: try again on the next kick */
};

struct runner {
    struct store *store;
    struct scheduler *scheduler;
    struct runner_hooks hooks;
    struct slot **slots;
    int count;
    struct lookup slot_of; /* a device */
    struct lookup running; /* a run: the slot in which it is, while SLOT_RUNNING */
    bool stopped;
};

static void next_run(struct slot *slot);
static void finish_as(struct slot *slot, enum outcome outcome, const char *cause);

struct runner *runner_new(struct store *store, struct scheduler *scheduler,
                          const struct runner_hooks *hooks)
{
    struct runner *r = xcalloc(1, sizeof *r);

    r->store = store;
    r->scheduler = scheduler;
    r->hooks = *hooks;
    return r;
}

static void drop_judge(struct slot *slot)
{
    if (slot->has_judge) {
        run_judge_release(&slot->judge);
        slot->has_judge = false;
    }
}

void runner_free(struct runner *r)
{
    if (!r) {
        return;
    }
    for (int i = 0; i < r->count; i++) {
        drop_judge(r->slots[i]);
        free(r->slots[i]);
    }
    free(r->slots);
    lookup_release(&r->slot_of);
    lookup_release(&r->running);
    free(r);
}

static struct slot *slot_of_run(struct runner *r, const struct link *link,
                                const char *run)
{
    struct slot *slot = lookup_get(&r->running, run);

    return slot && slot->link == link ? slot : NULL;
}

static enum err_code store_result(struct tx *tx, void *arg, struct err *err)
{
    struct slot *slot = arg;

    return runs_finish(tx, &slot->result, &slot->effect, err);
}

static void result_stored(void *arg, const struct err *err)
{
    struct slot *slot = arg;
    struct runner *r = slot->runner;
    int64_t ms = clock_monotonic_ms() - slot->started_monotonic_ms;

    if (err->code == ERR_INVALID && slot->run.outcome == OUTCOME_COMPLETED) {
        log_error("store: run %s is not proof of work: %s", slot->intent.id,
                  err->message);
        finish_as(slot, OUTCOME_INVALID, err->message);
        return;
    }
    if (err->code != ERR_OK && err->code != ERR_CONFLICT) {
        if (!slot->store_failed) {
            log_error("store: result of run %s: %s; kept, trying again", slot->intent.id,
                      err->message);
        }
        slot->store_failed = true;
        return;
    }
    if (err->code == ERR_CONFLICT) {
        log_error("store: run %s: %s", slot->intent.id, err->message);
        scheduler_put_back(r->scheduler, slot->intent.job, slot->intent.item);
    } else if (slot->effect.is_challenge) {
        scheduler_challenged(r->scheduler, slot->intent.job, slot->intent.item);
        r->hooks.stored(r->hooks.arg, &slot->effect);
    } else {
        for (int i = 0; i < slot->effect.more_count; i++) {
            scheduler_want(r->scheduler, slot->intent.job, slot->effect.more[i].item,
                           slot->effect.more[i].runs_wanted);
        }
        scheduler_finished(r->scheduler, slot->intent.job, slot->intent.item,
                           slot->effect.outcome, ms, slot->effect.item_given_up);
        r->hooks.stored(r->hooks.arg, &slot->effect);
    }
    slot->store_failed = false;
    drop_judge(slot);
    slot->state = SLOT_IDLE;
    if (err->code == ERR_OK && slot->effect.more_count > 0) {
        runner_kick(r);
    }
    next_run(slot);
}

static void finish(struct slot *slot)
{
    lookup_remove(&slot->runner->running, slot->intent.id);
    slot->state = SLOT_FINISHING;
    copy_text(slot->run.id, sizeof slot->run.id, slot->intent.id);
    slot->run.finished = true;
    slot->run.finished_ms = clock_wall_ms();
    slot->result.run = &slot->run;
    store_write(slot->runner->store, store_result, slot, result_stored);
}

/* Ends the run with an outcome that no process reported. */
static void finish_as(struct slot *slot, enum outcome outcome, const char *cause)
{
    slot->run = (struct run_record){ .outcome = outcome };
    slot->result = (struct run_result){ .log = "" };
    if (slot->has_judge && slot->judge.trace.count) {
        slot->result.trace = &slot->judge.trace;
    }
    copy_text(slot->run.cause, sizeof slot->run.cause, cause);
    finish(slot);
}

static enum err_code store_intent(struct tx *tx, void *arg, struct err *err)
{
    struct slot *slot = arg;

    return runs_begin(tx, &slot->intent, err);
}

static void start(struct slot *slot)
{
    struct link_run run = {
        .id = slot->intent.id,
        .stack = slot->stack,
        .device = slot->device,
        .timeout_ms = slot->timeout_ms,
        .key = &slot->key,
        .iterations = slot->iterations,
        .options = &slot->options,
        .check_seconds = slot->intent.checks ? CHECK_SECONDS : 0,
        .check_passed = slot->intent.passed,
    };

    run_judge_init(&slot->judge, &slot->key, slot->device, slot->iterations);
    run_judge_options(&slot->judge, &slot->options);
    if (slot->intent.checks) {
        run_judge_asks_check(&slot->judge, slot->intent.passed);
    }
    slot->has_judge = true;
    slot->state = SLOT_RUNNING;
    lookup_put(&slot->runner->running, slot->intent.id, slot);
    slot->started_monotonic_ms = clock_monotonic_ms();
    link_run(slot->link, &run);
}

static void intent_stored(void *arg, const struct err *err)
{
    struct slot *slot = arg;

    if (err->code != ERR_OK) {
        if (err->code != ERR_CONFLICT && !slot->store_failed) {
            log_error("store: intent of a run: %s; trying again", err->message);
        }
        slot->store_failed = err->code != ERR_CONFLICT;
        scheduler_put_back(slot->runner->scheduler, slot->intent.job, slot->intent.item);
        slot->state = SLOT_IDLE;
        if (err->code == ERR_CONFLICT) {
            next_run(slot);
        }
        return;
    }
    slot->store_failed = false;
    if (slot->intent.challenge) {
        slot->key.seed = slot->intent.challenge;
        slot->options = run_options_of_challenge(&slot->options);
    }
    slot->started_monotonic_ms = clock_monotonic_ms();
    if (slot->cancelled) {
        finish_as(slot, OUTCOME_CANCELLED, slot->cancel_cause);
    } else if (!slot->link) {
        finish_as(slot, OUTCOME_LOST, "the agent was gone before the run was started");
    } else {
        start(slot);
    }
}

static void next_run(struct slot *slot)
{
    struct runner *r = slot->runner;
    struct scheduler_pick pick;

    if (r->stopped || !slot->link || slot->state != SLOT_IDLE ||
        !link_takes_runs(slot->link) ||
        (r->hooks.waits && r->hooks.waits(r->hooks.arg, slot->device)) ||
        !scheduler_next(r->scheduler, slot->device, &pick)) {
        return;
    }
    slot->state = SLOT_BEGINNING;
    slot->cancelled = false;
    slot->intent = (struct run_intent){ .item = pick.item->seq,
                                        .intent_ms = clock_wall_ms(),
                                        .offer = pick.challenge };
    id_new(slot->intent.intent_ms, slot->intent.id);
    copy_text(slot->intent.job, sizeof slot->intent.job, pick.job);
    slot->key = pick.item->key;
    copy_text(slot->stack, sizeof slot->stack, pick.item->stack);
    slot->options = pick.item->options;
    slot->iterations = pick.iterations;
    slot->timeout_ms = pick.timeout_ms;
    store_write(r->store, store_intent, slot, intent_stored);
}

void runner_device_online(struct runner *r, const char *device, struct link *link,
                          const char *boot_id)
{
    struct slot *slot = lookup_get(&r->slot_of, device);

    if (!slot) {
        slot = xcalloc(1, sizeof *slot);
        slot->runner = r;
        copy_text(slot->device, sizeof slot->device, device);
        r->slots = xgrow(r->slots, r->count, sizeof(struct slot *));
        r->slots[r->count++] = slot;
        lookup_put(&r->slot_of, slot->device, slot);
    }
    if (slot->state == SLOT_RUNNING && slot->link != link) {
        link_cancel(slot->link, slot->intent.id);
        finish_as(slot, OUTCOME_LOST, "the device was found to be of another host");
    }
    slot->link = link;
    copy_text(slot->boot_id, sizeof slot->boot_id, boot_id);
    next_run(slot);
}

/* The run did not end while its agent was told to: nobody can blame it. */
static void preempted(struct slot *slot, const char *ending, const char *cause)
{
    char text[CASE_TITLE_SIZE * 2];

    snprintf(text, sizeof text, "preempted: %.100s: %.150s", ending, cause);
    wire_clean(text);
    finish_as(slot, OUTCOME_CANCELLED, slot->cancelled ? slot->cancel_cause : text);
}

void runner_link_closed(struct runner *r, struct link *link, const char *cause)
{
    const char *ending = link_ending(link);

    for (int i = 0; i < r->count; i++) {
        struct slot *slot = r->slots[i];

        if (slot->link == link) {
            slot->link = NULL;
            if (slot->state == SLOT_RUNNING && ending) {
                preempted(slot, ending, cause);
            } else if (slot->state == SLOT_RUNNING) {
                finish_as(slot, OUTCOME_LOST, cause);
            }
        }
    }
}

int runner_link_busy(const struct runner *r, const struct link *link)
{
    int busy = 0;

    for (int i = 0; i < r->count; i++) {
        busy += r->slots[i]->link == link && r->slots[i]->state != SLOT_IDLE;
    }
    return busy;
}

void runner_kick(struct runner *r)
{
    for (int i = 0; i < r->count; i++) {
        struct slot *slot = r->slots[i];

        if (slot->state == SLOT_FINISHING && slot->store_failed) {
            finish(slot);
        } else {
            next_run(slot);
        }
    }
}

static void cancel(struct slot *slot, const char *cause)
{
    slot->cancelled = true;
    copy_text(slot->cancel_cause, sizeof slot->cancel_cause, cause);
    if (slot->state == SLOT_RUNNING) {
        link_cancel(slot->link, slot->intent.id);
    }
}

void runner_cancel_job(struct runner *r, const char *job)
{
    for (int i = 0; i < r->count; i++) {
        if (r->slots[i]->state != SLOT_IDLE &&
            strcmp(r->slots[i]->intent.job, job) == 0) {
            cancel(r->slots[i], "the job was cancelled");
        }
    }
}

void runner_stop(struct runner *r)
{
    r->stopped = true;
}

void runner_cancel_all(struct runner *r, const char *cause)
{
    for (int i = 0; i < r->count; i++) {
        if (r->slots[i]->state != SLOT_IDLE) {
            cancel(r->slots[i], cause);
        }
    }
}

bool runner_uses(const struct runner *r, const char *device)
{
    const struct slot *slot = lookup_get(&r->slot_of, device);

    return slot && slot->state != SLOT_IDLE;
}

int runner_busy(const struct runner *r)
{
    int busy = 0;

    for (int i = 0; i < r->count; i++) {
        busy += r->slots[i]->state != SLOT_IDLE;
    }
    return busy;
}

struct started {
    char run[ID_SIZE], boot_id[CASE_NAME_SIZE];
    int64_t pid, process_start, now_ms;
};

static enum err_code store_started(struct tx *tx, void *arg, struct err *err)
{
    const struct started *s = arg;

    return runs_started(tx, s->run, s->pid, s->process_start, s->boot_id, s->now_ms, err);
}

static void started_stored(void *arg, const struct err *err)
{
    struct started *s = arg;

    if (err->code != ERR_OK) {
        log_warning("store: process of run %s: %s", s->run, err->message);
    }
    free(s);
}

/* Which process the run is, so that it can be found after a crash.  A failure is logged,
 * and the run goes on. */
void runner_started(struct runner *r, struct link *link, const char *run, int64_t pid,
                    int64_t process_start)
{
    const struct slot *slot = slot_of_run(r, link, run);
    struct started *s;

    if (!slot) {
        return;
    }
    s = xcalloc(1, sizeof *s);
    copy_text(s->run, sizeof s->run, run);
    copy_text(s->boot_id, sizeof s->boot_id, slot->boot_id);
    s->pid = pid;
    s->process_start = process_start;
    s->now_ms = clock_wall_ms();
    store_write(r->store, store_started, s, started_stored);
}

void runner_event(struct runner *r, struct link *link, const char *run,
                  const json_t *event)
{
    struct slot *slot = slot_of_run(r, link, run);

    if (slot) {
        run_judge_event(&slot->judge, event);
    }
}

void runner_iterations(struct runner *r, struct link *link, const char *run,
                       const json_t *event)
{
    struct slot *slot = slot_of_run(r, link, run);

    if (slot) {
        run_judge_iterations(&slot->judge, event);
    }
}

void runner_garbage(struct runner *r, struct link *link, const char *run,
                    const char *cause)
{
    struct slot *slot = slot_of_run(r, link, run);

    if (slot) {
        run_judge_garbage(&slot->judge, cause);
    }
}

void runner_exited(struct runner *r, struct link *link, const char *run,
                   const struct run_exit *exit)
{
    struct slot *slot = slot_of_run(r, link, run);

    if (!slot) {
        return;
    }
    run_judge_finish(&slot->judge, exit, &slot->run, &slot->result);
    if (slot->run.outcome == OUTCOME_INVALID && link_ending(link)) {
        slot->run.outcome = OUTCOME_CANCELLED; /* it may have been cut short */
    }
    if (slot->run.outcome == OUTCOME_CANCELLED && slot->cancelled) {
        copy_text(slot->run.cause, sizeof slot->run.cause, slot->cancel_cause);
    } else if (slot->run.outcome == OUTCOME_CANCELLED && link_ending(link)) {
        snprintf(slot->run.cause, sizeof slot->run.cause,
                 "preempted: %.100s, and it did not end within the notice",
                 link_ending(link));
        wire_clean(slot->run.cause);
    }
    finish(slot);
}

void runner_refused(struct runner *r, struct link *link, const char *run,
                    const char *cause)
{
    struct slot *slot = slot_of_run(r, link, run);

    if (slot && link_ending(link)) {
        preempted(slot, link_ending(link), cause);
    } else if (slot) {
        finish_as(slot, OUTCOME_INFRA, cause);
    }
}
