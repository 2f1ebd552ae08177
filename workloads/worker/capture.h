/* Tensors that one place of a run reads and writes, as events (PROTOCOL.md). */
#ifndef WORKLOADS_WORKER_CAPTURE_H
#define WORKLOADS_WORKER_CAPTURE_H

#include "workloads/worker/probes.h"

/* The values of a place: one list of a record. */
struct capture_list {
    const struct probe_value *values; /* borrowed */
    int count;
};

/* Writes what PLACE of STEP read and wrote, with the emit of the run's probes, which has
 * no open line.  What it read gets the room that what it wrote leaves. */
void capture_place(struct run *run, int64_t step, const char *place,
                   struct capture_list in, struct capture_list out);

#endif
