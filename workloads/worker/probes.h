/* Probes of a run: the records that workloads make with run_probe (workload.h), which of
 * them are wanted, and the events that they leave in (PROTOCOL.md).
 *
 * Records are gathered into one line a step.  The clock of the iteration stands while one
 * is made, so that the time of the computation is the same with probes and without. */
#ifndef WORKLOADS_WORKER_PROBES_H
#define WORKLOADS_WORKER_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/instruments/digest.h"
#include "workloads/worker/emit.h"
#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PROBES_RECORDS_MAX = 262144, /* of a run; further ones are counted and left out */
    PROBES_PLACE_MAX = 128,      /* bytes */
    PROBES_HASHED_MAX = 64,      /* buffers that are remembered between two records */
    PROBES_CHUNK = 32 * 1024,    /* bytes of a tensor in one event */
    PROBES_TENSOR_MAX = 4 * 1024 * 1024, /* bytes captured of one tensor, and of a run */
    PROBES_CAPTURED_MAX = 16 * 1024 * 1024
};

/* What is requested. */
struct probes_request {
    int64_t every; /* each N-th step is recorded: 0, N, 2 N …; 0: none is */
    int64_t first_step, last_step;
    const char *names; /* pattern of fnmatch(3) for places; NULL: all.  Borrowed */

    bool capture; /* also what one place read and wrote, the first time it is reached */
    int capture_iteration;
    int64_t capture_step;
    const char *capture_place; /* borrowed */
};

struct probes_hashed {
    const void *data;
    int64_t elements;
    enum dtype dtype;
    struct digest digest;
};

struct probes_input {
    bool hashed;
    struct digest digest;
};

/* Private, but for the storage. */
struct probes {
    struct probes_request request;
    struct emit emit; /* the line of records that is being made */
    int line_iteration;
    int64_t line_step;
    bool line_open;
    int64_t step; /* the latest that run_probing was asked about */
    int64_t records, dropped;
    double computed_ms; /* of the iteration, before its latest record */
    bool captured;
    struct probes_hashed hashed[PROBES_HASHED_MAX]; /* since the latest run_probing */
    int hashed_count;
    struct probes_input inputs[RUN_TENSORS_MAX]; /* the run's */
};

/* REQUEST is copied, but for its texts.  Events go to descriptor FD. */
void probes_init(struct probes *probes, const struct probes_request *request, int fd);

/* Whether anything is recorded or captured at all. */
bool probes_wanted(const struct probes_request *request);

/* The end of an iteration whose clock says MILLISECONDS: records what it put out (places
 * "output/NAME", which read all inputs) and writes what is left.  Returns how long the
 * computation alone took. */
double probes_iteration_end(struct run *run, double milliseconds);

/* Writes the records made so far.  For a run that ends early. */
void probes_flush(struct probes *probes);

#ifdef __cplusplus
}
#endif

#endif
