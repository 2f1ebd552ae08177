/* The runs of an agent: started on command, told about until they ended. */
#ifndef DAEMON_AGENT_RUNS_H
#define DAEMON_AGENT_RUNS_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/agent/stack.h"
#include "daemon/agent/supervise.h"

struct agent_run;

/* Embedded in the agent; every field above `first` is set by it. */
struct runs {
    struct supervisor *supervisor;
    struct stack *stacks; /* borrowed */
    int stack_count;
    int threads;              /* where stack and command say nothing */
    const char *refuse_cause; /* NULL: runs are taken; else why not; borrowed */
    void (*send)(void *arg, json_t *event); /* takes ownership of the event */
    void (*ended)(void *arg);               /* a run was told to have ended */
    void *arg;
    struct agent_run *first;
};

/* Carries out {"command":"run",…}: answers `started` or `refused`.  Returns ERR_PROTOCOL
 * if COMMAND does not even name its run. */
enum err_code runs_command(struct runs *runs, const json_t *command, struct err *err);

/* {"command":"cancel",…}: a run that is not there has ended already, which is fine. */
enum err_code runs_cancel(struct runs *runs, const json_t *command, struct err *err);

bool runs_are_active(const struct runs *runs);

#endif
