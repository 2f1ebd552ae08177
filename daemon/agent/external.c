#include "daemon/agent/external.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/agent/external_build.h"
#include "daemon/base/array.h"
#include "daemon/base/buf.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/config/external.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* "sets A=1, unsets B". */
static json_t *models_text(const json_t *variables)
{
    struct buf text = BUF_INIT;
    const char *name;
    json_t *value;
    json_t *json;

    json_object_foreach((json_t *)variables, name, value)
    {
        buf_puts(&text, text.length ? ", " : "");
        if (json_is_null(value)) {
            buf_printf(&text, "unsets %s", name);
        } else {
            buf_printf(&text, "sets %s=%s", name, json_string_value(value));
        }
    }
    json = json_string(text.length ? text.data : "sets nothing");
    buf_release(&text);
    return json;
}

static json_t *variants_json(const json_t *workload)
{
    json_t *list = json_array();
    size_t i;
    json_t *variant;

    json_array_foreach(json_object_get(workload, "variants"), i, variant)
    {
        json_t *variables = external_variant_variables(variant);

        json_array_append_new(
            list,
            json_pack("{s:O,s:O,s:o,s:s,s:n,s:O,s:O,s:o,s:O}", "name",
                      json_object_get(variant, "name"), "summary",
                      json_object_get(variant, "summary"), "models",
                      models_text(variables), "algorithm", "as the command reports it",
                      "claim", "control", json_object_get(variant, "control"), "recipe",
                      json_object_get(variant, "recipe"), "environment", variables,
                      "arguments", json_object_get(variant, "arguments")));
    }
    return list;
}

static json_t *sizes_json(const json_t *workload)
{
    json_t *list = json_array();
    const char *name;
    json_t *words;

    json_object_foreach(json_object_get(workload, "sizes"), name, words)
    {
        struct buf text = BUF_INIT;
        size_t i;
        json_t *word;

        json_array_foreach(words, i, word)
        {
            buf_printf(&text, "%s%s", i ? " " : "", json_string_value(word));
        }
        json_array_append_new(list, json_pack("{s:s,s:s}", "name", name, "description",
                                              text.length ? text.data : "no arguments"));
        buf_release(&text);
    }
    return list;
}

/* What every host says of it alike: no command and no path. */
static json_t *entry_json(const json_t *workload)
{
    static const char *const copied[] = { "version",        "backend",    "title",
                                          "summary",        "dtypes",     "weight_sum",
                                          "loss",           "no_control", "survey",
                                          "timeout_seconds" };
    json_t *entry =
        json_pack("{s:O,s:o,s:o,s:[],s:b}", "workload", json_object_get(workload, "name"),
                  "variants", variants_json(workload), "sizes", sizes_json(workload),
                  "references", "external", 1);

    for (int i = 0; i < COUNT_OF(copied); i++) {
        json_object_set(entry, copied[i], json_object_get(workload, copied[i]));
    }
    return entry;
}

/* The stack whose worker has a workload called NAME; NULL: none. */
static const struct stack *find_namesake(const struct stack *stacks, int count,
                                         const char *name)
{
    for (int i = 0; i < count; i++) {
        size_t at;
        json_t *entry;

        json_array_foreach(stacks[i].catalogue, at, entry)
        {
            if (!stacks[i].externals && strcmp(text_of(entry, "workload"), name) == 0) {
                return &stacks[i];
            }
        }
    }
    return NULL;
}

static void add_problem(struct stack *stack, const char *name, const char *cause)
{
    log_warning("external workload '%s': %s", name, cause);
    json_object_set_new(json_object_get(stack->probe, "problems"), name,
                        json_string(cause));
}

static void add_workload(struct stack *stack, json_t *workload,
                         const struct stack *namesake)
{
    const char *name = text_of(workload, "name");
    struct external_build build;
    char cause[256];
    struct err err;

    if (namesake) {
        snprintf(cause, sizeof cause,
                 "the worker of stack '%.64s' has a workload of "
                 "that name",
                 namesake->name);
        add_problem(stack, name, cause);
        return;
    }
    json_array_append(stack->externals, workload);
    json_array_append_new(stack->catalogue, entry_json(workload));
    if (external_build_init(&build, workload, &err) != ERR_OK) {
        add_problem(stack, name, err.message);
        return;
    }
    json_object_set_new(json_object_get(stack->probe, "versions"), name,
                        json_string(build.digest));
    external_build_release(&build);
}

/* The first that has devices of BACKEND; NULL, with the reason, if there is none. */
static const struct stack *find_base(const struct stack *stacks, int count,
                                     const char *backend, struct buf *reason)
{
    buf_printf(reason, "no stack of this host has a device of backend %s", backend);
    for (int i = 0; i < count; i++) {
        const char *cause = text_of(stacks[i].probe, "cause");

        if (strcmp(text_of(stacks[i].probe, "backend"), backend) != 0) {
            continue;
        }
        if (json_array_size(json_object_get(stacks[i].probe, "devices")) > 0) {
            return &stacks[i];
        }
        if (*cause) {
            buf_printf(reason, "; %s: %s", stacks[i].name, cause);
        }
    }
    return NULL;
}

static void fill_stack(struct stack *stack, const struct stack *stacks, int count,
                       const json_t *workloads, const char *backend)
{
    struct buf reason = BUF_INIT;
    const struct stack *base = find_base(stacks, count, backend, &reason);
    size_t i;
    json_t *workload;

    *stack = (struct stack){ .name = xstrdup(external_stack(backend)),
                             .externals = json_array(),
                             .catalogue = json_array() };
    stack->probe =
        json_pack("{s:i,s:s,s:n,s:{},s:{},s:O?,s:n}", "v", 1, "backend", backend,
                  "worker_build", "versions", "problems", "devices",
                  json_object_get(base ? base->probe : NULL, "devices"), "cause");
    if (!base) {
        stack->cause = buf_detach(&reason, NULL);
    }
    buf_release(&reason);
    json_array_foreach(workloads, i, workload)
    {
        if (strcmp(text_of(workload, "backend"), backend) == 0) {
            add_workload(stack, workload,
                         find_namesake(stacks, count, text_of(workload, "name")));
        }
    }
}

static bool needs(const json_t *workloads, const char *backend)
{
    size_t i;
    json_t *workload;

    json_array_foreach(workloads, i, workload)
    {
        if (strcmp(text_of(workload, "backend"), backend) == 0) {
            return true;
        }
    }
    return false;
}

int external_stacks_add(struct stack *stacks, int count, const json_t *workloads)
{
    static const char *const backends[EXTERNAL_STACKS_MAX] = { "cpu", "cuda" };
    int total = count;

    for (int i = 0; i < EXTERNAL_STACKS_MAX; i++) {
        if (needs(workloads, backends[i])) {
            fill_stack(&stacks[total++], stacks, count, workloads, backends[i]);
        }
    }
    return total;
}
