/* The command line of the agent (daemon/agent/agent.h). */
#include "daemon/agent/agent.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/config/config.h"
#include "daemon/config/external.h"

const char agent_usage[] =
    "usage: reprod agent [OPTION ...]\n"
    "Runs workers on this host for a service, which starts it and speaks to it over\n"
    "standard input and output (workloads/PROTOCOL.md).\n"
    "  --stack NAME=WORKER  a stack (repeatable; default: cpu and, where it was built,\n"
    "                       cuda, with the workers that come with this executable)\n"
    "  --library-path PATH  LD_LIBRARY_PATH of the workers of the stack before it\n"
    "  --stack-json JSON    {\"name\":..., \"worker\":..., \"library_path\":..., "
    "\"env\":{...},\n"
    "                       \"threads\":..., \"probe_seconds\":...}; only the name is "
    "required\n"
    "  --workload-json JSON an external workload, as in a configuration's \"workloads\"\n"
    "                       (repeatable)\n"
    "  --config FILE        stacks and workloads of that configuration\n"
    "  --threads N          of a CPU run; default: one for each CPU it may use, 2..8\n"
    "  --grace-ms N         between SIGTERM and SIGKILL (default 2000)\n"
    "  --probe-ms N         deadline of a probe (default 10000, that of\n"
    "                       reprod-worker-cuda 60000)\n"
    "  --notice SECONDS     that runs have to end in after SIGTERM, before they are\n"
    "                       cancelled and made again elsewhere or later (default 0)\n"
    "  --silence SECONDS    after which a service that says nothing any more counts as\n"
    "                       gone, and the agent ends (default 300; 0: never)\n";

/* Fewer than two threads cannot race; small cases gain nothing from more than a few. */
enum { THREADS_LEAST = 2, THREADS_DEFAULT_MOST = 8, THREADS_MOST = 256 };

enum { DAY_S = 24 * 3600, SILENCE_S = 300 };

static int default_threads(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;

    return count < THREADS_LEAST          ? THREADS_LEAST
           : count > THREADS_DEFAULT_MOST ? THREADS_DEFAULT_MOST
                                          : count;
}

static enum err_code parse_number(const char *option, const char *text, int64_t least,
                                  int64_t most, int64_t *ret_value, struct err *err)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno || end == text || *end != '\0' || value < least || value > most) {
        return err_set(err, ERR_INVALID,
                       "%s wants a whole number in %lld..%lld, not '%s'", option,
                       (long long)least, (long long)most, text);
    }
    *ret_value = value;
    return ERR_OK;
}

static enum err_code add_stack(struct agent_options *options, const char *option,
                               const char *value, struct err *err)
{
    struct stack *stack = &options->stacks[options->stack_count];
    enum err_code rc;

    if (options->stack_count == OPTIONS_STACKS_MAX) {
        return err_set(err, ERR_TOO_LARGE, "more than %d stacks", OPTIONS_STACKS_MAX);
    }
    rc = strcmp(option, "--stack") == 0 ? stack_parse(stack, value, err)
                                        : stack_parse_json(stack, value, err);
    if (rc != ERR_OK) {
        return rc;
    }
    options->stack_count++;
    if (external_stack_is(stack->name)) {
        return err_set(err, ERR_INVALID,
                       "%s: '%s' is the name of the stack of external workloads", option,
                       stack->name);
    }
    for (int i = 0; i + 1 < options->stack_count; i++) {
        if (strcmp(options->stacks[i].name, stack->name) == 0) {
            return err_set(err, ERR_CONFLICT, "two stacks are named '%s'", stack->name);
        }
    }
    return ERR_OK;
}

static enum err_code set_library_path(struct agent_options *options, const char *value,
                                      struct err *err)
{
    int last = options->stack_count - 1;

    if (last < 0 || options->stacks[last].library_path) {
        return err_set(err, ERR_INVALID, "--library-path belongs behind its --stack");
    }
    options->stacks[last].library_path = xstrdup(value);
    return ERR_OK;
}

