/* The agent's command line. */
#ifndef DAEMON_AGENT_OPTIONS_H
#define DAEMON_AGENT_OPTIONS_H

#include <jansson.h>
#include <stdint.h>

#include "daemon/agent/external.h"
#include "daemon/agent/stack.h"
#include "daemon/base/err.h"

enum { OPTIONS_STACKS_MAX = 64 };

struct agent_options {
    struct stack stacks[OPTIONS_STACKS_MAX + EXTERNAL_STACKS_MAX];
    int stack_count;
    json_t
        *workloads;  /* array of complete external workloads (daemon/config/external.h) */
    int64_t threads; /* of a CPU run */
    int64_t grace_ms; /* between the steps of the kill ladder */
    int64_t probe_ms; /* deadline of each probe */
    bool help;
};

/* ERR_INVALID names the option.  Release in any case. */
enum err_code agent_options_parse(struct agent_options *ret_options, int argc,
                                  char **argv, struct err *err);
void agent_options_release(struct agent_options *options);

extern const char agent_usage[];

#endif
