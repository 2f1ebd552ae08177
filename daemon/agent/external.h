/* External workloads (daemon/config/external.h) on this host: the stacks that they run
 * in, described as a worker would describe itself, and a run of one. */
#ifndef DAEMON_AGENT_EXTERNAL_H
#define DAEMON_AGENT_EXTERNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/agent/external_build.h"
#include "daemon/agent/stack.h"
#include "daemon/base/err.h"

enum { EXTERNAL_STACKS_MAX = 2 };

/* Appends to COUNT probed stacks one for each backend that a complete workload of
 * WORKLOADS names: its devices are those of the first stack of that backend, its
 * catalogue the workloads.  A workload whose name a worker has too is left out; that, and
 * what a command lacks here, is in the `problems` of the stack's probe.  Returns how many
 * stacks there are then, at most EXTERNAL_STACKS_MAX more. */
int external_stacks_add(struct stack *stacks, int count, const json_t *workloads);

/* After some of the first COUNT of TOTAL stacks became usable: makes those stacks of
 * external workloads anew that had no device. */
void external_stacks_again(struct stack *stacks, int count, int total,
                           const json_t *workloads);

struct external_run {
    const json_t *workload; /* borrowed from its stack */
    const char *directory;  /* likewise */
    const json_t *device;   /* as probed; borrowed from its stack */
    struct external_build build;
    char **args; /* what follows the program; NULL-terminated */
    char **env;
    int threads;        /* that it is given */
    int64_t timeout_ms; /* the most that the configuration allows */
};

/* ARGUMENTS as a worker of STACK would get them, strings and integers; THREADS where
 * neither they nor the configuration say how many.  ERR_NOT_FOUND, ERR_IO or
 * ERR_TOO_LARGE: this host cannot run it, or not with these arguments.  Caller
 * releases. */
enum err_code external_run_init(struct external_run *ret_run, const struct stack *stack,
                                const json_t *arguments, const char *device, int threads,
                                struct err *err);
void external_run_release(struct external_run *run);

/* Changes a start event, and no other.  worker_build becomes the digest of the command,
 * and what the program said there moves to program_build.  backend and model are added if
 * they are missing, and env.REPROD_THREADS if its threads are not as many as it was
 * given.  Variables that its variant or seed decides are removed: they belong to the
 * case. */
void external_run_amend(const struct external_run *run, json_t *event);

/* Whether command and files still are what was executed; ERR says what changed. */
bool external_run_unchanged(const struct external_run *run, struct err *err);

#endif
