#include "daemon/evidence/verified.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/embed.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"

struct verified_set {
    json_t *reports; /* array of report objects: every text points in there */
    json_t *reshaped;
    struct executed_set *executed;
    struct err err; /* of loading */
};

static const char *const outcomes[] = { "passed",      "failed",  "inconclusive",
                                        "unsupported", "not_run", NULL };

/* The first three of them. */
static bool is_judged(const char *outcome)
{
    return strcmp(outcome, outcomes[0]) == 0 || strcmp(outcome, outcomes[1]) == 0 ||
           strcmp(outcome, outcomes[2]) == 0;
}

static const struct in_member of_variant[] = {
    { "workload", IN_TEXT, .flags = 0 },
    { "variant", IN_TEXT, .flags = 0 },
    { "version", IN_INT, .least = INT32_MIN, .most = INT32_MAX },
    { "outcome", IN_TEXT, .names = outcomes },
};
static const struct in_shape variant_shape = IN_SHAPE(of_variant, NULL);
static const struct in_member a_variant = { .kind = IN_OBJECT, .shape = &variant_shape };

static const struct in_member of_report[] = {
    { "v", IN_INT, .least = 1, .most = 1, .wanted = "must be 1" },
    { "rehearsal", IN_BOOL, .flags = 0 },
    { "date", IN_TEXT, .flags = 0 },
    { "gpu", IN_TEXT, .flags = 0 },
    { "driver", IN_TEXT, .flags = 0 },
    { "worker_build", IN_TEXT, .flags = 0 },
    { "variants", IN_ARRAY, .item = &a_variant },
};
static const struct in_shape report_shape = IN_SHAPE(of_report, NULL);

static enum err_code check_report(const char *name, const json_t *report, struct err *err)
{
    char *where = xasprintf("%s: ", name);
    enum err_code code = in_read_file(&report_shape, report, where, NULL, err);

    free(where);
    if (code == ERR_OK && json_is_true(json_object_get(report, "rehearsal"))) {
        return err_set(err, ERR_INVALID, "%s: is a rehearsal, which verifies nothing",
                       name);
    }
    return code;
}

/* The members of JSON called NAMES, which ends with NULL. */
static json_t *members_of(const json_t *json, const char *const *names)
{
    json_t *kept = json_object();

    for (; *names; names++) {
        json_object_set(kept, *names, json_object_get(json, *names));
    }
    return kept;
}

/* What is shown of REPORT: a hundredth of it. */
static json_t *kept_of(const json_t *report)
{
    static const char *const shown_of_report[] = { "date", "gpu", "driver",
                                                   "worker_build", NULL };
    static const char *const shown_of_variant[] = { "workload", "version", "variant",
                                                    "outcome", NULL };
    json_t *kept = members_of(report, shown_of_report);
    json_t *variants = json_array();
    json_t *item;
    size_t i;

    json_array_foreach(json_object_get(report, "variants"), i, item)
    {
        json_array_append_new(variants, members_of(item, shown_of_variant));
    }
    json_object_set_new(kept, "variants", variants);
    return kept;
}

/* Takes REPORT; NULL is what WHERE describes. */
static enum err_code add(struct verified_set *set, const char *name, json_t *report,
                         const json_error_t *where, struct err *err)
{
    if (!report) {
        return err_set(err, ERR_INVALID, "%s: line %d: %s", name, where->line,
                       where->text);
    }
    if (check_report(name, report, err) != ERR_OK) {
        json_decref(report);
        return err->code;
    }
    json_array_append_new(set->reports, kept_of(report));
    json_decref(report);
    return ERR_OK;
}

/* A unit test reads it, so what is built in is right. */
static void read_reshaped(void *arg, const struct embed *file)
{
    struct verified_set *set = arg;

    set->reshaped = json_loadb(file->start, embed_size(file), 0, NULL);
    embed_forget(file);
}

