#include "daemon/jobs/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/jobs/scheduler_open.h"

struct scheduler {
    struct open_jobs open;
    uint64_t serial;
    uint64_t random;        /* state of the draws */
    struct job_item picked; /* of the last pick */
};

struct scheduler *scheduler_new(void)
{
    return xcalloc(1, sizeof(struct scheduler));
}

void scheduler_free(struct scheduler *s)
{
    if (s) {
        open_jobs_release(&s->open);
        free(s);
    }
}

void scheduler_add(struct scheduler *s, const struct job *job)
{
    open_jobs_add(&s->open, job);
}

static bool runnable(const struct open_item *item)
{
    return !open_item_done(item) && !item->in_flight && !item->waits;
}

/* Whether A and B, of one device, are of one group. */
static bool same_group(const struct recipe *a, const struct recipe *b)
{
    return a == b || (case_siblings(&a->key, &b->key) && strcmp(a->stack, b->stack) == 0);
}

/* Whether A and B take turns.  No import is shared by two runs of one case, so where
 * imports are shared, every case has its turn before any has its next. */
static bool take_turns(const struct recipe *a, const struct recipe *b)
{
    return same_group(a, b) ||
           (a->options.circumstances.shared_import &&
            b->options.circumstances.shared_import && strcmp(a->stack, b->stack) == 0);
}

/* The item of PART to run next, or -1: of those in the first open group, the one with the
 * fewest attempts. */
static int next_item(const struct part *part)
{
    const struct open_item *items = part->job->items;
    int best = -1;

    for (int i = part->first_open; i < part->count; i++) {
        const struct open_item *item = &items[part->items[i]];

        if (!runnable(item)) {
            continue;
        }
        if (best >= 0 && !take_turns(items[best].recipe, item->recipe)) {
            break;
        }
        if (best < 0 || open_item_attempts(item) < open_item_attempts(&items[best])) {
            best = part->items[i];
        }
    }
    return best;
}

