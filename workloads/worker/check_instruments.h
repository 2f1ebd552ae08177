/* What --check compares besides the reference: the digest and the exact sum that the
 * device computes of a tensor, with those that the host computes of a copy of it. */
#ifndef WORKLOADS_WORKER_CHECK_INSTRUMENTS_H
#define WORKLOADS_WORKER_CHECK_INSTRUMENTS_H

#include <stdbool.h>

#include "workloads/worker/backend.h"

/* What the instruments say of one tensor. */
struct reading {
    struct digest digest;
    double sum; /* exact, rounded once */
};

/* Read on the device, as in a run. */
struct reading reading_of_device(struct run *run, const struct tensor *tensor);

/* Computed anew, on the host, of COPY: the tensor's elements in the host's memory. */
struct reading reading_of_copy(const struct tensor *tensor, const void *copy);

/* Bit for bit; NaNs are equal where their bits are. */
bool reading_equal(struct reading a, struct reading b);

/* Adds both, and whether they agree, to the open object of an output. */
void reading_emit(struct emit *emit, struct reading device, struct reading copy);

#endif
