#include "daemon/evidence/verified.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/embed.h"
#include "daemon/base/mem.h"

struct verified_set {
    json_t *reports; /* array of report objects: every text points in there */
    struct err err;  /* of loading */
};

static const char *const judged[] = { "passed", "failed", "inconclusive" };
static const char *const others[] = { "unsupported", "not_run" };

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_judged(const char *outcome)
{
    return is_one_of(outcome, judged, COUNT_OF(judged));
}

static enum err_code check_variants(const char *name, json_t *variants, struct err *err)
{
    size_t i;
    json_t *item;
    const char *text;
    const char *outcome;
    int version;

    json_array_foreach(variants, i, item)
    {
        if (json_unpack(item, "{s:s, s:s, s:i, s:s}", "workload", &text, "variant", &text,
                        "version", &version, "outcome", &outcome) != 0) {
            return err_set(err, ERR_INVALID,
                           "%s: /variants/%zu: needs workload, variant, version and "
                           "outcome",
                           name, i);
        }
        if (!is_judged(outcome) && !is_one_of(outcome, others, COUNT_OF(others))) {
            return err_set(err, ERR_INVALID, "%s: /variants/%zu/outcome: unknown", name,
                           i);
        }
    }
    return ERR_OK;
}

static enum err_code check_report(const char *name, json_t *report, struct err *err)
{
    const char *text;
    json_t *variants;
    int rehearsal;
    int v;

    if (json_unpack(report, "{s:i, s:b, s:s, s:s, s:s, s:s, s:o}", "v", &v, "rehearsal",
                    &rehearsal, "date", &text, "gpu", &text, "driver", &text,
                    "worker_build", &text, "variants", &variants) != 0 ||
        v != 1 || !json_is_array(variants)) {
        return err_set(err, ERR_INVALID,
                       "%s: needs v 1, rehearsal, date, gpu, driver, worker_build and "
                       "variants",
                       name);
    }
    if (rehearsal) {
        return err_set(err, ERR_INVALID, "%s: is a rehearsal, which verifies nothing",
                       name);
    }
    return check_variants(name, variants, err);
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
    json_array_append_new(set->reports, report);
    return ERR_OK;
}

struct verified_set *verified_set_new(void)
{
    struct verified_set *set = xcalloc(1, sizeof *set);

    set->reports = json_array();
    return set;
}

void verified_set_free(struct verified_set *set)
{
    if (set) {
        json_decref(set->reports);
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

    if (set->err.code == ERR_OK) {
        verified_set_add(set, file->name, file->start, embed_size(file), &set->err);
    }
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

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static struct verified verified_of(const json_t *report, const json_t *item)
{
    return (struct verified){
        .date = text_of(report, "date"),
        .gpu = text_of(report, "gpu"),
        .driver = text_of(report, "driver"),
        .worker_build = text_of(report, "worker_build"),
        .version = (int)json_integer_value(json_object_get(item, "version")),
        .outcome = text_of(item, "outcome"),
    };
}

static bool is_about(const json_t *item, const char *workload, const char *variant)
{
    return strcmp(text_of(item, "workload"), workload) == 0 &&
           strcmp(text_of(item, "variant"), variant) == 0 &&
           is_judged(text_of(item, "outcome"));
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
                (!found || strcmp(text_of(report, "date"), ret_verified->date) > 0)) {
                *ret_verified = verified_of(report, item);
                found = true;
            }
        }
    }
    return found;
}

const char *verified_outcome(const struct verified *verified, int version)
{
    return verified->version == version ? verified->outcome : "outdated";
}
