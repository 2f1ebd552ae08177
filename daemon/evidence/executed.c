/* What nvcc's PTX showed on a CPU: the second half of verified.h. */
#include "daemon/evidence/verified.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/embed.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"

struct variant {
    char *workload, *name, *sizes;
    int version;
    bool passed;
};

struct executed_set {
    char *date, *toolkit, *target;
    struct variant *variants;
    size_t count;
};

static const char *const outcomes[] = { "passed", "failed", NULL };
static const struct in_member a_size = { .kind = IN_TEXT };
static const struct in_member of_variant[] = {
    { "workload", IN_TEXT, .flags = 0 },
    { "variant", IN_TEXT, .flags = 0 },
    { "version", IN_INT, .least = INT32_MIN, .most = INT32_MAX },
    { "outcome", IN_TEXT, .names = outcomes },
    { "sizes", IN_ARRAY, .item = &a_size },
};
static const struct in_shape variant_shape = IN_SHAPE(of_variant, NULL);
static const struct in_member a_variant = { .kind = IN_OBJECT, .shape = &variant_shape };

static const struct in_member of_results[] = {
    { "v", IN_INT, .least = 1, .most = 1, .wanted = "must be 1" },
    { "date", IN_TEXT, .flags = 0 },
    { "toolkit", IN_TEXT, .flags = 0 },
    { "target", IN_TEXT, .flags = 0 },
    { "variants", IN_ARRAY, .item = &a_variant },
};
static const struct in_shape results_shape = IN_SHAPE(of_results, NULL);

static char *sizes_of(const json_t *sizes)
{
    struct buf buf = BUF_INIT;
    size_t length;
    size_t i;
    json_t *size;

    json_array_foreach(sizes, i, size)
    {
        buf_puts(&buf, i ? ", " : "");
        buf_puts(&buf, json_string_value(size));
    }
    return buf_detach(&buf, &length);
}

static void take(struct executed_set *set, const json_t *results)
{
    const json_t *variants = json_object_get(results, "variants");
    size_t i;
    json_t *item;

    set->date = xstrdup(in_text(results, "date"));
    set->toolkit = xstrdup(in_text(results, "toolkit"));
    set->target = xstrdup(in_text(results, "target"));
    set->variants = xcalloc(json_array_size(variants) + 1, sizeof *set->variants);
    json_array_foreach(variants, i, item)
    {
        set->variants[set->count++] = (struct variant){
            .workload = xstrdup(in_text(item, "workload")),
            .name = xstrdup(in_text(item, "variant")),
            .sizes = sizes_of(json_object_get(item, "sizes")),
            .version = (int)in_int(item, "version"),
            .passed = strcmp(in_text(item, "outcome"), "passed") == 0,
        };
    }
}

struct executed_set *executed_set_new(void)
{
    return xcalloc(1, sizeof(struct executed_set));
}

enum err_code executed_set_read(struct executed_set *set, const char *name,
                                const char *text, size_t length, struct err *err)
{
    json_error_t where;
    json_t *results = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    char *prefix;
    enum err_code code;

    if (!results) {
        return err_set(err, ERR_INVALID, "%s: line %d: %s", name, where.line, where.text);
    }
    prefix = xasprintf("%s: ", name);
    code = in_read_file(&results_shape, results, prefix, NULL, err);
    if (code == ERR_OK) {
        take(set, results);
    }
    free(prefix);
    json_decref(results);
    return code;
}

/* A unit test reads it, so what is built in is right. */
static void read_embedded(void *arg, const struct embed *file)
{
    struct err err;

    executed_set_read(arg, file->name, file->start, embed_size(file), &err);
    embed_forget(file);
}

struct executed_set *executed_set_load(void)
{
    struct executed_set *set = executed_set_new();

    embed_each("tests/ptx/results.json", read_embedded, set);
    return set;
}

void executed_set_free(struct executed_set *set)
{
    if (!set) {
        return;
    }
    for (size_t i = 0; i < set->count; i++) {
        free(set->variants[i].workload);
        free(set->variants[i].name);
        free(set->variants[i].sizes);
    }
    free(set->variants);
    free(set->date);
    free(set->toolkit);
    free(set->target);
    free(set);
}

bool executed_find(const struct executed_set *set, const char *workload,
                   const char *variant, struct executed *ret_executed)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct variant *each = &set->variants[i];

        if (strcmp(each->workload, workload) == 0 && strcmp(each->name, variant) == 0) {
            *ret_executed = (struct executed){
                .date = set->date,
                .toolkit = set->toolkit,
                .target = set->target,
                .sizes = each->sizes,
                .version = each->version,
                .outcome = outcomes[each->passed ? 0 : 1],
            };
            return true;
        }
    }
    return false;
}

const char *executed_outcome(const struct executed *executed, int version)
{
    return executed->version == version ? executed->outcome : "outdated";
}
