#include "daemon/jobs/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

struct open_job {
    char id[ID_SIZE];
    enum job_priority priority;
    int iterations;
    int64_t timeout_ms;
    struct job_item *items;
    bool *in_flight; /* one an item */
    bool *waits;     /* likewise: not before it is released */
    int *challenges; /* likewise: that were made since the job was added */
    bool localises;
    bool stops_when_varies;
    bool asks; /* waits for the decision whether it goes on */
    int count;
    bool alone;      /* all its items are on one device */
    int first_open;  /* items before it are done */
    uint64_t served; /* serial of the last service; 0: never */
};

struct scheduler {
    struct open_job **jobs; /* in order of arrival */
    int count;
    uint64_t serial;
    uint64_t random; /* state of the draws */
};

struct scheduler *scheduler_new(void)
{
    return xcalloc(1, sizeof(struct scheduler));
}

static void open_job_free(struct open_job *job)
{
    free(job->items);
    free(job->in_flight);
    free(job->waits);
    free(job->challenges);
    free(job);
}

void scheduler_free(struct scheduler *s)
{
    if (!s) {
        return;
    }
    for (int i = 0; i < s->count; i++) {
        open_job_free(s->jobs[i]);
    }
    free(s->jobs);
    free(s);
}

void scheduler_add(struct scheduler *s, const struct job *job)
{
    struct open_job *open = xcalloc(1, sizeof *open);

    copy_text(open->id, sizeof open->id, job->id);
    open->priority = job->priority;
    open->iterations = job->iterations;
    open->timeout_ms = job->timeout_ms;
    open->count = job->item_count;
    open->items = xcalloc((size_t)job->item_count, sizeof *open->items);
    memcpy(open->items, job->items, (size_t)job->item_count * sizeof *open->items);
    open->in_flight = xcalloc((size_t)job->item_count, sizeof *open->in_flight);
    open->waits = xcalloc((size_t)job->item_count, sizeof *open->waits);
    open->challenges = xcalloc((size_t)job->item_count, sizeof *open->challenges);
    open->alone = true;
    for (int i = 1; i < job->item_count && open->alone; i++) {
        open->alone = strcmp(job->items[i].device, job->items[0].device) == 0;
    }
    open->stops_when_varies = job->stop_when_varies;
    open->localises = open->asks = job->localise_runs > 0;
    for (int i = 0; i < job->item_count; i++) {
        open->waits[i] = open->localises || job->items[i].held;
    }
    s->jobs = xgrow(s->jobs, s->count, sizeof(struct open_job *));
    s->jobs[s->count++] = open;
}

static bool item_done(const struct job_item *item)
{
    return item->given_up || item->runs_answered >= item->runs_wanted;
}

static bool same_group(const struct job_item *a, const struct job_item *b)
{
    return case_siblings(&a->key, &b->key) && strcmp(a->device, b->device) == 0 &&
           strcmp(a->stack, b->stack) == 0;
}

static int attempts(const struct job_item *item)
{
    return item->runs_answered + item->runs_unanswered;
}

static bool runnable(const struct open_job *job, int i, const char *device)
{
    return !item_done(&job->items[i]) && !job->in_flight[i] && !job->waits[i] &&
           strcmp(job->items[i].device, device) == 0;
}

/* Large fleets have a job for each device: most are told by one look. */
static bool is_elsewhere(const struct open_job *job, const char *device)
{
    return job->alone && strcmp(job->items[0].device, device) != 0;
}

/* Whether A and B take turns.  No import is shared by two runs of one case, so where
 * imports are shared, every case has its turn before any has its next. */
static bool take_turns(const struct job_item *a, const struct job_item *b)
{
    return same_group(a, b) ||
           (a->options.circumstances.shared_import &&
            b->options.circumstances.shared_import && strcmp(a->stack, b->stack) == 0);
}

/* The item of JOB to run next on DEVICE, or -1: of those in the first open group, the one
 * with the fewest attempts. */
