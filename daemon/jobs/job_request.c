#include "daemon/jobs/job_request.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/jobs/job_localise.h"
#include "daemon/jobs/job_names.h"
#include "daemon/jobs/job_wishes.h"

/* What an expansion works on. */
struct expansion {
    const struct job_wishes *wishes;
    const struct catalogue *catalogue;
    const struct device_stack *devices;
    int device_count;
    struct job *job;
    int capacity;                   /* of the job's items */
    int64_t wanted;                 /* items, counted also beyond the limit */
    char options[JOB_OPTIONS_SIZE]; /* of each item */
};

/* A device named explicitly may be offline: its items wait for it. */
static bool device_chosen(const struct expansion *x, const struct device_stack *d)
{
    return name_list_allows(&x->wishes->stacks, d->stack) &&
           (x->wishes->devices.given ? name_list_allows(&x->wishes->devices, d->id)
                                     : d->online);
}

/* Whether D's worker has the workload that the catalogue of all workers has as W. */
static bool device_has(const struct device_stack *d, const struct catalogue_workload *w)
{
    size_t i;
    json_t *entry;

    if (strcmp(w->backend, d->backend) != 0) {
        return false;
    }
    json_array_foreach((json_t *)d->catalogue, i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "workload"));

        if (name && strcmp(name, w->name) == 0) {
            return true;
        }
    }
    return d->catalogue == NULL;
}

/* Whether W is to run on D with its stack: all that were asked for, or the first of the
 * device that has it. */
static bool stack_chosen(const struct expansion *x, const struct device_stack *d,
                         const struct catalogue_workload *w)
{
    if (!device_has(d, w)) {
        return false;
    }
    if (x->wishes->stacks.given || x->wishes->all_stacks || x->wishes->survey) {
        return true;
    }
    for (const struct device_stack *other = x->devices; other < d; other++) {
        if (strcmp(other->id, d->id) == 0 && device_has(other, w)) {
            return false;
        }
    }
    return true;
}

static bool workload_chosen(const struct expansion *x, const struct catalogue_workload *w)
{
    return x->wishes->workloads.given ? name_list_allows(&x->wishes->workloads, w->name)
                                      : w->surveyed;
}

/* Returns the new item, NULL beyond the limit. */
static struct job_item *add_item(struct expansion *x)
{
    struct job *job = x->job;

    x->wanted++;
    if (job->item_count == JOB_ITEMS_MAX) {
        return NULL;
    }
    if (job->item_count == x->capacity) {
        x->capacity = x->capacity ? 2 * x->capacity : 64;
        job->items = xrealloc(job->items, (size_t)x->capacity * sizeof *job->items);
    }
    job->items[job->item_count] = (struct job_item){ .seq = job->item_count };
    return &job->items[job->item_count++];
}

/* What W wants beyond the default, where the job does not say; 0: the job's. */
static int64_t own_timeout_ms(const struct expansion *x,
                              const struct catalogue_workload *w)
{
    int64_t own = 1000LL * w->timeout_seconds;

    return !x->wishes->timeout_given && own > x->wishes->timeout_ms ? own : 0;
}

/* One workload, size, dtype, seed and device: its variants side by side. */
static void expand_variants(struct expansion *x, const struct catalogue_workload *w,
                            const struct device_stack *device, const struct case_key *key)
{
    for (int v = 0; v < w->variant_count; v++) {
        const struct catalogue_variant *variant = &w->variants[v];
        struct job_item *item;

        if (!name_list_allows(&x->wishes->variants, variant->name) ||
            !(item = add_item(x))) {
            continue;
        }
        item->key = *key;
        copy_text(item->key.variant, sizeof item->key.variant, variant->name);
        item->is_control = variant->control;
        copy_text(item->no_control, sizeof item->no_control,
                  w->no_control ? w->no_control : "");
        copy_text(item->device, sizeof item->device, device->id);
        copy_text(item->stack, sizeof item->stack, device->stack);
        copy_text(item->options, sizeof item->options, x->options);
        item->timeout_ms = own_timeout_ms(x, w);
        item->runs_wanted = x->wishes->runs;
    }
}

/* Whether the position I with that NAME takes part: named, or the default (the first). */
static bool takes_part(const struct name_list *list, int i, const char *name)
{
    return list->given ? name_list_allows(list, name) : i == 0;
}

static void expand_workload(struct expansion *x, const struct catalogue_workload *w,
                            const struct device_stack *device)
{
    struct case_key key = { .version = w->version };

    copy_text(key.workload, sizeof key.workload, w->name);
    for (int s = 0; s < w->size_count; s++) {
        if (!takes_part(&x->wishes->sizes, s, w->sizes[s].name)) {
            continue;
        }
        copy_text(key.size, sizeof key.size, w->sizes[s].name);
        for (int d = 0; d < w->dtype_count; d++) {
            if (!takes_part(&x->wishes->dtypes, d, w->dtypes[d])) {
                continue;
            }
            copy_text(key.dtype, sizeof key.dtype, w->dtypes[d]);
            for (int i = 0; i < x->wishes->seed_count; i++) {
                key.seed = x->wishes->seeds[i];
                expand_variants(x, w, device, &key);
            }
        }
    }
}

