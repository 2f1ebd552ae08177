/* The next larger size of a survey on a GPU, for workloads whose kernels are too short
 * for a cost to be told of them (times.h).  Pure.
 *
 * A larger size is taken by itself only where what it needs is known to be little of the
 * device's memory and time.  So neither commands of the configuration nor packs of
 * frameworks are among them: what their sizes need is theirs to know.  Nor are sizes
 * whose names say something else than how large they are ("deconv"). */
#ifndef DAEMON_JOBS_LARGER_H
#define DAEMON_JOBS_LARGER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/evidence/catalogue.h"
#include "daemon/evidence/times.h"
#include "daemon/jobs/case.h"

enum {
    LARGER_SIZES = 3, /* small, medium, large */
    LARGER_RUNS = 5,  /* of each variant: as many as those of the survey, whose proof they
                         do not weaken; a control that varies ends after JOBS_STOP_RUNS */
    LARGER_ITERATIONS = 10,
    LARGER_SHARE = 4,       /* a size may need a quarter of the device's memory */
    LARGER_GROWTH = 128,    /* a size computes at most so many times what the one before
                               it does */
    LARGER_RUN_MS = 20000,  /* no run is expected to take longer … */
    LARGER_ALL_MS = 300000, /* … nor all runs of a workload on a device together */
    LARGER_TIMEOUT_SECONDS = 300 /* of each run: far beyond what is expected */
};

/* 0 for "small", 1, 2; -1 for other names. */
int larger_rank(const char *size);
const char *larger_size(int rank);

/* What workloads of reprod need at most in the size of RANK, in bytes: twice and more
 * what their tensors take, which tests/unit/worker/test_size_bytes.c counts, since
 * libraries work with memory of their own. */
int64_t larger_bytes(int rank);

/* A cell of the environment in which a device computes. */
struct larger_cell {
    struct case_key key;
    bool is_control;
    struct quartiles times;
};

/* What the last survey of a workload on a device with one of its stacks was. */
struct larger_surveyed {
    int rank;             /* of its largest size */
    int64_t run_ms;       /* device time of one run, the longest of its variants' means */
    int64_t memory_bytes; /* of the device; 0: unknown */
};

/* The rank of the size that WORKLOAD, on a GPU, is to be measured in next, in its first
 * dtype and with seed 1; -1: none.  CELLS may be of other workloads and cases, too.
 *
 * There is one where the size of the survey was measured, a control and another variant
 * often enough to have a cost; where the shortest of its variants takes less than
 * TIMES_GPU_LEAST_NS; and where the same is true of each size between them.  It must not
 * have been measured yet, and has to fit. */
int larger_next(const struct catalogue_workload *workload,
                const struct larger_surveyed *surveyed, const struct larger_cell *cells,
                int count);

#endif
