#include "daemon/agent/external_run.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/agent/external_files.h"
#include "daemon/base/mem.h"
#include "daemon/config/external.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static json_t *find(const json_t *list, const char *key, const char *name)
{
    size_t i;
    json_t *item;

    json_array_foreach((json_t *)list, i, item)
    {
        if (strcmp(text_of(item, key), name) == 0) {
            return item;
        }
    }
    return NULL;
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
    if (strcmp(text_of(run->workload, "backend"), "cuda") == 0) {
        json_object_set_new(variables, "CUDA_VISIBLE_DEVICES", json_string(device));
    }
    return variables;
}

static void make_environment(struct external_run *run, const json_t *variant,
                             const json_t *arguments, const char *device, int threads)
{
    json_t *variables =
        framework_variables(run, device, text_of(arguments, "seed"), threads);
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
    set_argument(variables, "backend", text_of(run->workload, "backend"));
    set_argument(variables, "model", text_of(run->device, "model"));
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
    const char *name = text_of(arguments, "workload");
    const char *variant_name = text_of(arguments, "variant");
    const char *size_name = text_of(arguments, "size");
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
    run.directory = text_of(run.workload, "directory");
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
    for (char **arg = run->args; arg && *arg; arg++) {
        free(*arg);
    }
    free(run->args);
    if (run->env) {
        stack_environment_free(run->env);
    }
    *run = (struct external_run){ 0 };
}

static void set_missing(json_t *environment, const char *key, const char *text)
{
    if (!json_object_get(environment, key) && *text) {
        json_object_set_new(environment, key, json_string(text));
    }
}

/* The host's to say, not the program's, and the order of a sum may hang on it. */
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

    if (strcmp(text_of(event, "event"), "start") != 0 || !json_is_object(environment)) {
        return;
    }
    if (build && strcmp(text_of(environment, "worker_build"), run->build.digest) != 0) {
        json_object_set(environment, "program_build", build);
    }
    json_object_set_new(environment, "worker_build", json_string(run->build.digest));
    set_missing(environment, "backend", text_of(run->workload, "backend"));
    set_missing(environment, "model", text_of(run->device, "model"));
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
    name = external_files_differ(run->build.text, now.text);
    same = name == NULL;
    if (!same) {
        err_set(err, ERR_CONFLICT, "the command changed while it ran: %.200s", name);
    }
    free(name);
    external_build_release(&now);
    return same;
}
