/* Asking a stack's worker what it is: `--probe` and `--catalogue`, both at once, with a
 * deadline (a driver can hang) and bounded output. */
#ifndef DAEMON_AGENT_PROBE_H
#define DAEMON_AGENT_PROBE_H

#include <stdint.h>

#include "daemon/agent/stack.h"
#include "daemon/agent/supervise.h"

/* Calls DONE(arg) once, later: STACK then has probe and catalogue, or a cause.  STACK is
 * borrowed until then. */
void probe_start(struct supervisor *supervisor, struct stack *stack, int64_t timeout_ms,
                 void (*done)(void *arg), void *arg);

#endif
