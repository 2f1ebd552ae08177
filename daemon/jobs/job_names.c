#include "daemon/jobs/job_names.h"

#include <stdio.h>

#include "daemon/base/choices.h"

/* Every name of LIST, the request's member KEY, is one of CHOICES. */
static void check_names(const struct name_list *list, const char *key,
                        enum problem_kind kind, const char *what,
                        const struct choices *choices, struct problems *problems)
{
    for (int i = 0; i < list->count; i++) {
        char pointer[64];
        char hint[NEAREST_HINT_SIZE];

        if (choices_hold(choices, list->names[i])) {
            continue;
        }
        snprintf(pointer, sizeof pointer, "/%s/%d", key, i);
        problems_add(problems, kind, pointer, "%s '%.100s'%s", what, list->names[i],
                     choices_hint(choices, list->names[i], hint));
    }
}

static void check_workloads(const struct job_wishes *wishes,
                            const struct catalogue *catalogue, struct problems *problems)
{
    struct choices all = { .count = 0 };

    for (int i = 0; i < catalogue_count(catalogue); i++) {
        choices_add(&all, catalogue_at(catalogue, i)->name);
    }
    check_names(&wishes->workloads, "workloads", PROBLEM_UNKNOWN_WORKLOAD,
                "there is no workload", &all, problems);
    choices_release(&all);
}

/* Variants, sizes and dtypes: at least one of the chosen workloads has each. */
static void check_parts(const struct job_wishes *wishes,
                        const struct catalogue *catalogue, struct problems *problems)
{
    struct choices variants = { .count = 0 };
    struct choices sizes = { .count = 0 };
    struct choices dtypes = { .count = 0 };

    for (int i = 0; i < catalogue_count(catalogue); i++) {
        const struct catalogue_workload *w = catalogue_at(catalogue, i);

        if (!name_list_allows(&wishes->workloads, w->name)) {
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
    check_names(&wishes->variants, "variants", PROBLEM_UNKNOWN_VARIANT,
                "none of the chosen workloads has a variant", &variants, problems);
    check_names(&wishes->sizes, "sizes", PROBLEM_UNKNOWN_SIZE,
                "none of the chosen workloads has a size", &sizes, problems);
    check_names(&wishes->dtypes, "dtypes", PROBLEM_UNKNOWN_DTYPE,
                "none of the chosen workloads has a dtype", &dtypes, problems);
    choices_release(&variants);
    choices_release(&sizes);
    choices_release(&dtypes);
}

static void check_devices(const struct job_wishes *wishes,
                          const struct device_stack *devices, int device_count,
                          struct problems *problems)
{
    struct choices ids = { .count = 0 };
    struct choices stacks = { .count = 0 };

    for (int i = 0; i < device_count; i++) {
        choices_add(&ids, devices[i].id);
        choices_add(&stacks, devices[i].stack);
    }
    check_names(&wishes->devices, "devices", PROBLEM_UNKNOWN_DEVICE, "there is no device",
                &ids, problems);
    check_names(&wishes->stacks, "stacks", PROBLEM_UNKNOWN_STACK, "there is no stack",
                &stacks, problems);
    choices_release(&ids);
    choices_release(&stacks);
}

void job_names_check(const struct job_wishes *wishes, const struct catalogue *catalogue,
                     const struct device_stack *devices, int device_count,
                     struct problems *problems)
{
    check_workloads(wishes, catalogue, problems);
    check_devices(wishes, devices, device_count, problems);
    if (problems->count == 0) {
        check_parts(wishes, catalogue, problems);
    }
}