struct verified_set *verified_set_new(void)
{
    struct verified_set *set = xcalloc(1, sizeof *set);

    set->reports = json_array();
    embed_each("tests/gpu/reshaped.json", read_reshaped, set);
    set->executed = executed_set_load();
    return set;
}

void verified_set_free(struct verified_set *set)
{
    if (set) {
        json_decref(set->reports);
        json_decref(set->reshaped);
        executed_set_free(set->executed);
        free(set);
    }
}

enum err_code verified_set_add(struct verified_set *set, const char *name,
                               const char *text, size_t length, struct err *err)
{
    json_error_t where;
    json_t *report = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);

    return add(set, name, report, &where, err);
}

static void add_embedded(void *arg, const struct embed *file)
{
    struct verified_set *set = arg;

    verified_set_add(set, file->name, file->start, embed_size(file), &set->err);
    embed_forget(file); /* nothing points into it */
}

enum err_code verified_set_load(const json_t *files, struct verified_set **ret_set,
                                struct err *err)
{
    struct verified_set *set = verified_set_new();

    embed_each("tests/gpu/results/", add_embedded, set);
    for (size_t i = 0; i < json_array_size(files) && set->err.code == ERR_OK; i++) {
        const char *path = json_string_value(json_array_get(files, i));
        json_error_t where;
        json_t *report = json_load_file(path, JSON_REJECT_DUPLICATES, &where);

        add(set, path, report, &where, &set->err);
    }
    if (set->err.code != ERR_OK) {
        *err = set->err;
        verified_set_free(set);
        return err->code;
    }
    *ret_set = set;
    return ERR_OK;
}

/* Whether the kernels of ITEM, of a report of DATE, were given another shape since.  They
 * have the same version, since their bits are the same: only a GPU shows whether it has
 * them. */
static bool is_reshaped(const struct verified_set *set, const json_t *item,
                        const char *date)
{
    size_t i;
    json_t *each;

    json_array_foreach(set->reshaped, i, each)
    {
        const char *variant = in_text(each, "variant");

        if (strcmp(in_text(each, "workload"), in_text(item, "workload")) == 0 &&
            (!variant || strcmp(variant, in_text(item, "variant")) == 0) &&
            strcmp(date, in_text(each, "since")) < 0) {
            return true;
        }
    }
    return false;
}

static struct verified verified_of(const struct verified_set *set, const json_t *report,
                                   const json_t *item)
{
    return (struct verified){
        .date = in_text(report, "date"),
        .gpu = in_text(report, "gpu"),
        .driver = in_text(report, "driver"),
        .worker_build = in_text(report, "worker_build"),
        .version = (int)in_int(item, "version"),
        .outcome = in_text(item, "outcome"),
        .is_reshaped = is_reshaped(set, item, in_text(report, "date")),
    };
}

static bool is_about(const json_t *item, const char *workload, const char *variant)
{
    return strcmp(in_text(item, "workload"), workload) == 0 &&
           strcmp(in_text(item, "variant"), variant) == 0 &&
           is_judged(in_text(item, "outcome"));
}

bool verified_find(const struct verified_set *set, const char *workload,
                   const char *variant, struct verified *ret_verified)
{
    bool found = false;
    size_t r;
    size_t i;
    json_t *report;
    json_t *item;

    json_array_foreach(set->reports, r, report)
    {
        json_array_foreach(json_object_get(report, "variants"), i, item)
        {
            if (is_about(item, workload, variant) &&
                (!found || strcmp(in_text(report, "date"), ret_verified->date) > 0)) {
                *ret_verified = verified_of(set, report, item);
                found = true;
            }
        }
    }
    return found;
}

const struct executed_set *verified_executed(const struct verified_set *set)
{
    return set->executed;
}

const char *verified_outcome(const struct verified *verified, int version)
{
    return verified->version == version && !verified->is_reshaped ? verified->outcome
                                                                  : "outdated";
}
