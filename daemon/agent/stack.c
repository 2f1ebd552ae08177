#include "daemon/agent/stack.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/case.h"
#include "daemon/process/proc.h"
#include "daemon/process/wire.h"

enum { THREADS_MAX = 256 };

char *stack_companion(const char *program)
{
    char directory[PROC_PATH_SIZE];
    char *beside, *installed;

    proc_directory(directory);
    beside = xasprintf("%s/%s", directory, program);
    installed = xasprintf("%s/../libexec/reprod/%s", directory, program);
    if (access(beside, X_OK) != 0 && access(installed, X_OK) == 0) {
        free(beside);
        return installed;
    }
    free(installed);
    return beside;
}

int stack_init_defaults(struct stack ret_stacks[STACK_DEFAULTS_MAX])
{
    char *cuda = stack_companion("reprod-worker-cuda");

    ret_stacks[0] = (struct stack){ .name = xstrdup("cpu"),
                                    .worker = stack_companion("reprod-worker") };
    if (access(cuda, X_OK) != 0) {
        free(cuda);
        return 1;
    }
    ret_stacks[1] = (struct stack){ .name = xstrdup("cuda"), .worker = cuda };
    return 2;
}

enum err_code stack_parse(struct stack *ret_stack, const char *text, struct err *err)
{
    const char *equals = strchr(text, '=');

    if (!equals || equals == text || equals[1] == '\0') {
        return err_set(err, ERR_INVALID, "--stack wants NAME=WORKER, not '%s'", text);
    }
    if (equals - text >= CASE_NAME_SIZE) {
        return err_set(err, ERR_INVALID, "--stack: the name has more than %d bytes",
                       CASE_NAME_SIZE - 1);
    }
    *ret_stack = (struct stack){ .name = xstrndup(text, (size_t)(equals - text)),
                                 .worker = xstrdup(equals + 1) };
    return ERR_OK;
}

static enum err_code check_variables(const json_t *variables, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)variables, key, value)
    {
        if (!json_is_string(value) || key[0] == '\0' || strchr(key, '=')) {
            return err_set(err, ERR_INVALID, "--stack-json: env: '%s' is no variable",
                           key);
        }
    }
    return ERR_OK;
}

static enum err_code read_json(struct stack *ret_stack, json_t *json, struct err *err)
{
    const char *name = NULL, *worker = NULL, *library_path = NULL;
    json_t *variables = NULL;
    int threads = 0;
    json_error_t error;

    if (json_unpack_ex(json, &error, JSON_STRICT, "{s:s,s?s,s?s,s?o,s?i}", "name", &name,
                       "worker", &worker, "library_path", &library_path, "env",
                       &variables, "threads", &threads) != 0) {
        return err_set(err, ERR_INVALID, "--stack-json: %s", error.text);
    }
    if (variables && !json_is_object(variables)) {
        return err_set(err, ERR_INVALID, "--stack-json: env is not an object");
    }
    if (check_variables(variables, err) != ERR_OK) {
        return err->code;
    }
    if (name[0] == '\0' || threads < 0 || threads > THREADS_MAX) {
        return err_set(err, ERR_INVALID, "--stack-json: %s",
                       name[0] ? "threads is not in 1..256" : "the name is empty");
    }
    if (strlen(name) >= CASE_NAME_SIZE) {
        return err_set(err, ERR_INVALID, "--stack-json: the name has more than %d bytes",
                       CASE_NAME_SIZE - 1);
    }
    *ret_stack = (struct stack){
        .name = xstrdup(name),
        .worker = worker ? xstrdup(worker) : stack_companion("reprod-worker"),
        .library_path = library_path ? xstrdup(library_path) : NULL,
        .threads = threads,
        .variables = json_incref(variables),
    };
    return ERR_OK;
}

enum err_code stack_parse_json(struct stack *ret_stack, const char *text, struct err *err)
{
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    enum err_code rc;

    if (!json) {
        return err_set(err, ERR_INVALID, "--stack-json: %s", error.text);
    }
    rc = read_json(ret_stack, json, err);
    json_decref(json);
    return rc;
}

void stack_release(struct stack *stack)
{
    free(stack->name);
    free(stack->worker);
    free(stack->library_path);
    free(stack->cause);
    json_decref(stack->variables);
    json_decref(stack->externals);
    json_decref(stack->probe);
    json_decref(stack->catalogue);
}

/* Which GPUs a batch system granted, where to keep caches and temporary files: none of
 * it changes what is computed. */
static const char *const inherited[] = {
    "HOME",        "TMPDIR", "XDG_CACHE_HOME", "REPROD_CACHE_DIR", "CUDA_VISIBLE_DEVICES",
    "SLURM_JOB_ID"
};
enum { INHERITED_COUNT = COUNT_OF(inherited) };

struct environment {
    const struct stack *stack;
    char **list;
    size_t count;
};

static void add_default(struct environment *e, const char *name, const char *text)
{
    if (text && !json_object_get(e->stack->variables, name)) {
        e->list[e->count++] = xasprintf("%s=%s", name, text);
    }
}

char **stack_environment(const struct stack *stack)
{
    size_t room = 6 + INHERITED_COUNT + json_object_size(stack->variables);
    struct environment e = { stack, xcalloc(room, sizeof(char *)), 0 };
    const char *key;
    json_t *value;

    add_default(&e, "PATH", STACK_PATH);
    add_default(&e, "LANG", "C.UTF-8");
    add_default(&e, "REPROD_RESULT_FD", "3");
    add_default(&e, "LD_LIBRARY_PATH", stack->library_path);
    /* A thread that waits by spinning takes the processor from the one it waits for. */
    add_default(&e, "OMP_WAIT_POLICY", stack->worker ? "passive" : NULL);
    for (int i = 0; i < INHERITED_COUNT; i++) {
        add_default(&e, inherited[i], getenv(inherited[i]));
    }
    json_object_foreach(stack->variables, key, value)
    {
        if (json_is_string(value)) {
            e.list[e.count++] = xasprintf("%s=%s", key, json_string_value(value));
        }
    }
    return e.list;
}

void stack_environment_free(char **environment)
{
    for (char **entry = environment; *entry; entry++) {
        free(*entry);
    }
    free(environment);
}

bool stack_has_device(const struct stack *stack, const char *device)
{
    const json_t *devices = json_object_get(stack->probe, "devices");
    size_t i;
    json_t *entry;

    json_array_foreach(devices, i, entry)
    {
        const char *id = json_string_value(json_object_get(entry, "id"));

        if (id && strcmp(id, device) == 0) {
            return true;
        }
    }
    return false;
}

/* Paths and what a worker printed on its way down need not be UTF-8. */
static json_t *text_or_null(const char *text)
{
    return text ? wire_string(text, strlen(text)) : json_null();
}

json_t *stack_json(const struct stack *stack)
{
    return json_pack("{s:o,s:o,s:o,s:O?,s:O?,s:o}", "name", text_or_null(stack->name),
                     "worker", text_or_null(stack->worker), "library_path",
                     text_or_null(stack->library_path), "probe", stack->probe,
                     "catalogue", stack->catalogue, "cause", text_or_null(stack->cause));
}
