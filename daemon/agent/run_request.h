/* The command to start a run, {"command":"run",…}: what it says, checked, and what its
 * worker is told. */
#ifndef DAEMON_AGENT_RUN_REQUEST_H
#define DAEMON_AGENT_RUN_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/agent/external.h"
#include "daemon/agent/stack.h"
#include "daemon/base/err.h"

/* Texts and JSON are borrowed from the command. */
struct run_request {
    const char *id, *device, *stack_name;
    const struct stack *stack;
    int64_t timeout_ms;
    int64_t check_seconds;    /* 0: the run does not check itself */
    const char *check_passed; /* NULL: nothing passed before */
    bool merge_iterations;    /* its service understands several in one event */
    const json_t *arguments;
    char **args; /* NULL-terminated; the texts are owned */
    int arg_count;
    bool shared_import;           /* a forker forks it */
    struct external_run external; /* all zero where a worker computes */
};

/* What COMMAND says, into REQUEST, which has its id. */
enum err_code run_request_read(const json_t *command, struct run_request *request,
                               struct err *err);

/* ERR_NOT_FOUND, or ERR_UNSUPPORTED: the stack that it names is not usable. */
enum err_code run_request_find_stack(struct run_request *request,
                                     const struct stack *stacks, int count,
                                     struct err *err);

/* Its arguments, after its stack was found.  THREADS: where neither stack nor command say
 * how many. */
enum err_code run_request_prepare(struct run_request *request, int threads,
                                  struct err *err);

int run_request_threads(const struct run_request *request, int threads);

void run_request_release(struct run_request *request);

#endif
