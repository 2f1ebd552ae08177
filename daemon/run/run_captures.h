/* What a run captured, put together from its `tensor` events.  Bounded: RUN_CAPTURES_MAX
 * tensors of at most 4 MiB, 16 MiB together.  Pure. */
#ifndef DAEMON_RUN_RUN_CAPTURES_H
#define DAEMON_RUN_RUN_CAPTURES_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/run.h"

struct tensor_event;

enum { RUN_CAPTURES_MAX = 128 };

/* Zero-initialised is empty. */
struct run_captures {
    struct captured_tensor *items;
    int count;
    int64_t bytes;      /* that all of them say they have */
    int64_t last_bytes; /* of the last one, so far */
    int64_t step;       /* the moment and place of all of them */
    int32_t iteration;
    char *place;
};

/* Adds a piece.  ERR_PROTOCOL: it is not the next piece of the last tensor nor the first
 * of another, belongs to another place, breaks a bound, or is not what it says. */
enum err_code run_captures_add(struct run_captures *tensors,
                               const struct tensor_event *event, struct err *err);

/* ERR_PROTOCOL: the last tensor lacks pieces. */
enum err_code run_captures_finish(const struct run_captures *tensors, struct err *err);

void run_captures_release(struct run_captures *tensors);

#endif