/* Every device and stack with the workloads of its worker.  Returns how many were chosen.
 */
static int expand_devices(struct expansion *x)
{
    int chosen = 0;

    for (int i = 0; i < x->device_count; i++) {
        const struct device_stack *device = &x->devices[i];

        if (!device_chosen(x, device)) {
            continue;
        }
        chosen++;
        for (int w = 0; w < catalogue_count(x->catalogue); w++) {
            const struct catalogue_workload *workload = catalogue_at(x->catalogue, w);

            if (workload_chosen(x, workload) && stack_chosen(x, device, workload)) {
                expand_workload(x, workload, device);
            }
        }
    }
    return chosen;
}

/* A workload that was asked for by name can run on one of the chosen devices at least. */
static void check_backends(const struct expansion *x, struct problems *problems)
{
    for (int i = 0; i < x->wishes->workloads.count; i++) {
        const char *name = x->wishes->workloads.names[i];
        bool runs = false;
        char pointer[64];

        for (int d = 0; d < x->device_count && !runs; d++) {
            const struct device_stack *device = &x->devices[d];
            const struct catalogue_workload *w =
                catalogue_find(x->catalogue, name, device->backend);

            runs = w && device_chosen(x, device) && device_has(device, w);
        }
        if (!runs) {
            snprintf(pointer, sizeof pointer, "/workloads/%d", i);
            problems_add(problems, PROBLEM_INVALID, pointer,
                         "workload '%.100s' has no implementation for any chosen device "
                         "and stack",
                         name);
        }
    }
}

/* What cannot be seen member by member. */
static enum err_code check_result(const struct expansion *x, int devices_chosen,
                                  struct problems *problems)
{
    int64_t runs = x->wanted * x->wishes->runs;

    if (devices_chosen == 0 && !x->wishes->devices.given && !x->wishes->stacks.given) {
        problems_add(problems, PROBLEM_NO_DEVICE, "", "no device is online");
        return ERR_BUSY;
    }
    check_backends(x, problems);
    if (x->wishes->localise && x->wanted > 1) {
        job_localise_check(x->job, problems);
    }
    if (x->wanted == 0 && problems->count == 0) {
        problems_add(problems, PROBLEM_INVALID, "",
                     devices_chosen == 0
                         ? "no device is left: none of them is served by these stacks"
                         : "nothing is left to run: no workload has such a combination "
                           "of variant, size and dtype on the chosen devices");
    } else if (x->wanted > JOB_ITEMS_MAX) {
        problems_add(problems, PROBLEM_INVALID, "",
                     "the job would have %lld items; at most %d are allowed: name some "
                     "of the devices or workloads, and submit more jobs",
                     (long long)x->wanted, JOB_ITEMS_MAX);
    } else if (runs > JOB_RUNS_TOTAL_MAX) {
        problems_add(problems, PROBLEM_INVALID, "/runs",
                     "the job would have %lld runs; at most %d are allowed",
                     (long long)runs, JOB_RUNS_TOTAL_MAX);
    }
    return problems->count > 0 ? ERR_INVALID : ERR_OK;
}

/* Strict members are short: they fit. */
static void write_options(struct expansion *x)
{
    char *text = json_dumps(x->wishes->options, JSON_COMPACT | JSON_SORT_KEYS);

    copy_text(x->options, sizeof x->options,
              json_object_size(x->wishes->options) > 0 ? text : "");
    free(text);
}

static void fill_job(struct job *job, const struct expansion *x, const json_t *request)
{
    const struct job_wishes *w = x->wishes;

    if (w->localise) {
        job_localise_items(job, w);
    }
    job->state = JOB_QUEUED;
    job->priority = w->priority;
    job->survey = w->survey;
    job->stop_when_varies = w->stop_when_varies;
    job->iterations = w->iterations;
    job->timeout_ms = w->timeout_ms;
    job->localise_runs = w->localise ? w->runs : 0;
    job->runs_total = job->item_count * (w->localise ? w->runs_max : w->runs);
    job->request = json_dumps(request, JSON_COMPACT | JSON_SORT_KEYS);
}

enum err_code job_request_expand(const json_t *request, const struct catalogue *catalogue,
                                 const struct device_stack *devices, int device_count,
                                 struct job *ret_job, struct problems *ret_problems)
{
    struct job job = { 0 };
    struct job_wishes wishes;
    struct expansion x = { .wishes = &wishes,
                           .catalogue = catalogue,
                           .devices = devices,
                           .device_count = device_count,
                           .job = &job };
    enum err_code code;

    if (!json_is_object(request)) {
        problems_add(ret_problems, PROBLEM_INVALID, "", "must be an object");
        return ERR_INVALID;
    }
    job_wishes_read(request, &wishes, ret_problems);
    write_options(&x);
    job_names_check(&wishes, catalogue, devices, device_count, ret_problems);
    code = ret_problems->count > 0 ? ERR_INVALID
                                   : check_result(&x, expand_devices(&x), ret_problems);
    if (code == ERR_OK) {
        fill_job(&job, &x, request);
        *ret_job = job;
    } else {
        free(job.items);
    }
    job_wishes_release(&wishes);
    return code;
}
