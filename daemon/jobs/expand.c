#include "daemon/jobs/expand.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/buf.h"
#include "daemon/base/choices.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/request.h"

/* Whether the Ith of LIST is a name that is not listed before it; others were refused. */
static bool is_new_name(const json_t *list, size_t i)
{
    const char *name = json_string_value(json_array_get(list, i));
    size_t first = 0;

    while (!json_equal(json_array_get(list, first), json_array_get(list, i))) {
        first++;
    }
    return name && *name && first == i;
}

/* Every name of LIST, the request's member KEY, is one of CHOICES. */
static void check_names(const json_t *list, const char *key, enum problem_kind kind,
                        const char *what, const struct choices *choices,
                        struct problems *problems)
{
    size_t i;
    json_t *item;

    json_array_foreach((json_t *)list, i, item)
    {
        const char *name = json_string_value(item);
        char pointer[64];
        char hint[NEAREST_HINT_SIZE];

        if (is_new_name(list, i) && !choices_hold(choices, name)) {
            snprintf(pointer, sizeof pointer, "/%s/%zu", key, i);
            problems_add(problems, kind, pointer, "%s '%.100s'%s", what, name,
                         choices_hint(choices, name, hint));
        }
    }
}

static void check_workloads(const struct job_request *request,
                            const struct catalogue *catalogue, struct problems *problems)
{
    struct choices all = { .count = 0 };

    for (int i = 0; i < catalogue_count(catalogue); i++) {
        choices_add(&all, catalogue_at(catalogue, i)->name);
    }
    check_names(request->workloads, "workloads", PROBLEM_UNKNOWN_WORKLOAD,
                "there is no workload", &all, problems);
    choices_release(&all);
}

/* Variants, sizes and dtypes: at least one of the chosen workloads has each. */
static void check_variants(const struct job_request *request,
                           const struct catalogue *catalogue, struct problems *problems)
{
    struct choices variants = { .count = 0 };
    struct choices sizes = { .count = 0 };
    struct choices dtypes = { .count = 0 };

    for (int i = 0; i < catalogue_count(catalogue); i++) {
        const struct catalogue_workload *w = catalogue_at(catalogue, i);

        if (!name_list_allows(request->workloads, w->name)) {
            continue;
        }
        for (int v = 0; v < w->variant_count; v++) {
            choices_add(&variants, w->variants[v].name);
        }
        for (int s = 0; s < w->size_count; s++) {
            choices_add(&sizes, w->sizes[s].name);
        }
        for (int d = 0; d < w->dtype_count; d++) {
            choices_add(&dtypes, w->dtypes[d]);
        }
    }
    check_names(request->variants, "variants", PROBLEM_UNKNOWN_VARIANT,
                "none of the chosen workloads has a variant", &variants, problems);
    check_names(request->sizes, "sizes", PROBLEM_UNKNOWN_SIZE,
                "none of the chosen workloads has a size", &sizes, problems);
    check_names(request->dtypes, "dtypes", PROBLEM_UNKNOWN_DTYPE,
                "none of the chosen workloads has a dtype", &dtypes, problems);
    choices_release(&variants);
    choices_release(&sizes);
    choices_release(&dtypes);
}

static void check_devices(const struct job_request *request,
                          const struct device_stack *devices, int device_count,
                          struct problems *problems)
{
    struct choices ids = { .count = 0 };
    struct choices stacks = { .count = 0 };

    for (int i = 0; i < device_count && (request->devices || request->stacks); i++) {
        choices_add(&ids, devices[i].id);
        choices_add(&stacks, devices[i].stack);
    }
    check_names(request->devices, "devices", PROBLEM_UNKNOWN_DEVICE, "there is no device",
                &ids, problems);
    check_names(request->stacks, "stacks", PROBLEM_UNKNOWN_STACK, "there is no stack",
                &stacks, problems);
    choices_release(&ids);
    choices_release(&stacks);
}

/* Adds to PROBLEMS each workload, device and stack that is not there, and, where nothing
 * is wrong by then, each variant, size and dtype that no chosen workload has. */
static void check_all_names(const struct job_request *request,
                            const struct catalogue *catalogue,
                            const struct device_stack *devices, int device_count,
                            struct problems *problems)
{
    check_workloads(request, catalogue, problems);
    check_devices(request, devices, device_count, problems);
    if (problems->count == 0) {
        check_variants(request, catalogue, problems);
    }
}

