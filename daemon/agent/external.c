#include "daemon/agent/external.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/buf.h"
#include "daemon/base/json_in.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/config/external.h"

/* The first object of LIST whose member KEY is NAME; NULL: none. */
static json_t *find(const json_t *list, const char *key, const char *name)
{
    size_t i;
    json_t *item;

    json_array_foreach((json_t *)list, i, item)
    {
        if (strcmp(in_text_or_empty(item, key), name) == 0) {
            return item;
        }
    }
    return NULL;
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
            json_pack("{s:O,s:O,s:o,s:s,s:n,s:O,s:O,s:O,s:O,s:O,s:o,s:O}", "name",
                      json_object_get(variant, "name"), "summary",
                      json_object_get(variant, "summary"), "models",
                      models_text(variables), "algorithm", "as the command reports it",
                      "claim", "subject", json_object_get(workload, "subject"),
                      "subject_name", json_object_get(workload, "subject_name"),
                      "control", json_object_get(variant, "control"), "kind",
                      json_object_get(variant, "kind"), "recipe",
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

/* Without command and paths: every host must say the same. */
static json_t *entry_json(const json_t *workload)
{
    static const char *const copied[] = {
        "version", "backend",         "title",        "summary",
        "dtypes",  "weight_sum",      "loss",         "no_control",
        "survey",  "timeout_seconds", "circumstances"
    };
    json_t *entry =
        json_pack("{s:O,s:o,s:o,s:[],s:b}", "workload", json_object_get(workload, "name"),
                  "variants", variants_json(workload), "sizes", sizes_json(workload),
                  "references", "external", 1);

    for (int i = 0; i < COUNT_OF(copied); i++) {
        json_object_set(entry, copied[i], json_object_get(workload, copied[i]));
    }
    /* Agents that know no such member say the same of all others. */
    if (json_is_false(json_object_get(workload, "seeded"))) {
        json_object_set_new(entry, "seeded", json_false());
    }
    return entry;
}

/* The stack whose worker has a workload called NAME; NULL: none. */
static const struct stack *find_namesake(const struct stack *stacks, int count,
                                         const char *name)
{
    for (int i = 0; i < count; i++) {
        if (find(stacks[i].catalogue, "workload", name)) {
            return &stacks[i];
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
    const char *name = in_text_or_empty(workload, "name");
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
        const char *cause = in_text_or_empty(stacks[i].probe, "cause");

        if (strcmp(in_text_or_empty(stacks[i].probe, "backend"), backend) != 0) {
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
        if (strcmp(in_text_or_empty(workload, "backend"), backend) == 0) {
            add_workload(
                stack, workload,
                find_namesake(stacks, count, in_text_or_empty(workload, "name")));
        }
    }
}

int external_stacks_add(struct stack *stacks, int count, const json_t *workloads)
{
    static const char *const backends[EXTERNAL_STACKS_MAX] = { "cpu", "cuda" };
    int total = count;

    for (int i = 0; i < EXTERNAL_STACKS_MAX; i++) {
        if (find(workloads, "backend", backends[i])) {
            fill_stack(&stacks[total++], stacks, count, workloads, backends[i]);
        }
    }
    return total;
}

void external_stacks_again(struct stack *stacks, int count, int total,
                           const json_t *workloads)
{
    for (int i = count; i < total; i++) {
        struct stack before = stacks[i];

        if (before.cause) { /* else runs of it may be under way */
            char *backend = xstrdup(in_text_or_empty(before.probe, "backend"));

            fill_stack(&stacks[i], stacks, count, workloads, backend);
            stack_release(&before);
            free(backend);
        }
    }
}

/* "probe-names" is passed as REPROD_PROBE_NAMES. */
static void set_argument(json_t *variables, const char *key, const char *text)
{
    char *name = xasprintf("REPROD_%s", key);

    for (char *c = name; *c; c++) {
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    }
    json_object_set_new(variables, name, json_string(text));
    free(name);
}

static void set_number(json_t *variables, const char *key, long long value)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", value);
    set_argument(variables, key, text);
}

static void set_arguments(json_t *variables, const json_t *arguments)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)arguments, key, value)
    {
        if (json_is_string(value)) {
            set_argument(variables, key, json_string_value(value));
        } else {
            set_number(variables, key, json_integer_value(value));
        }
    }
}

/* What frameworks read, where the configuration does not say otherwise.  Python takes 32
 * bits of a seed. */
static json_t *framework_variables(const struct external_run *run, const char *device,
                                   const char *seed, int threads)
{
    json_t *variables = json_object();
    char number[24];

    snprintf(number, sizeof number, "%u", (unsigned)strtoull(seed, NULL, 10));
    json_object_set_new(variables, "PYTHONHASHSEED", json_string(number));
    snprintf(number, sizeof number, "%d", threads);
    json_object_set_new(variables, "OMP_NUM_THREADS", json_string(number));
    if (strcmp(in_text_or_empty(run->workload, "backend"), "cuda") == 0) {
        json_object_set_new(variables, "CUDA_VISIBLE_DEVICES", json_string(device));
    }
    return variables;
}

