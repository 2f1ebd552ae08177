/* The stacks of external workloads (daemon/config/external.h): what this host can run of
 * them, told as a worker would tell it. */
#ifndef DAEMON_AGENT_EXTERNAL_H
#define DAEMON_AGENT_EXTERNAL_H

#include <jansson.h>

#include "daemon/agent/stack.h"

enum { EXTERNAL_STACKS_MAX = 2 };

/* Appends to COUNT probed stacks one for each backend that a complete workload of
 * WORKLOADS names: its devices are those of the first stack of that backend, its
 * catalogue the workloads.  One that a worker has by the same name is left out; that, and
 * what a command lacks here, is in the `problems` of its probe.  Returns how many stacks
 * there are then, at most EXTERNAL_STACKS_MAX more. */
int external_stacks_add(struct stack *stacks, int count, const json_t *workloads);

#endif
