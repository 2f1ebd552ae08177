/* A backend: where tensors live and how the worker handles them there.  The CPU's is in
 * backend_cpu.c, CUDA's in cuda/.  A worker has exactly one; it registers itself with
 * BACKEND_REGISTER, and the workloads of that backend are the ones the worker knows.
 *
 * Hooks may end the run: run_infra when the machine fails them. */
#ifndef WORKLOADS_WORKER_BACKEND_H
#define WORKLOADS_WORKER_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "workloads/instruments/digest.h"
#include "workloads/worker/emit.h"
#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BACKEND_MESSAGE_SIZE = 512 };

/* What run_input wants in a tensor. */
struct filling {
    enum fill fill;
    uint64_t seed;
    uint64_t stream; /* philox_stream of the tensor */
    uint64_t limit;  /* FILL_INDEX: exclusive upper bound, representable in the dtype */
};

/* Load within the process of the run.  START and CHECK give one line with the cause where
 * it does not compute, valid until the next call; NULL: it does. */
struct backend_load {
    const char *what; /* what each load is: "streams" */

    /* COUNT (1 to CONTENTION_MAX) loads compute on the opened device. */
    const char *(*start)(int count);

    /* Each load has gone on since the last call; waits until it has. */
    const char *(*check)(void);

    /* All has ended when it returns.  Also where START failed. */
    void (*stop)(void);
};

struct backend {
    const char *name; /* "cpu" or "cuda": workload.backend */
    size_t alignment; /* of what `allocate` gives, which moved allocations keep */
    int threads_default;
    int threads_max;

    /* Chooses the device with id DEVICE for the rest of the process, or the first one
     * when DEVICE is NULL.  False, with one line in ret_message that names the nearest
     * id, when the devices could be listed and it is not among them.  When they cannot be
     * listed it returns true, and open says why.  Called before anything else is done:
     * it may have the program begin anew (self.h). */
    bool (*select)(const char *device, char ret_message[BACKEND_MESSAGE_SIZE]);

    /* Makes the chosen device ready for the run.  Called once, before anything below. */
    void (*open)(struct run *run);

    /* The id of the device in use, read back from the device itself, or "unknown" before
     * open succeeded.  Borrowed: valid until the process ends. */
    const char *(*device_id)(void);

    /* BYTES (>= 1) of the device's memory, aligned; NULL when there is not enough.
     * It lives until the process ends. */
    void *(*allocate)(struct run *run, size_t bytes);

    void (*fill)(struct run *run, struct tensor *tensor, const struct filling *filling);
    void (*upload)(struct run *run, void *device, const void *host, size_t bytes);
    void (*download)(struct run *run, void *host, const void *device, size_t bytes);

    /* Repeats the four bytes of PATTERN, lowest first, over BYTES of device memory. */
    void (*poison)(struct run *run, void *device, size_t bytes, uint32_t pattern);

    struct digest (*digest)(struct run *run, const struct tensor *tensor);
    /* The same of COUNT tensors at once.  NULL: one after the other. */
    void (*digests)(struct run *run, const struct tensor *tensors, int count,
                    struct digest *ret_digests);

    /* The exact sum of all elements, rounded once (instruments/exact_sum.h). */
    double (*exact_sum)(struct run *run, const struct tensor *tensor);

    /* Brings run->threads threads, or the device, to where the next computation starts
     * without start-up costs.  Called right before each computation. */
    void (*warm)(struct run *run);

    /* Around each computation; timer_stop waits until all of it is done and returns the
     * milliseconds between. */
    void (*timer_start)(struct run *run);
    double (*timer_stop)(struct run *run);

    /* Some ten milliseconds of work for the cores and the memory of the opened device,
     * with run->threads threads: what a load process does again and again (load.h).  NULL
     * where load_within is not. */
    void (*load)(struct run *run);

    /* NULL: load is other processes. */
    const struct backend_load *load_within;

    /* Adds the backend's facts to the open object "environment": strings and integers
     * only.  Not "backend", "worker_build" or "env.…", which every worker has. */
    void (*emit_environment)(struct emit *emit, const struct run *run);

    /* Adds "versions", "devices" and "cause" (null, or why there is no device) to the
     * open object of --probe.  Works, and never fails, without a device. */
    void (*emit_probe)(struct emit *emit);

    /* Adds what the sensors of the device in use say now to the open object "telemetry"
     * of `start` and `end` (PROTOCOL.md), or "cause", why they say nothing.  Returns soon
     * even where the driver hangs, and works after the run failed.  NULL: none. */
    void (*emit_telemetry)(struct emit *emit, const struct run *run);

    /* Adds "devices" (array of {"id","foreign","cause"}) and "cause" to the open object
     * of
     * --processes (PROTOCOL.md).  Uses no device, and works without one.  NULL: this
     * backend cannot tell. */
    void (*emit_processes)(struct emit *emit);
};

#define BACKEND_REGISTER(b)                                                              \
    extern const struct backend *const b##_backend_registered;                           \
    __attribute__((used, section("reprod_backends")))                                    \
    const struct backend *const b##_backend_registered = &b

#ifdef __cplusplus
}
#endif

#endif
