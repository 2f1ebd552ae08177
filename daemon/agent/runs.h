/* The runs of an agent: it starts them on command, and reports them until they end. */
#ifndef DAEMON_AGENT_RUNS_H
#define DAEMON_AGENT_RUNS_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/agent/forkers.h"
#include "daemon/agent/stack.h"
#include "daemon/agent/supervise.h"

struct agent_run;

/* Embedded in the agent; every field above `first` is set by it. */
struct runs {
    struct supervisor *supervisor;
    struct stack *stacks; /* borrowed */
    int stack_count;
    int threads;              /* where stack and command say nothing */
    const char *refuse_cause; /* why no run is started; NULL: runs are; borrowed */
    void (*send)(void *arg, json_t *event); /* takes ownership of the event */
    void (*ended)(void *arg);               /* the end of a run was reported */
    void *arg;
    struct agent_run *first;
    struct forkers forkers;
    bool ending;      /* runs_end was called */
    uv_timer_t later; /* for reports that wait */
    uv_timer_t tell;  /* for iterations that are held */
};

/* After the fields above `first` are set.  Runs_close is for when none is active. */
void runs_open(struct runs *runs, uv_loop_t *loop);
void runs_close(struct runs *runs);

/* The agent was told to end: a run that now ends otherwise than well may have been told
 * so, too, and is reported as cancelled. */
void runs_end(struct runs *runs);

/* Carries out {"command":"run",…}: answers `started` or `refused`.  Returns ERR_PROTOCOL
 * if COMMAND does not even name its run. */
enum err_code runs_command(struct runs *runs, const json_t *command, struct err *err);

/* {"command":"cancel",…}: no error where there is no such run: it has ended. */
enum err_code runs_cancel(struct runs *runs, const json_t *command, struct err *err);

bool runs_are_active(const struct runs *runs);

#endif
