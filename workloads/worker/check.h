/* Comparing every element of every output with the workload's float64 reference, and what
 * the device's instruments say of every output with what the host's say of a copy: of the
 * one iteration of --check, or of one of a run (--run --checked). */
#ifndef WORKLOADS_WORKER_CHECK_H
#define WORKLOADS_WORKER_CHECK_H

#include <stdbool.h>

#include "workloads/worker/args.h"
#include "workloads/worker/backend.h"

/* How far one output is from its reference.  An element's error is |got - expected|, its
 * ratio error / bound: 0 where the values are equal, infinite where the bound is 0 and
 * they are not, where the value or the expectation is NaN or infinite (whatever is added
 * to an infinity leaves it as it is, so equal ones prove nothing), and where the bound is
 * negative or not finite.  It passes with a ratio up to 1. */
struct deviation {
    double ratio;  /* the worst */
    int64_t index; /* the element that has it: the first of equals */
    double got, expected, bound;
    int64_t failed; /* elements that do not pass */
};

/* Compares the ELEMENTS host values of DTYPE at DATA. */
struct deviation check_compare(enum dtype dtype, const void *data, int64_t elements,
                               const double *expected, const double *bound);

/* What the instruments say of one tensor. */
struct reading {
    struct digest digest;
    double sum; /* exact, rounded once */
};

/* Read on the device, as in a run. */
struct reading reading_of_device(struct run *run, const struct tensor *tensor);

/* Computed again, on the host, from COPY: the tensor's elements in the host's memory. */
struct reading reading_of_copy(const struct tensor *tensor, const void *copy);

/* Bit for bit; NaNs are equal where their bits are. */
bool reading_equal(struct reading a, struct reading b);

/* Copies, in the host's memory, of what the reference sees. */
struct host_copies {
    struct run run; /* with the copies of the outputs */
    struct tensor inputs[RUN_TENSORS_MAX];
};

/* Both are false when there is no host memory for it.  Outputs are those of the
 * iteration that RUN has just computed, and with them RUN as it is now. */
bool host_copies_take_inputs(struct host_copies *copies, struct run *run);
bool host_copies_take_outputs(struct host_copies *copies, struct run *run);

/* Compares the copy of output INDEX with the reference. */
struct deviation check_output(const struct host_copies *copies, int index);

/* --check: prints one JSON object to standard output; returns the exit status
 * (status.h). */
int check_run(const struct args *args, const struct backend *backend);

#endif
