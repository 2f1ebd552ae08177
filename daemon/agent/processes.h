/* Who else uses the devices of this host: a worker that can tell is asked now and then,
 * in a process of its own, since a driver can hang; the daemon hears what changed.
 *
 * What can go wrong: the worker has no answer in time, or none that can be read.  Then
 * nothing is known, and that is what the daemon hears. */
#ifndef DAEMON_AGENT_PROCESSES_H
#define DAEMON_AGENT_PROCESSES_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "daemon/agent/stack.h"
#include "daemon/agent/supervise.h"

enum { PROCESSES_EVERY_MS = 10 * 1000, PROCESSES_TIMEOUT_MS = 20 * 1000 };

struct processes {
    struct supervisor *supervisor; /* these are set before processes_watch */
    void (*send)(void *arg, json_t *event);
    void *arg;
    uv_timer_t timer; /* the rest is private */
    const struct stack *stack;
    bool asking;
    json_t *answer, *told;
    char *cause;
};

/* Before anything else; the timer is closed by whoever closes the loop's handles. */
void processes_init(struct processes *processes, uv_loop_t *loop);

/* Chooses the first of the stacks, which were probed, that can tell.  Array of the
 * devices of which it will, for the hello; new reference. */
json_t *processes_choose(struct processes *processes, const struct stack *stacks,
                         int count);

/* From now on, after the hello. */
void processes_watch(struct processes *processes);

void processes_close(struct processes *processes);
void processes_release(struct processes *processes);

#endif
