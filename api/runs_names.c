#include "api/runs_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "db/cells.h"
#include "db/names.h"

static const struct {
    const char *parameter;
    enum problem_kind problem;
    const char *what;
} kinds[RUNS_NAMES] = {
    [NAME_WORKLOAD] = { "workload", PROBLEM_UNKNOWN_WORKLOAD, "there is no workload" },
    [NAME_VARIANT] = { "variant", PROBLEM_UNKNOWN_VARIANT, "no workload has a variant" },
    [NAME_DEVICE] = { "device", PROBLEM_UNKNOWN_DEVICE, "there is no device" },
};

static const char *wanted(const struct runs_filter *filter, enum name_kind kind)
{
    switch (kind) {
    case NAME_WORKLOAD:
        return filter->workload;
    case NAME_VARIANT:
        return filter->variant;
    default:
        return filter->device;
    }
}

void runs_names_release(struct runs_names *names)
{
    for (int i = 0; i < RUNS_NAMES; i++) {
        choices_release(&names->known[i]);
    }
}

static void add_name(void *arg, const char *name)
{
    choices_add(arg, name);
}

static enum err_code read_kind(struct tx *tx, const struct runs_filter *filter,
                               enum name_kind kind, struct runs_names *names,
                               struct err *err)
{
    const char *of = kind == NAME_VARIANT ? filter->workload : "";
    const char *name = wanted(filter, kind);
    bool has = true;

    if (name[0] && names_has(tx, kind, of, name, &has, err) != ERR_OK) {
        return err->code;
    }
    names->unknown[kind] = !has;
    return has ? ERR_OK : names_each(tx, kind, of, add_name, &names->known[kind], err);
}

static enum err_code check_job(struct tx *tx, const char *job, struct problems *problems,
                               struct err *err)
{
    bool has = true;

    if (job[0] && names_has(tx, NAME_JOB, "", job, &has, err) != ERR_OK) {
        return err->code;
    }
    if (!has) {
        problems_add_parameter(problems, PROBLEM_INVALID_PARAMETER, "job",
                               "there is no job %s", job);
    }
    return ERR_OK;
}

static enum err_code check_cell(struct tx *tx, int64_t id, struct problems *problems,
                                struct err *err)
{
    struct cell cell;
    enum err_code code = id ? cells_get(tx, id, &cell, err) : ERR_OK;

    if (code == ERR_NOT_FOUND) {
        problems_add_parameter(problems, PROBLEM_INVALID_PARAMETER, "cell",
                               "there is no cell %" PRId64, id);
        return ERR_OK;
    }
    return code;
}

enum err_code runs_names_read(struct tx *tx, const struct runs_filter *filter,
                              struct problems *problems, struct runs_names *ret_names,
                              struct err *err)
{
    for (int i = 0; i < RUNS_NAMES; i++) {
        if (read_kind(tx, filter, (enum name_kind)i, ret_names, err) != ERR_OK) {
            return err->code;
        }
    }
    if (check_job(tx, filter->job, problems, err) != ERR_OK) {
        return err->code;
    }
    return check_cell(tx, filter->cell, problems, err);
}

static void add_from_catalogue(const struct catalogue *catalogue,
                               const struct runs_filter *filter, enum name_kind kind,
                               struct choices *choices)
{
    for (int i = 0; i < catalogue_count(catalogue); i++) {
        const struct catalogue_workload *w = catalogue_at(catalogue, i);

        if (kind == NAME_WORKLOAD) {
            choices_add(choices, w->name);
        } else if (!filter->workload[0] || strcmp(filter->workload, w->name) == 0) {
            for (int v = 0; v < w->variant_count; v++) {
                choices_add(choices, w->variants[v].name);
            }
        }
    }
}

static void add_devices(const struct api_hooks *hooks, struct choices *choices)
{
    const struct device_stack *devices;
    int count = hooks->devices(hooks->arg, &devices);

    for (int i = 0; i < count; i++) {
        choices_add(choices, devices[i].id);
    }
}

/* Adds what the agents know to what the database knows. */
static void add_present(struct request *r, const struct runs_filter *filter,
                        enum name_kind kind, struct choices *known)
{
    const struct api_hooks *hooks = &r->api->hooks;

    if (kind == NAME_DEVICE) {
        add_devices(hooks, known);
    } else {
        add_from_catalogue(hooks->catalogue(hooks->arg), filter, kind, known);
    }
}

static void refuse(struct request *r, const struct runs_filter *filter,
                   enum name_kind kind, const struct choices *known)
{
    bool of_one = kind == NAME_VARIANT && filter->workload[0];
    const char *name = wanted(filter, kind);
    char *near = choices_suggestion(known, name);

    problems_add_parameter(
        &r->problems, kinds[kind].problem, kinds[kind].parameter, "%s '%.100s'%s",
        of_one ? "the workload has no variant" : kinds[kind].what, name, near);
    free(near);
}

void runs_names_check(struct request *r, const struct runs_filter *filter,
                      struct runs_names *names)
{
    bool agents_said = r->api->hooks.catalogue(r->api->hooks.arg) != NULL;
    int before = r->problems.count;

    for (int i = 0; agents_said && i < RUNS_NAMES; i++) {
        struct choices *known = &names->known[i];

        if (!names->unknown[i] || (i == NAME_VARIANT && r->problems.count > before)) {
            continue; /* of a workload that is none, nothing is known */
        }
        add_present(r, filter, (enum name_kind)i, known);
        if (!choices_hold(known, wanted(filter, (enum name_kind)i))) {
            refuse(r, filter, (enum name_kind)i, known);
        }
    }
}
