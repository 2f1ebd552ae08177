/* Tensors that one place of a run reads and writes, as events (PROTOCOL.md). */
#ifndef WORKLOADS_WORKER_CAPTURE_H
#define WORKLOADS_WORKER_CAPTURE_H

#include "workloads/worker/probes.h"

/* Where the tensors belong: one list of a record. */
struct capture {
    int64_t step;
    const char *place, *role; /* role: "in" or "out" */
    int index;                /* set by capture_list */
};

/* Writes the COUNT values of a list, as much of them as is still allowed, with the emit
 * of the run's probes, which has no open line. */
void capture_list(struct run *run, struct capture capture,
                  const struct probe_value *values, int count);

#endif
