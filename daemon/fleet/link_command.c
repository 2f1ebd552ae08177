#include "daemon/fleet/link_command.h"

#include <stdio.h>

#include "daemon/jobs/options.h"

static json_t *worker_arguments(const struct link_run *run)
{
    const struct case_key *key = run->key;
    json_t *options = run_options_arguments(run->options);
    json_t *arguments;
    char seed[24];

    snprintf(seed, sizeof seed, "%llu", (unsigned long long)key->seed);
    arguments = json_pack("{s:s,s:s,s:s,s:s,s:s,s:I}", "workload", key->workload,
                          "variant", key->variant, "size", key->size, "dtype", key->dtype,
                          "seed", seed, "iterations", (json_int_t)run->iterations);
    json_object_update_missing(arguments, options);
    json_decref(options);
    return arguments;
}

json_t *link_command_run(const struct link_run *run)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:I,s:o}", "command", "run", "run", run->id,
                     "stack", run->stack, "device", run->device, "timeout_ms",
                     (json_int_t)run->timeout_ms, "arguments", worker_arguments(run));
}

json_t *link_command_cancel(const char *run)
{
    return json_pack("{s:s,s:s}", "command", "cancel", "run", run);
}
