#include "daemon/agent/run_request.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "workloads/instruments/digest.h"

enum {
    ARGUMENTS_MAX = 32,
    ITERATIONS_MAX = 1000000,
    TIMEOUT_MAX_MS = 7 * 24 * 3600 * 1000,
    CHECK_SECONDS_MAX = 3600,
};

static const char SHARED_IMPORT[] = "shared-import";

static void add_arg(struct run_request *request, char *text)
{
    request->args[request->arg_count++] = text;
}

static void check_arguments(struct in_reader *r, const json_t *arguments)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)arguments, key, value)
    {
        const char *text = json_string_value(value);

        if (key[0] == '\0' || key[strspn(key, "abcdefghijklmnopqrstuvwxyz_-")] ||
            strcmp(key, "device") == 0 || (!text && !json_is_integer(value)) ||
            (text && (text[0] == '\0' || text[0] == '-'))) {
            in_refuse(r, key, "cannot be passed on");
        }
    }
}

static const struct in_member argument_members[] = {
    { "iterations", IN_INT, .flags = IN_OPTIONAL, .least = 0, .most = ITERATIONS_MAX },
};
static const struct in_shape argument_shape = IN_SHAPE(argument_members, NULL);

static const struct in_member request_members[] = {
    { "stack", IN_TEXT, IN_AT(struct run_request, stack_name) },
    { "device", IN_TEXT, IN_AT(struct run_request, device) },
    { "timeout_ms", IN_INT, IN_AT(struct run_request, timeout_ms), .least = 1,
      .most = TIMEOUT_MAX_MS },
    { "check_seconds", IN_INT, IN_AT(struct run_request, check_seconds),
      .flags = IN_OPTIONAL, .least = 1, .most = CHECK_SECONDS_MAX },
    { "check_passed", IN_HEX, IN_AT(struct run_request, check_passed),
      .flags = IN_OPTIONAL, .most = DIGEST_HEX_SIZE - 1 },
    { "merge_iterations", IN_BOOL, IN_AT(struct run_request, merge_iterations),
      .flags = IN_OPTIONAL },
    { "arguments", IN_OBJECT, IN_AT(struct run_request, arguments), .most = ARGUMENTS_MAX,
      .shape = &argument_shape, .check = check_arguments },
};
static const struct in_shape request_shape = IN_SHAPE(request_members, NULL);

enum err_code run_request_read(const json_t *command, struct run_request *request,
                               struct err *err)
{
    return in_read_wire(&request_shape, command, request, err) == ERR_OK
               ? ERR_OK
               : err_wrap(err, "the command is malformed");
}

/* {"workload":"conv_wgrad","iterations":10}: --workload conv_wgrad --iterations 10. */
static void add_arguments(struct run_request *request, const json_t *arguments)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)arguments, key, value)
    {
        const char *text = json_string_value(value);

        if (strcmp(key, SHARED_IMPORT) == 0) {
            continue;
        }
        add_arg(request, xasprintf("--%s", key));
        add_arg(request, text ? xstrdup(text)
                              : xasprintf("%lld", (long long)json_integer_value(value)));
    }
}

int run_request_threads(const struct run_request *request, int threads)
{
    return request->stack->threads ? request->stack->threads : threads;
}

static void make_args(struct run_request *request, int threads)
{
    const json_t *arguments = request->arguments;

    request->args = xcalloc(2 * json_object_size(arguments) + 10, sizeof *request->args);
    add_arg(request, xstrdup("--run"));
    add_arguments(request, arguments);
    if (!json_object_get(arguments, "threads")) {
        add_arg(request, xstrdup("--threads"));
        add_arg(request, xasprintf("%d", run_request_threads(request, threads)));
    }
    if (request->check_seconds) {
        add_arg(request, xstrdup("--checked"));
        add_arg(request, xasprintf("%lld", (long long)request->check_seconds));
    }
    if (request->check_seconds && request->check_passed) {
        add_arg(request, xstrdup("--passed"));
        add_arg(request, xstrdup(request->check_passed));
    }
    add_arg(request, xstrdup("--device"));
    add_arg(request, xstrdup(request->device));
}

enum err_code run_request_find_stack(struct run_request *request,
                                     const struct stack *stacks, int count,
                                     struct err *err)
{
    const char *name = request->stack_name;

    for (int i = 0; i < count; i++) {
        const struct stack *stack = &stacks[i];

        if (strcmp(stack->name, name) == 0) {
            if (stack->cause) {
                return err_set(err, ERR_UNSUPPORTED, "stack '%s' is not usable: %s", name,
                               stack->cause);
            }
            request->stack = stack;
            return ERR_OK;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "unknown stack '%s'", name);
}

/* An older worker would refuse the arguments. */
static bool can_check(const struct run_request *request)
{
    const json_t *probe = request->stack->probe;

    return json_is_true(json_object_get(probe, "checks")) &&
           (!request->check_passed || json_is_true(json_object_get(probe, "passed")));
}

enum err_code run_request_prepare(struct run_request *request, int threads,
                                  struct err *err)
{
    if (request->stack->externals) {
        return external_run_init(&request->external, request->stack, request->arguments,
                                 request->device, threads, err);
    }
    if (!can_check(request)) {
        request->check_seconds = 0;
    }
    make_args(request, threads);
    request->shared_import = in_int(request->arguments, SHARED_IMPORT) > 0;
    if (request->shared_import &&
        !json_is_true(json_object_get(request->stack->probe, "forks"))) {
        return err_set(err, ERR_UNSUPPORTED, "the worker of stack '%s' forks no runs",
                       request->stack->name);
    }
    return ERR_OK;
}

void run_request_release(struct run_request *request)
{
    free_texts(request->args);
    external_run_release(&request->external);
}