/* What an expansion works on. */
struct expansion {
    const struct job_request *request;
    const struct catalogue *catalogue;
    const struct device_stack *devices;
    int device_count;
    struct job *job;
    int64_t wanted;                          /* items, counted also beyond the limit */
    const struct catalogue_workload *unable; /* the first that cannot compute under the
                                                circumstances; NULL: each can */
};

/* A device named explicitly may be offline: its items wait for it. */
static bool device_chosen(const struct expansion *x, const struct device_stack *d)
{
    return name_list_allows(x->request->stacks, d->stack) &&
           (x->request->devices ? name_list_allows(x->request->devices, d->id)
                                : device_is_there(d));
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
    if (x->request->stacks || x->request->all_stacks || x->request->survey) {
        return true;
    }
    for (const struct device_stack *other = x->devices; other < d && !d->is_default;
         other++) {
        if (strcmp(other->id, d->id) == 0 && device_has(other, w)) {
            return false;
        }
    }
    return true;
}

static bool workload_chosen(const struct expansion *x, const struct catalogue_workload *w)
{
    return x->request->workloads ? name_list_allows(x->request->workloads, w->name)
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
    job->items = xgrow(job->items, job->item_count, sizeof *job->items);
    job->items[job->item_count] = (struct job_item){ .seq = job->item_count };
    return &job->items[job->item_count++];
}

/* What W wants beyond the default, where the job does not say; 0: the job's. */
static int64_t own_timeout_ms(const struct expansion *x,
                              const struct catalogue_workload *w)
{
    int64_t own = 1000LL * w->timeout_seconds;

    return !x->request->timeout_given && own > x->request->timeout_ms ? own : 0;
}

/* One workload, size, dtype, seed and device: its variants side by side. */
static void expand_variants(struct expansion *x, const struct catalogue_workload *w,
                            const struct device_stack *device, const struct case_key *key)
{
    for (int v = 0; v < w->variant_count; v++) {
        const struct catalogue_variant *variant = &w->variants[v];
        struct job_item *item;

        if (!name_list_allows(x->request->variants, variant->name) ||
            !(item = add_item(x))) {
            continue;
        }
        item->key = *key;
        copy_text(item->key.variant, sizeof item->key.variant, variant->name);
        item->is_control = variant->control;
        copy_text(item->kind, sizeof item->kind, variant->kind);
        copy_text(item->no_control, sizeof item->no_control,
                  w->no_control ? w->no_control : "");
        item->unseeded = w->unseeded;
        item->subject = variant->subject;
        copy_text(item->subject_name, sizeof item->subject_name,
                  variant->subject_name ? variant->subject_name : "");
        copy_text(item->device, sizeof item->device, device->id);
        copy_text(item->stack, sizeof item->stack, device->stack);
        item->options = x->request->options;
        item->timeout_ms = own_timeout_ms(x, w);
        item->runs_wanted = x->request->runs;
    }
}

/* Whether the Ith of a list, with that NAME, is chosen: named, or the default (the
 * first). */
static bool is_chosen(const json_t *list, int i, const char *name)
{
    return list ? name_list_allows(list, name) : i == 0;
}

static void expand_workload(struct expansion *x, const struct catalogue_workload *w,
                            const struct device_stack *device)
{
    struct case_key key = { .version = w->version };

    copy_text(key.workload, sizeof key.workload, w->name);
    for (int s = 0; s < w->size_count; s++) {
        if (!is_chosen(x->request->sizes, s, w->sizes[s].name)) {
            continue;
        }
        copy_text(key.size, sizeof key.size, w->sizes[s].name);
        for (int d = 0; d < w->dtype_count; d++) {
            if (!is_chosen(x->request->dtypes, d, w->dtypes[d])) {
                continue;
            }
            copy_text(key.dtype, sizeof key.dtype, w->dtypes[d]);
            for (int i = 0; i < x->request->seed_count; i++) {
                key.seed = x->request->seeds[i];
                expand_variants(x, w, device, &key);
            }
        }
    }
}

static void check_able(struct expansion *x, const struct catalogue_workload *w)
{
    if (!x->unable &&
        run_circumstances_beyond(&x->request->options.circumstances, w->circumstances)) {
        x->unable = w;
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
                check_able(x, workload);
                expand_workload(x, workload, device);
            }
        }
    }
    return chosen;
}

