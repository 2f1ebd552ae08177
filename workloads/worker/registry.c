#include "workloads/worker/registry.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/worker/spelling.h"
#include "workloads/worker/validate.h"

/* The linker defines the bounds where the section exists.  Weak: a program without any
 * workload links, and has an empty registry. */
extern const struct workload *const __start_reprod_workloads[] __attribute__((weak));
extern const struct workload *const __stop_reprod_workloads[] __attribute__((weak));

enum { SLOT = sizeof(void *) };

static const char *text(const char *s)
{
    return s ? s : "";
}

static int compare_workloads(const void *a, const void *b)
{
    const struct workload *x = *(const struct workload *const *)a;
    const struct workload *y = *(const struct workload *const *)b;
    int order = strcmp(text(x->name), text(y->name));

    return order ? order : strcmp(text(x->backend), text(y->backend));
}

static int report_duplicates(const struct registry *registry, FILE *defects)
{
    int count = 0;

    for (int i = 1; i < registry->count; i++) {
        const struct workload *w = registry->workloads[i];

        if (compare_workloads(&registry->workloads[i - 1], &registry->workloads[i]) ==
            0) {
            fprintf(defects, "workload '%s': registered twice for backend '%s'\n",
                    text(w->name), text(w->backend));
            count++;
        }
    }
    return count;
}

static bool is_cuda(const struct workload *w)
{
    return w->backend && strcmp(w->backend, "cuda") == 0;
}

/* The loss is not asked for: NULL says that there is none. */
static bool is_complete(const struct workload *w)
{
    return w->title && w->summary && w->size_count && w->dtype_count && w->weight_sum &&
           w->reference;
}

static const struct workload *find_definition(const struct workload *w,
                                              const struct workload *const *begin,
                                              const struct workload *const *end)
{
    for (; begin < end; begin++) {
        if (*begin && strcmp(text((*begin)->name), text(w->name)) == 0 &&
            strcmp(text((*begin)->backend), "cpu") == 0) {
            return *begin;
        }
    }
    return NULL;
}

static void inherit(struct workload *w, const struct workload *from)
{
    w->title = w->title ? w->title : from->title;
    w->summary = w->summary ? w->summary : from->summary;
    w->weight_sum = w->weight_sum ? w->weight_sum : from->weight_sum;
    w->loss = w->loss ? w->loss : from->loss;
    w->reference = w->reference ? w->reference : from->reference;
    if (w->size_count == 0) {
        w->sizes = from->sizes;
        w->size_count = from->size_count;
    }
    if (w->dtype_count == 0) {
        memcpy(w->dtypes, from->dtypes, sizeof(w->dtypes));
        w->dtype_count = from->dtype_count;
    }
    if (w->reference_count == 0) {
        w->references = from->references;
        w->reference_count = from->reference_count;
    }
    if (w->relation_count == 0) {
        w->relations = from->relations;
        w->relation_count = from->relation_count;
    }
}

/* Takes W into the registry, completed; returns the number of its defects. */
static int take(struct registry *registry, const struct workload *w,
                const struct workload *const *begin, const struct workload *const *end,
                FILE *defects)
{
    const struct workload *definition =
        is_cuda(w) ? find_definition(w, begin, end) : NULL;

    if (definition) {
        struct workload *copy = &registry->completed[registry->completed_count++];

        *copy = *w;
        inherit(copy, definition);
        w = copy;
    }
    registry->workloads[registry->count++] = w;
    if (is_cuda(w) && !definition && !is_complete(w)) {
        fprintf(defects,
                "workload '%s': backend \"cuda\" leaves parts to the \"cpu\" workload of "
                "that name, and there is none\n",
                text(w->name));
        return 1;
    }
    return workload_validate(w, defects);
}

int registry_init(struct registry *registry, const struct workload *const *begin,
                  const struct workload *const *end, FILE *defects)
{
    size_t slots = begin ? (size_t)(end - begin) : 0;

    *registry = (struct registry){
        .workloads = run_host_alloc((slots + 1) * SLOT),
        .completed = run_host_alloc((slots + 1) * sizeof(*registry->completed)),
    };
    int found = 0;
    for (size_t i = 0; i < slots; i++) {
        if (begin[i]) {
            found += take(registry, begin[i], begin, end, defects);
        }
    }
    qsort(registry->workloads, (size_t)registry->count, SLOT, compare_workloads);
    return found + report_duplicates(registry, defects);
}

int registry_init_linked(struct registry *registry, FILE *defects)
{
    return registry_init(registry, __start_reprod_workloads, __stop_reprod_workloads,
                         defects);
}

void registry_release(struct registry *registry)
{
    free(registry->workloads);
    free(registry->completed);
    *registry = (struct registry){ 0 };
}

const struct workload *registry_find(const struct registry *registry, const char *name,
                                     const char *backend)
{
    for (int i = 0; i < registry->count; i++) {
        const struct workload *w = registry->workloads[i];

        if (strcmp(w->name, name) == 0 && strcmp(w->backend, backend) == 0) {
            return w;
        }
    }
    return NULL;
}

const char *registry_nearest(const struct registry *registry, const char *name)
{
    const char **names = run_host_alloc((size_t)(registry->count + 1) * sizeof(*names));

    for (int i = 0; i < registry->count; i++) {
        names[i] = registry->workloads[i]->name;
    }
    const char *nearest = spelling_nearest(name, names, registry->count);
    free(names);
    return nearest;
}