void scheduler_seed(struct scheduler *s, uint64_t seed)
{
    s->random = seed;
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t draw(struct scheduler *s)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* How many runs of ITEM surely come, of which the next is the first. */
static int runs_left(const struct open_job *job, const struct open_item *item)
{
    int end = item->wanted;

    if (job->stops_when_varies && end > JOBS_STOP_RUNS) {
        end = item->answered < JOBS_STOP_RUNS ? JOBS_STOP_RUNS : item->answered + 1;
    }
    return end - item->answered;
}

/* Before one of an item's runs, each as likely as any other: the last one has it surely
 * if none before had.  Seeds have 31 bits, which every program can read. */
static struct challenge_offer draw_challenge(struct scheduler *s,
                                             const struct open_job *job,
                                             const struct open_item *item)
{
    struct challenge_offer offer = { .seed = 0 };

    if (job->localises) {
        return offer;
    }
    offer.seed = 1 + (draw(s) >> 33) % 0x7ffffffe;
    offer.seed += offer.seed == item->recipe->key.seed;
    offer.needed = draw(s) % (uint64_t)runs_left(job, item) == 0 &&
                   item->challenges < CHALLENGES_OF_ITEM;
    offer.draw = (uint32_t)(draw(s) >> 32);
    return offer;
}

/* What a caller may know of ITEM, the SEQth of PART's job. */
static const struct job_item *tell_item(struct scheduler *s, const struct part *part,
                                        int seq)
{
    const struct recipe *recipe = part->job->items[seq].recipe;

    s->picked.seq = seq;
    s->picked.key = recipe->key;
    s->picked.options = recipe->options;
    copy_text(s->picked.stack, sizeof s->picked.stack, recipe->stack);
    copy_text(s->picked.device, sizeof s->picked.device, part->device->id);
    return &s->picked;
}

bool scheduler_next(struct scheduler *s, const char *device,
                    struct scheduler_pick *ret_pick)
{
    const struct open_device *there = lookup_get(&s->open.device_of, device);
    const struct part *best = NULL;
    int best_item = -1;
    struct open_item *item;

    for (int i = 0; there && i < there->count; i++) {
        const struct part *part = there->parts[i];
        const struct open_job *job = part->job;
        int next;

        if (best && (job->priority > best->job->priority ||
                     (job->priority == best->job->priority &&
                      job->served >= best->job->served))) {
            continue;
        }
        next = next_item(part);
        if (next >= 0 || (job->asks && part->items[0] == 0)) {
            best = part;
            best_item = next;
        }
    }
    if (!best || best_item < 0) {
        return false;
    }
    item = &best->job->items[best_item];
    best->job->served = ++s->serial;
    item->in_flight = true;
    *ret_pick = (struct scheduler_pick){
        .job = best->job->id,
        .item = tell_item(s, best, best_item),
        .iterations = best->job->iterations,
        .timeout_ms =
            item->recipe->timeout_ms ? item->recipe->timeout_ms : best->job->timeout_ms,
        .challenge = draw_challenge(s, best->job, item),
    };
    return true;
}

/* Item SEQ of the open job ID, which is RET_JOB; NULL: there is none. */
static struct open_item *find_item(const struct scheduler *s, const char *id, int seq,
                                   struct open_job **ret_job)
{
    struct open_job *job = lookup_get(&s->open.job_of, id);

    *ret_job = job;
    return job && seq >= 0 && seq < job->count ? &job->items[seq] : NULL;
}

static bool is_over(const struct open_item *item)
{
    return open_item_done(item) && !item->in_flight;
}

/* After something of an item of PART ended. */
static void advance(struct scheduler *s, struct open_job *job, struct part *part)
{
    while (part->first_open < part->count &&
           is_over(&job->items[part->items[part->first_open]])) {
        part->first_open++;
    }
    while (job->first_open < job->count && is_over(&job->items[job->first_open])) {
        job->first_open++;
    }
    if (job->first_open == job->count) {
        open_jobs_remove(&s->open, job);
    }
}

void scheduler_finished(struct scheduler *s, const char *id, int seq,
                        enum outcome outcome, int64_t ms, bool given_up)
{
    struct open_job *job;
    struct open_item *item = find_item(s, id, seq, &job);

    if (!item) {
        return;
    }
    item->in_flight = false;
    item->waits = job->asks = job->localises;
    item->answered += outcome_is_answer(outcome);
    item->failed += outcome_is_failure(outcome);
    item->unanswered += !outcome_is_answer(outcome);
    item->milliseconds += ms;
    item->given_up |= given_up;
    job->attempts++;
    job->ms += ms;
    advance(s, job, item->part);
}

void scheduler_release(struct scheduler *s, const char *id, int seq,
                       const struct run_options *options)
{
    struct open_job *job;
    struct open_item *item = find_item(s, id, seq, &job);

    if (item) {
        item->waits = job->asks = false;
        if (options) {
            open_jobs_change(&s->open, item, options);
        }
    }
}

void scheduler_hold(struct scheduler *s, const char *id, int seq)
{
    struct open_job *job;
    struct open_item *item = find_item(s, id, seq, &job);

    if (item) {
        item->waits = true;
    }
}

void scheduler_want(struct scheduler *s, const char *id, int seq, int runs_wanted)
{
    struct open_job *job;
    struct open_item *item = find_item(s, id, seq, &job);

    if (item) {
        item->wanted = runs_wanted;
        item->part->first_open = 0;
        job->first_open = seq < job->first_open ? seq : job->first_open;
    }
}

void scheduler_give_up(struct scheduler *s, const char *id, int seq)
{
    struct open_job *job;
    struct open_item *item = find_item(s, id, seq, &job);

    if (item) {
        item->given_up = true;
        advance(s, job, item->part);
    }
}

void scheduler_challenged(struct scheduler *s, const char *id, int seq)
{
    struct open_job *job;
    struct open_item *item = find_item(s, id, seq, &job);

    if (item) {
        item->in_flight = false;
        item->challenges++;
    }
}

void scheduler_put_back(struct scheduler *s, const char *id, int seq)
{
    struct open_job *job;
    struct open_item *item = find_item(s, id, seq, &job);

    if (item) {
        item->in_flight = false;
    }
}

void scheduler_cancel(struct scheduler *s, const char *id)
{
    struct open_job *job = lookup_get(&s->open.job_of, id);

    if (job) {
        open_jobs_remove(&s->open, job);
    }
}

bool scheduler_progress(const struct scheduler *s, const char *id,
                        struct scheduler_progress *ret_progress)
{
    const struct open_job *job = lookup_get(&s->open.job_of, id);
    struct scheduler_progress p = { 0 };

    if (!job) {
        return false;
    }
    for (int i = 0; i < job->count; i++) {
        const struct open_item *item = &job->items[i];

        p.runs_total += item->given_up ? item->answered : item->wanted;
        p.runs_done += item->answered;
        p.runs_failed += item->failed;
    }
    p.eta_ms = open_job_eta(job);
    *ret_progress = p;
    return true;
}

/* Runs that are to come, or one in flight. */
static bool has_work(const struct open_device *device)
{
    for (int i = 0; i < device->count; i++) {
        const struct part *part = device->parts[i];

        for (int j = part->first_open; j < part->count; j++) {
            if (!is_over(&part->job->items[part->items[j]])) {
                return true;
            }
        }
    }
    return false;
}

bool scheduler_uses(const struct scheduler *s, const char *device)
{
    const struct open_device *there = lookup_get(&s->open.device_of, device);

    return there && has_work(there);
}

void scheduler_each_device(const struct scheduler *s,
                           void (*visit)(void *arg, const char *device), void *arg)
{
    for (int i = 0; i < s->open.device_count; i++) {
        if (has_work(s->open.devices[i])) {
            visit(arg, s->open.devices[i]->id);
        }
    }
}

int scheduler_open_jobs(const struct scheduler *s)
{
    return s->open.count;
}

int64_t scheduler_open_items(const struct scheduler *s)
{
    int64_t items = 0;

    for (int i = 0; i < s->open.count; i++) {
        items += s->open.jobs[i]->count;
    }
    return items;
}