enum { STACKS_NAMED = 3, STACKS_SIZE = 256 };

/* "; the stacks a, b have it": of an operation that one version of a framework lacks.  ""
 * where none has.  Returns RET_WORDS. */
static const char *who_has(const struct expansion *x, const char *workload,
                           char ret_words[STACKS_SIZE])
{
    size_t length = 0;
    int named = 0;

    ret_words[0] = '\0';
    for (int d = 0; d < x->device_count && named < STACKS_NAMED; d++) {
        const struct device_stack *device = &x->devices[d];
        const struct catalogue_workload *w =
            catalogue_find(x->catalogue, workload, device->backend);

        if (w && device_has(device, w) && length < STACKS_SIZE) {
            length +=
                (size_t)snprintf(ret_words + length, STACKS_SIZE - length, "%s%.60s",
                                 named++ ? ", " : "; it is in stack ", device->stack);
        }
    }
    return ret_words;
}

/* A workload that was asked for by name can run on one of the chosen devices at least. */
static void check_backends(const struct expansion *x, struct problems *problems)
{
    for (size_t i = 0; i < json_array_size(x->request->workloads); i++) {
        const char *name = json_string_value(json_array_get(x->request->workloads, i));
        bool runs = false;
        char pointer[64], words[STACKS_SIZE];

        for (int d = 0; d < x->device_count && !runs; d++) {
            const struct device_stack *device = &x->devices[d];
            const struct catalogue_workload *w =
                catalogue_find(x->catalogue, name, device->backend);

            runs = w && device_chosen(x, device) && device_has(device, w);
        }
        if (!runs) {
            snprintf(pointer, sizeof pointer, "/workloads/%zu", i);
            problems_add(problems, PROBLEM_INVALID, pointer,
                         "workload '%.100s' has no implementation for any chosen device "
                         "and stack%s",
                         name, who_has(x, name, words));
        }
    }
}

