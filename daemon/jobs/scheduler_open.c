#include "daemon/jobs/scheduler_open.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

static void forget_recipe(struct open_jobs *open, struct recipe *recipe)
{
    if (--recipe->uses == 0) {
        lookup_remove(&open->recipes, recipe->name);
        free(recipe->name);
        free(recipe);
    }
}

/* The one that is as WANTED, whose name is not set. */
static struct recipe *find_recipe(struct open_jobs *open, const struct recipe *wanted)
{
    const struct case_key *key = &wanted->key;
    char options[RUN_OPTIONS_SIZE];
    struct recipe *recipe;
    char *name;

    run_options_write(&wanted->options, options);
    name = xasprintf("%s\n%d\n%s\n%s\n%s\n%" PRIu64 "\n%s\n%" PRId64 "\n%s",
                     key->workload, key->version, key->variant, key->size, key->dtype,
                     key->seed, wanted->stack, wanted->timeout_ms, options);
    recipe = lookup_get(&open->recipes, name);
    if (recipe) {
        free(name);
    } else {
        recipe = xmalloc(sizeof *recipe);
        *recipe = *wanted;
        recipe->name = name;
        recipe->uses = 0;
        lookup_put(&open->recipes, name, recipe);
    }
    recipe->uses++;
    return recipe;
}

static struct recipe *recipe_of(struct open_jobs *open, const struct job_item *item)
{
    struct recipe wanted = { .key = item->key,
                             .options = item->options,
                             .timeout_ms = item->timeout_ms };

    copy_text(wanted.stack, sizeof wanted.stack, item->stack);
    return find_recipe(open, &wanted);
}

void open_jobs_change(struct open_jobs *open, struct open_item *item,
                      const struct run_options *options)
{
    struct recipe wanted = *item->recipe;

    wanted.options = *options;
    forget_recipe(open, item->recipe);
    item->recipe = find_recipe(open, &wanted);
}

static struct open_device *find_device(struct open_jobs *open, const char *id)
{
    struct open_device *device = lookup_get(&open->device_of, id);

    if (!device) {
        device = xcalloc(1, sizeof *device);
        copy_text(device->id, sizeof device->id, id);
        lookup_put(&open->device_of, device->id, device);
        open->devices =
            xgrow(open->devices, open->device_count, sizeof(struct open_device *));
        open->devices[open->device_count++] = device;
    }
    return device;
}

/* The part of JOB, the last that came, on DEVICE. */
static struct part *find_part(struct open_job *job, struct open_device *device)
{
    struct part *part = device->count ? device->parts[device->count - 1] : NULL;

    if (!part || part->job != job) {
        part = xcalloc(1, sizeof *part);
        part->job = job;
        part->device = device;
        device->parts = xgrow(device->parts, device->count, sizeof(struct part *));
        device->parts[device->count++] = part;
        job->parts = xgrow(job->parts, job->part_count, sizeof(struct part *));
        job->parts[job->part_count++] = part;
    }
    return part;
}

static void add_item(struct open_jobs *open, struct open_job *job,
                     const struct job_item *from)
{
    struct part *part = find_part(job, find_device(open, from->device));
    struct open_item *item = &job->items[job->count];

    *item = (struct open_item){ .recipe = recipe_of(open, from),
                                .part = part,
                                .milliseconds = from->milliseconds,
                                .wanted = from->runs_wanted,
                                .answered = from->runs_answered,
                                .failed = from->runs_failed,
                                .unanswered = from->runs_unanswered,
                                .given_up = from->given_up,
                                .waits = job->localises || from->held };
    part->items = xgrow(part->items, part->count, sizeof *part->items);
    part->items[part->count++] = job->count++;
    job->ms += item->milliseconds;
    job->attempts += open_item_attempts(item);
}