static enum err_code add_workload(struct agent_options *options, json_t *workload,
                                  struct err *err)
{
    const char *name;
    const char *backend;

    if (external_complete(workload, "--workload-json: ", NULL, err) != ERR_OK) {
        return err->code;
    }
    name = json_string_value(json_object_get(workload, "name"));
    backend = json_string_value(json_object_get(workload, "backend"));
    if (external_find(options->workloads, name, backend)) {
        return err_set(err, ERR_CONFLICT, "two external workloads are named '%s'", name);
    }
    json_array_append(options->workloads, workload);
    return ERR_OK;
}

static enum err_code parse_workload(struct agent_options *options, const char *text,
                                    struct err *err)
{
    json_error_t error;
    json_t *workload = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    enum err_code rc;

    if (!workload) {
        return err_set(err, ERR_INVALID, "--workload-json: %s", error.text);
    }
    rc = add_workload(options, workload, err);
    json_decref(workload);
    return rc;
}

/* What concerns an agent of it. */
static enum err_code read_config(struct agent_options *options, const char *file,
                                 struct err *err)
{
    struct config config;
    size_t i;
    json_t *item;

    config_init(&config);
    config_read(&config, file, err);
    json_array_foreach(config.stacks, i, item)
    {
        char *text = json_dumps(item, JSON_COMPACT);

        if (err->code == ERR_OK) {
            add_stack(options, "--stack-json", text, err);
        }
        free(text);
    }
    json_array_foreach(config.workloads, i, item)
    {
        if (err->code == ERR_OK) {
            add_workload(options, item, err);
        }
    }
    config_release(&config);
    return err->code;
}

static enum err_code set_option(struct agent_options *options, const char *option,
                                const char *value, struct err *err)
{
    if (strcmp(option, "--stack") == 0 || strcmp(option, "--stack-json") == 0) {
        return add_stack(options, option, value, err);
    }
    if (strcmp(option, "--workload-json") == 0) {
        return parse_workload(options, value, err);
    }
    if (strcmp(option, "--config") == 0) {
        return read_config(options, value, err);
    }
    if (strcmp(option, "--library-path") == 0) {
        return set_library_path(options, value, err);
    }
    if (strcmp(option, "--threads") == 0) {
        return parse_number(option, value, 1, THREADS_MOST, &options->threads, err);
    }
    if (strcmp(option, "--grace-ms") == 0) {
        return parse_number(option, value, 1, 600000, &options->grace_ms, err);
    }
    if (strcmp(option, "--probe-ms") == 0) {
        return parse_number(option, value, 1, 600000, &options->probe_ms, err);
    }
    if (strcmp(option, "--notice") == 0) {
        return parse_number(option, value, 0, DAY_S, &options->notice_s, err);
    }
    if (strcmp(option, "--silence") == 0) {
        return parse_number(option, value, 0, DAY_S, &options->silence_s, err);
    }
    return err_set(err, ERR_INVALID, "unknown option '%s'", option);
}

enum err_code agent_options_parse(struct agent_options *ret_options, int argc,
                                  char **argv, struct err *err)
{
    memset(ret_options, 0, sizeof *ret_options);
    ret_options->threads = default_threads();
    ret_options->grace_ms = 2000;
    ret_options->probe_ms = STACK_PROBE_MS;
    ret_options->silence_s = SILENCE_S;
    ret_options->workloads = json_array();
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--help") == 0) {
            ret_options->help = true;
            return ERR_OK;
        }
        if (i + 1 == argc) {
            return err_set(err, ERR_INVALID, "%s wants a value", argv[i]);
        }
        if (set_option(ret_options, argv[i], argv[i + 1], err) != ERR_OK) {
            return err->code;
        }
    }
    if (ret_options->stack_count == 0) {
        ret_options->stack_count = stack_init_defaults(ret_options->stacks);
    }
    return ERR_OK;
}

void agent_options_release(struct agent_options *options)
{
    for (int i = 0; i < options->stack_count; i++) {
        stack_release(&options->stacks[i]);
    }
    options->stack_count = 0;
    json_decref(options->workloads);
    options->workloads = NULL;
}