static bool fills_bytes(const json_t *circumstances)
{
    for (size_t i = 0; i < json_array_size(circumstances); i++) {
        const char *one = json_string_value(json_array_get(circumstances, i));

        if (one && strcmp(one, RUN_POISON_OF_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

static void check_circumstances(const struct expansion *x, struct problems *problems)
{
    const char *name = x->unable
                           ? run_circumstances_beyond(&x->request->options.circumstances,
                                                      x->unable->circumstances)
                           : NULL;
    char pointer[32];

    if (name) {
        snprintf(pointer, sizeof pointer, "/%s", name);
        problems_add(
            problems, PROBLEM_INVALID, pointer,
            "workload '%.100s' cannot compute under %s%s", x->unable->name, name,
            fills_bytes(x->unable->circumstances) && strcmp(name, "memory_poison") == 0
                ? " of this pattern: its memory is filled byte by byte, so give "
                  "true or four equal bytes"
                : ": its configuration does not list it among its circumstances");
    }
}

enum { NAMED_MAX = 4 };

/* The members that choose one of several, and where an item has what they name. */
static const struct {
    const char *member;
    size_t at;
} choosing[] = {
    { "workloads", offsetof(struct job_item, key.workload) },
    { "variants", offsetof(struct job_item, key.variant) },
    { "sizes", offsetof(struct job_item, key.size) },
    { "dtypes", offsetof(struct job_item, key.dtype) },
    { "seeds", offsetof(struct job_item, key.seed) },
    { "devices", offsetof(struct job_item, device) },
    { "stacks", offsetof(struct job_item, stack) },
};
enum { CHOOSING_COUNT = COUNT_OF(choosing) };

static void name_of(const struct job_item *item, int member, char *ret_text, size_t size)
{
    if (choosing[member].at == offsetof(struct job_item, key.seed)) {
        snprintf(ret_text, size, "%" PRIu64, item->key.seed);
    } else {
        copy_text(ret_text, size, (const char *)item + choosing[member].at);
    }
}

/* Appends the first names that the items have for MEMBER of `choosing`; returns how many
 * there are, or NAMED_MAX + 1 for more. */
static int list_names(const struct job *job, int member, struct buf *names)
{
    char seen[NAMED_MAX][CASE_TITLE_SIZE];
    int count = 0;

    for (int i = 0; i < job->item_count && count <= NAMED_MAX; i++) {
        char name[CASE_TITLE_SIZE];
        bool known = false;

        name_of(&job->items[i], member, name, sizeof name);
        for (int j = 0; j < count && !known; j++) {
            known = strcmp(seen[j], name) == 0;
        }
        if (known) {
            continue;
        }
        if (count < NAMED_MAX) {
            copy_text(seen[count], sizeof seen[count], name);
            buf_printf(names, "%s'%s'", count ? ", " : "", name);
        }
        count++;
    }
    buf_puts(names, count > NAMED_MAX ? ", …" : "");
    return count;
}

/* JOB has more than one item: says which members of the request are to be narrowed. */
static void check_localise(const struct job *job, struct problems *problems)
{
    for (int m = 0; m < CHOOSING_COUNT; m++) {
        struct buf names = BUF_INIT;
        char pointer[32];

        snprintf(pointer, sizeof pointer, "/%s", choosing[m].member);
        if (list_names(job, m, &names) > 1) {
            problems_add(problems, PROBLEM_INVALID, pointer,
                         "localise looks at one case on one device with one stack; name "
                         "one of %s",
                         names.data);
        }
        buf_release(&names);
    }
}

/* JOB has one item: makes it the one that leaves traces, and adds the one that captures.
 */
static void add_localise_items(struct job *job, const struct job_request *request)
{
    struct job_item *items =
        xrealloc(job->items, LOCALISATION_ITEMS * sizeof *job->items);

    items[LOCALISATION_SEARCH].runs_wanted = request->runs_max;
    items[LOCALISATION_CAPTURE] = items[LOCALISATION_SEARCH];
    items[LOCALISATION_CAPTURE].seq = LOCALISATION_CAPTURE;
    items[LOCALISATION_CAPTURE].options =
        (struct run_options){ .circumstances = request->options.circumstances };
    if (request->options.probes == 0) {
        items[LOCALISATION_SEARCH].options.probes = 1;
    }
    job->items = items;
    job->item_count = LOCALISATION_ITEMS;
}

/* What cannot be seen member by member. */
static enum err_code check_result(const struct expansion *x, int devices_chosen,
                                  struct problems *problems)
{
    int64_t runs = x->wanted * x->request->runs;

    if (devices_chosen == 0 && !x->request->devices && !x->request->stacks) {
        problems_add(problems, PROBLEM_NO_DEVICE, "", "no device is online");
        return ERR_BUSY;
    }
    check_backends(x, problems);
    check_circumstances(x, problems);
    if (x->request->localise && x->wanted > 1) {
        check_localise(x->job, problems);
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

static void fill_job(struct job *job, const struct expansion *x, const json_t *json)
{
    const struct job_request *w = x->request;

    if (w->localise) {
        add_localise_items(job, w);
    }
    job->state = JOB_QUEUED;
    job->priority = w->priority;
    job->survey = w->survey;
    job->stop_when_varies = w->stop_when_varies;
    job->iterations = w->iterations;
    job->timeout_ms = w->timeout_ms;
    job->localise_runs = w->localise ? w->runs : 0;
    job->runs_total = job->item_count * (w->localise ? w->runs_max : w->runs);
    job->request = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
}

enum err_code job_request_expand(const json_t *json, const struct catalogue *catalogue,
                                 const struct device_stack *devices, int device_count,
                                 struct job *ret_job, struct problems *ret_problems)
{
    struct job job = { 0 };
    struct job_request request;
    struct expansion x = { .request = &request,
                           .catalogue = catalogue,
                           .devices = devices,
                           .device_count = device_count,
                           .job = &job };
    enum err_code code;

    if (!json_is_object(json)) {
        problems_add(ret_problems, PROBLEM_INVALID, "", "must be an object");
        return ERR_INVALID;
    }
    job_request_read(json, &request, ret_problems);
    check_all_names(&request, catalogue, devices, device_count, ret_problems);
    code = ret_problems->count > 0 ? ERR_INVALID
                                   : check_result(&x, expand_devices(&x), ret_problems);
    if (code == ERR_OK) {
        fill_job(&job, &x, json);
        *ret_job = job;
    } else {
        free(job.items);
    }
    job_request_release(&request);
    return code;
}
