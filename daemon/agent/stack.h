/* A stack of the agent: a worker binary with the libraries and environment it runs in,
 * and what it said about itself when it was asked. */
#ifndef DAEMON_AGENT_STACK_H
#define DAEMON_AGENT_STACK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

struct supervisor;

struct stack {
    char *name;
    char *worker;       /* path; NULL: its workloads are external */
    char *library_path; /* NULL: the system's */
    int threads;        /* 0: as the agent's --threads says */
    int64_t probe_ms;   /* deadline of its probe; 0: as the agent's --probe-ms says */
    json_t *variables;  /* object of strings, and nulls: not set; NULL: none */
    json_t *externals;  /* array of complete workloads (daemon/config/external.h); NULL: a
                           worker  computes */

    json_t *probe;     /* object; NULL until probed, or if that failed */
    json_t *catalogue; /* array; likewise */
    char *cause;       /* why it is not usable; NULL: it is */
    bool stuck;        /* its last probe is still there after SIGKILL: asking again would
                          leave one more */
    bool changed; /* probe, catalogue or cause are others than before the last probe */
};

/* "NAME=WORKER". */
enum err_code stack_parse(struct stack *ret_stack, const char *text, struct err *err);

/* A stack as a configuration has it (struct config_stack). */
enum err_code stack_parse_json(struct stack *ret_stack, const char *text,
                               struct err *err);

enum { STACK_DEFAULTS_MAX = 2 };

/* The stack "cpu" with the worker that comes with this executable and, if one for GPUs
 * was built, "cuda" with that: on a machine without a GPU it says why it has no device.
 * Returns how many. */
int stack_init_defaults(struct stack ret_stacks[STACK_DEFAULTS_MAX]);

void stack_release(struct stack *stack);

/* Where programs are looked for. */
#define STACK_PATH "/usr/local/bin:/usr/bin:/bin"

/* The whole environment of its workers: fixed values, what the stack sets instead of them
 * or in addition, and nothing inherited that changes what is computed.  OMP_WAIT_POLICY
 * is not among the fixed values of external workloads.  Caller frees with
 * free_texts. */
char **stack_environment(const struct stack *stack);

/* How long a probe may take where nothing else was said.  A driver without persistence
 * mode wakes each GPU first, some seconds each: reprod-worker-cuda has a minute. */
enum { STACK_PROBE_MS = 10000 };
int64_t stack_probe_ms(const struct stack *stack, int64_t standard_ms);

/* Asks its worker what it is, `--probe` and `--catalogue` at once, with a deadline, its
 * own or TIMEOUT_MS (a driver can hang) and bounded output.  Where a worker cannot be
 * started, or is killed, it is asked again, a few times.  Calls DONE(arg) once, later:
 * STACK, borrowed until then, has probe and catalogue, or a cause.  Logs that cause, and
 * that it is gone, if it changed.  Only for a stack that was not usable, if it was probed
 * before. */
void stack_probe(struct supervisor *supervisor, struct stack *stack, int64_t timeout_ms,
                 void (*done)(void *arg), void *arg);

/* Whether its probe named that device. */
bool stack_has_device(const struct stack *stack, const char *device);

/* As in hello.  Caller frees with json_decref. */
json_t *stack_json(const struct stack *stack);

/* The path of a program that is installed with this executable: in its folder, or in
 * ../libexec/reprod.  Caller frees. */
char *stack_companion(const char *program);

#endif