void open_jobs_add(struct open_jobs *open, const struct job *job)
{
    struct open_job *added = xcalloc(1, sizeof *added);

    copy_text(added->id, sizeof added->id, job->id);
    added->priority = job->priority;
    added->iterations = job->iterations;
    added->timeout_ms = job->timeout_ms;
    added->stops_when_varies = job->stop_when_varies;
    added->localises = added->asks = job->localise_runs > 0;
    added->items = xcalloc((size_t)job->item_count, sizeof *added->items);
    for (int i = 0; i < job->item_count; i++) {
        add_item(open, added, &job->items[i]);
    }
    open->jobs = xgrow(open->jobs, open->count, sizeof(struct open_job *));
    open->jobs[open->count++] = added;
    lookup_put(&open->job_of, added->id, added);
}

static void job_free(struct open_jobs *open, struct open_job *job)
{
    for (int i = 0; i < job->count; i++) {
        forget_recipe(open, job->items[i].recipe);
    }
    for (int i = 0; i < job->part_count; i++) {
        free(job->parts[i]->items);
        free(job->parts[i]);
    }
    free(job->parts);
    free(job->items);
    free(job);
}

static void take_out(void **list, int *count, const void *entry)
{
    int at = 0;

    while (list[at] != entry) {
        at++;
    }
    --*count;
    memmove(&list[at], &list[at + 1], (size_t)(*count - at) * sizeof *list);
}

void open_jobs_remove(struct open_jobs *open, struct open_job *job)
{
    for (int i = 0; i < job->part_count; i++) {
        struct open_device *device = job->parts[i]->device;

        take_out((void **)device->parts, &device->count, job->parts[i]);
    }
    take_out((void **)open->jobs, &open->count, job);
    lookup_remove(&open->job_of, job->id);
    job_free(open, job);
}

void open_jobs_release(struct open_jobs *open)
{
    for (int i = 0; i < open->count; i++) {
        job_free(open, open->jobs[i]);
    }
    for (int i = 0; i < open->device_count; i++) {
        free(open->devices[i]->parts);
        free(open->devices[i]);
    }
    free(open->jobs);
    free(open->devices);
    lookup_release(&open->job_of);
    lookup_release(&open->device_of);
    lookup_release(&open->recipes);
}

/* How long jobs take. */

/* Mean device time of a run of JOB; -1: none has finished. */
static double job_mean(const struct open_job *job)
{
    return job->attempts > 0 ? (double)job->ms / (double)job->attempts : -1;
}

/* Mean of ITEM, or MEAN where it has none yet. */
static double item_mean(const struct open_item *item, double mean)
{
    int attempts = open_item_attempts(item);

    return attempts > 0 ? (double)item->milliseconds / attempts : mean;
}

static double left_of(const struct part *part, double mean)
{
    double left = 0;

    for (int i = part->first_open; i < part->count; i++) {
        const struct open_item *item = &part->job->items[part->items[i]];

        if (!open_item_done(item)) {
            left += (item->wanted - item->answered) * item_mean(item, mean);
        }
    }
    return left;
}

static bool is_done(const struct part *part)
{
    int i = part->first_open;

    while (i < part->count && open_item_done(&part->job->items[part->items[i]])) {
        i++;
    }
    return i == part->count;
}

/* Device time until PART is done: what has a higher priority comes before it. */
static double left_until_done(const struct part *part, double mean)
{
    const struct open_device *device = part->device;
    bool done = is_done(part);
    double left = 0;

    for (int i = 0; i < device->count && !done; i++) {
        const struct open_job *other = device->parts[i]->job;
        double other_mean = job_mean(other);

        if (other == part->job || other->priority < part->job->priority) {
            left += left_of(device->parts[i], other_mean < 0 ? mean : other_mean);
        }
    }
    return left;
}

int64_t open_job_eta(const struct open_job *job)
{
    double mean = job_mean(job);
    double eta = 0;

    for (int i = 0; i < job->part_count && mean >= 0; i++) {
        double left = left_until_done(job->parts[i], mean);

        eta = left > eta ? left : eta;
    }
    return mean < 0 ? -1 : (int64_t)eta;
}