static int next_item(const struct open_job *job, const char *device)
{
    int best = -1;

    for (int i = job->first_open; i < job->count; i++) {
        if (!runnable(job, i, device)) {
            continue;
        }
        if (best >= 0 && !take_turns(&job->items[best], &job->items[i])) {
            break;
        }
        if (best < 0 || attempts(&job->items[i]) < attempts(&job->items[best])) {
            best = i;
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
static int runs_left(const struct open_job *job, const struct job_item *item)
{
    int end = item->runs_wanted;

    if (job->stops_when_varies && end > JOBS_STOP_RUNS) {
        end = item->runs_answered < JOBS_STOP_RUNS ? JOBS_STOP_RUNS
                                                   : item->runs_answered + 1;
    }
    return end - item->runs_answered;
}

/* Before one of an item's runs, each as likely as any other: the last one has it surely
 * if none before had.  Seeds have 31 bits, which every program can read. */
static struct challenge_offer draw_challenge(struct scheduler *s,
                                             const struct open_job *job, int seq)
{
    const struct job_item *item = &job->items[seq];
    struct challenge_offer offer = { .seed = 0 };

    if (job->localises) {
        return offer;
    }
    offer.seed = 1 + (draw(s) >> 33) % 0x7ffffffe;
    offer.seed += offer.seed == item->key.seed;
    offer.needed = draw(s) % (uint64_t)runs_left(job, item) == 0 &&
                   job->challenges[seq] < CHALLENGES_OF_ITEM;
    offer.draw = (uint32_t)(draw(s) >> 32);
    return offer;
}

bool scheduler_next(struct scheduler *s, const char *device,
                    struct scheduler_pick *ret_pick)
{
    struct open_job *best = NULL;
    int best_item = -1;

    for (int i = 0; i < s->count; i++) {
        struct open_job *job = s->jobs[i];
        int item;

        if (is_elsewhere(job, device)) {
            continue;
        }
        if (best && (job->priority > best->priority ||
                     (job->priority == best->priority && job->served >= best->served))) {
            continue;
        }
        item = next_item(job, device);
        if (item >= 0 || (job->asks && strcmp(job->items[0].device, device) == 0)) {
            best = job;
            best_item = item;
        }
    }
    if (!best || best_item < 0) {
        return false;
    }
    best->served = ++s->serial;
    best->in_flight[best_item] = true;
    *ret_pick = (struct scheduler_pick){
        .job = best->id,
        .item = &best->items[best_item],
        .iterations = best->iterations,
        .timeout_ms = best->items[best_item].timeout_ms
                          ? best->items[best_item].timeout_ms
                          : best->timeout_ms,
        .challenge = draw_challenge(s, best, best_item),
    };
    return true;
}

static int find_job(const struct scheduler *s, const char *id)
{
    for (int i = 0; i < s->count; i++) {
        if (strcmp(s->jobs[i]->id, id) == 0) {
            return i;
        }
    }
    return -1;
}

static void remove_job(struct scheduler *s, int index)
{
    open_job_free(s->jobs[index]);
    s->count--;
    memmove(&s->jobs[index], &s->jobs[index + 1],
            (size_t)(s->count - index) * sizeof(struct open_job *));
}

static void advance(struct open_job *job)
{
    while (job->first_open < job->count && item_done(&job->items[job->first_open]) &&
           !job->in_flight[job->first_open]) {
        job->first_open++;
    }
}

static void remove_if_done(struct scheduler *s, int index)
{
    struct open_job *job = s->jobs[index];

    advance(job);
    if (job->first_open == job->count) {
        remove_job(s, index);
    }
}

void scheduler_finished(struct scheduler *s, const char *id, int seq,
                        enum outcome outcome, int64_t ms, bool given_up)
{
    int index = find_job(s, id);
    struct open_job *job = index < 0 ? NULL : s->jobs[index];
    struct job_item *item;

    if (!job || seq < 0 || seq >= job->count) {
        return;
    }
    item = &job->items[seq];
    job->in_flight[seq] = false;
    job->waits[seq] = job->asks = job->localises;
    item->runs_answered += outcome_is_answer(outcome);
    item->runs_failed += outcome_is_failure(outcome);
    item->runs_unanswered += !outcome_is_answer(outcome);
    item->milliseconds += ms;
    item->given_up |= given_up;
    remove_if_done(s, index);
}

/* The open job ID if it has an item SEQ, or NULL. */
static struct open_job *find_item(const struct scheduler *s, const char *id, int seq)
{
    int index = find_job(s, id);

    return index >= 0 && seq >= 0 && seq < s->jobs[index]->count ? s->jobs[index] : NULL;
}

void scheduler_release(struct scheduler *s, const char *id, int seq,
                       const struct run_options *options)
{
    struct open_job *job = find_item(s, id, seq);

    if (job) {
        struct job_item *item = &job->items[seq];

        job->waits[seq] = job->asks = false;
        if (options) {
            item->options = *options;
        }
    }
}

void scheduler_hold(struct scheduler *s, const char *id, int seq)
{
    struct open_job *job = find_item(s, id, seq);

    if (job) {
        job->waits[seq] = true;
    }
}

void scheduler_want(struct scheduler *s, const char *id, int seq, int runs_wanted)
{
    struct open_job *job = find_item(s, id, seq);

    if (job) {
        job->items[seq].runs_wanted = runs_wanted;
        job->first_open = seq < job->first_open ? seq : job->first_open;
    }
}

void scheduler_give_up(struct scheduler *s, const char *id, int seq)
{
    struct open_job *job = find_item(s, id, seq);

    if (job) {
        job->items[seq].given_up = true;
        remove_if_done(s, find_job(s, id));
    }
}

void scheduler_challenged(struct scheduler *s, const char *id, int seq)
{
    struct open_job *job = find_item(s, id, seq);

    if (job) {
        job->in_flight[seq] = false;
        job->challenges[seq]++;
    }
}

void scheduler_put_back(struct scheduler *s, const char *id, int seq)
{
    struct open_job *job = find_item(s, id, seq);

    if (job) {
        job->in_flight[seq] = false;
    }
}

void scheduler_cancel(struct scheduler *s, const char *id)
{
    int index = find_job(s, id);

    if (index >= 0) {
        remove_job(s, index);
    }
}

static int item_total(const struct job_item *item)
{
    return item->given_up ? item->runs_answered : item->runs_wanted;
}

/* Mean device time of a run of ITEM, or of MEAN where it has none yet. */
static double item_mean(const struct job_item *item, double mean)
{
    return attempts(item) > 0 ? (double)item->milliseconds / attempts(item) : mean;
}

/* Mean over all finished runs of JOB; -1 if there is none. */
static double job_mean(const struct open_job *job)
{
    int64_t ms = 0;
    int64_t runs = 0;

    for (int i = 0; i < job->count; i++) {
        ms += job->items[i].milliseconds;
        runs += attempts(&job->items[i]);
    }
    return runs > 0 ? (double)ms / (double)runs : -1;
}

static double left_on_device(const struct open_job *job, const char *device, double mean)
{
    double left = 0;

    for (int i = job->first_open; i < job->count; i++) {
        const struct job_item *item = &job->items[i];

        if (!item_done(item) && strcmp(item->device, device) == 0) {
            left += (item->runs_wanted - item->runs_answered) * item_mean(item, mean);
        }
    }
    return left;
}

/* Device time until JOB's part on DEVICE is done. */
static double left_until_done(const struct scheduler *s, const struct open_job *job,
                              const char *device, double mean)
{
    double left = 0;

    for (int i = 0; i < s->count; i++) {
        const struct open_job *other = s->jobs[i];

        if (other == job || other->priority < job->priority) {
            double other_mean = job_mean(other);

            left += left_on_device(other, device, other_mean < 0 ? mean : other_mean);
        }
    }
    return left;
}

static int64_t job_eta(const struct scheduler *s, const struct open_job *job)
{
    double mean = job_mean(job);
    double eta = 0;

    if (mean < 0) {
        return -1;
    }
    for (int i = job->first_open; i < job->count; i++) {
        /* One look a device: its first item in the job speaks for it. */
        const char *device = job->items[i].device;
        bool seen = false;
        double left;

        for (int j = job->first_open; j < i && !seen; j++) {
            seen = strcmp(job->items[j].device, device) == 0;
        }
        if (!seen) {
            left = left_until_done(s, job, device, mean);
            eta = left > eta ? left : eta;
        }
    }
    return (int64_t)eta;
}

bool scheduler_progress(const struct scheduler *s, const char *id,
                        struct scheduler_progress *ret_progress)
{
    int index = find_job(s, id);
    struct scheduler_progress p = { 0 };

    if (index < 0) {
        return false;
    }
    for (int i = 0; i < s->jobs[index]->count; i++) {
        const struct job_item *item = &s->jobs[index]->items[i];

        p.runs_total += item_total(item);
        p.runs_done += item->runs_answered;
        p.runs_failed += item->runs_failed;
    }
    p.eta_ms = job_eta(s, s->jobs[index]);
    *ret_progress = p;
    return true;
}

bool scheduler_uses(const struct scheduler *s, const char *device)
{
    for (int i = 0; i < s->count; i++) {
        const struct open_job *job = s->jobs[i];

        for (int j = job->first_open; j < job->count && !is_elsewhere(job, device); j++) {
            if ((!item_done(&job->items[j]) || job->in_flight[j]) &&
                strcmp(job->items[j].device, device) == 0) {
                return true;
            }
        }
    }
    return false;
}

void scheduler_each_device(const struct scheduler *s,
                           void (*visit)(void *arg, const char *device), void *arg)
{
    for (int i = 0; i < s->count; i++) {
        const struct open_job *job = s->jobs[i];
        const char *last = "";

        for (int j = job->first_open; j < job->count; j++) {
            const char *device = job->items[j].device;

            if ((!item_done(&job->items[j]) || job->in_flight[j]) &&
                strcmp(device, last) != 0) {
                visit(arg, device);
                last = device;
            }
        }
    }
}

int scheduler_open_jobs(const struct scheduler *s)
{
    return s->count;
}

int64_t scheduler_open_items(const struct scheduler *s)
{
    int64_t items = 0;

    for (int i = 0; i < s->count; i++) {
        items += s->jobs[i]->count;
    }
    return items;
}