static void make_environment(struct external_run *run, const json_t *variant,
                             const json_t *arguments, const char *device, int threads)
{
    json_t *variables =
        framework_variables(run, device, in_text_or_empty(arguments, "seed"), threads);
    json_t *own = external_variant_variables(variant);
    const char *recipe = json_string_value(json_object_get(variant, "recipe"));

    json_object_update(variables, json_object_get(run->workload, "environment"));
    json_object_update(variables, own);
    json_decref(own);
    set_number(variables, "threads", threads);
    set_arguments(variables, arguments);
    set_number(variables, "version",
               json_integer_value(json_object_get(run->workload, "version")));
    set_argument(variables, "device", device);
    set_argument(variables, "backend", in_text_or_empty(run->workload, "backend"));
    set_argument(variables, "model", in_text_or_empty(run->device, "model"));
    set_argument(variables, "worker-build", run->build.digest);
    set_argument(variables, "recipe", recipe ? recipe : "none");
    run->env = stack_environment(&(struct stack){ .variables = variables });
    json_decref(variables);
}

static void add_words(struct external_run *run, size_t *count, const json_t *words,
                      size_t first)
{
    for (size_t i = first; i < json_array_size(words); i++) {
        run->args[(*count)++] = xstrdup(json_string_value(json_array_get(words, i)));
    }
}

static void make_args(struct external_run *run, const json_t *size, const json_t *variant)
{
    const json_t *command = json_object_get(run->workload, "command");
    const json_t *own = json_object_get(variant, "arguments");
    size_t count = 0;

    run->args = xcalloc(json_array_size(command) + json_array_size(size) +
                            json_array_size(own) + 1,
                        sizeof *run->args);
    add_words(run, &count, command, 1);
    add_words(run, &count, size, 0);
    add_words(run, &count, own, 0);
}

enum err_code external_run_init(struct external_run *ret_run, const struct stack *stack,
                                const json_t *arguments, const char *device, int threads,
                                struct err *err)
{
    const char *name = in_text_or_empty(arguments, "workload");
    const char *variant_name = in_text_or_empty(arguments, "variant");
    const char *size_name = in_text_or_empty(arguments, "size");
    struct external_run run = { .workload = find(stack->externals, "name", name) };
    const json_t *size =
        json_object_get(json_object_get(run.workload, "sizes"), size_name);
    const json_t *variant, *own_threads = json_object_get(run.workload, "threads");
    const json_t *asked = json_object_get(arguments, "threads");

    if (!run.workload) {
        return err_set(err, ERR_NOT_FOUND, "there is no external workload '%.64s' here",
                       name);
    }
    variant = external_variant(run.workload, variant_name);
    if (!variant || !size) {
        return err_set(err, ERR_NOT_FOUND, "workload '%.64s' has no %s '%.64s' here",
                       name, variant ? "size" : "variant",
                       variant ? size_name : variant_name);
    }
    if (external_build_init(&run.build, run.workload, err) != ERR_OK) {
        return err_wrap(err, "workload '%.64s' cannot run on this host", name);
    }
    run.directory = in_text_or_empty(run.workload, "directory");
    run.device = find(json_object_get(stack->probe, "devices"), "id", device);
    run.timeout_ms =
        1000 * json_integer_value(json_object_get(run.workload, "timeout_seconds"));
    threads =
        json_is_integer(own_threads) ? (int)json_integer_value(own_threads) : threads;
    threads = json_is_integer(asked) ? (int)json_integer_value(asked) : threads;
    run.threads = threads;
    make_args(&run, size, variant);
    make_environment(&run, variant, arguments, device, threads);
    *ret_run = run;
    return ERR_OK;
}

void external_run_release(struct external_run *run)
{
    external_build_release(&run->build);
    free_texts(run->args);
    free_texts(run->env);
    *run = (struct external_run){ 0 };
}

static void set_missing(json_t *environment, const char *key, const char *text)
{
    if (!json_object_get(environment, key) && *text) {
        json_object_set_new(environment, key, json_string(text));
    }
}

/* The order of a sum may depend on it, and the host decides it, not the program. */
static void set_given_threads(json_t *environment, int threads)
{
    const json_t *said = json_object_get(environment, "threads");

    if (!json_is_integer(said) || json_integer_value(said) != threads) {
        char text[16];

        snprintf(text, sizeof text, "%d", threads);
        json_object_set_new(environment, "env.REPROD_THREADS", json_string(text));
    }
}

void external_run_amend(const struct external_run *run, json_t *event)
{
    static const char prefix[] = "env.";
    json_t *environment = json_object_get(event, "environment");
    json_t *build = json_object_get(environment, "worker_build");
    const char *key;
    json_t *value;
    void *next;

    if (strcmp(in_text_or_empty(event, "event"), "start") != 0 ||
        !json_is_object(environment)) {
        return;
    }
    if (build &&
        strcmp(in_text_or_empty(environment, "worker_build"), run->build.digest) != 0) {
        json_object_set(environment, "program_build", build);
    }
    json_object_set_new(environment, "worker_build", json_string(run->build.digest));
    set_missing(environment, "backend", in_text_or_empty(run->workload, "backend"));
    set_missing(environment, "model", in_text_or_empty(run->device, "model"));
    set_given_threads(environment, run->threads);
    json_object_foreach_safe(environment, next, key, value)
    {
        if (strncmp(key, prefix, strlen(prefix)) == 0 &&
            external_varies_variable(run->workload, key + strlen(prefix))) {
            json_object_del(environment, key);
        }
    }
}

bool external_run_unchanged(const struct external_run *run, struct err *err)
{
    struct external_build now;
    char *name;
    bool same;

    if (external_build_init(&now, run->workload, err) != ERR_OK) {
        err_wrap(err, "the command changed while it ran");
        return false;
    }
    name = external_build_difference(run->build.text, now.text);
    same = name == NULL;
    if (!same) {
        err_set(err, ERR_CONFLICT, "the command changed while it ran: %.200s", name);
    }
    free(name);
    external_build_release(&now);
    return same;
}
