#include "cuda/worker/load.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cuda/kernels/kernel.h"
#include "cuda/worker/device.h"
#include "workloads/instruments/bits.h"
#include "workloads/worker/circumstances.h"

/* Kernels that a stream has ahead of it: while one ends, the next is there. */
enum { AHEAD = 2, CAUSE_SIZE = 256 };

/* Floats of all streams together: as much as the largest caches hold.  Rounds of a kernel
 * differ, so that it ends at another moment of the run each time; 0.2 to 1 ms together,
 * at some 0.7 us for each round's way to memory and back.  The simulator has no time for
 * as much. */
#ifdef REPROD_CUDASIM
enum { FLOATS = 1 << 12, ROUNDS_LEAST = 1, ROUNDS_SPREAD = 4 };
#else
enum { FLOATS = 16 << 20, ROUNDS_LEAST = 256, ROUNDS_SPREAD = 1024 };
#endif

static struct {
    int count, device;
    unsigned blocks, threads; /* of a kernel */
    float *values;
    cudaStream_t streams[CONTENTION_MAX];
    cudaEvent_t
        ended[(int)AHEAD * (int)CONTENTION_MAX]; /* kernel n is the one of n % all */
    pthread_t feeder;
    bool is_fed;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t went_on;
    bool ending;
    int64_t done; /* kernels that have ended; each stream's in turn */
    cudaError_t error;
    const char *failed; /* the call that did; NULL: none */
} load = { .mutex = PTHREAD_MUTEX_INITIALIZER, .went_on = PTHREAD_COND_INITIALIZER };

__global__ static void load_kernel(float *values, int64_t count, int rounds)
{
    int64_t at = kernel_thread() % count;

    for (int round = 0; round < rounds; round++) {
        values[at] = values[at] * 0.999f + 0.001f;
        at += kernel_threads();
        at = at < count ? at : at % count;
    }
}

static bool tried(cudaError_t error, const char *what)
{
    if (error != cudaSuccess && !load.failed) {
        pthread_mutex_lock(&load.mutex);
        load.error = error;
        load.failed = what;
        pthread_cond_signal(&load.went_on);
        pthread_mutex_unlock(&load.mutex);
    }
    return error == cudaSuccess;
}
#define TRIED(call) tried((call), #call)

static bool is_ending(void)
{
    bool ending;

    pthread_mutex_lock(&load.mutex);
    ending = load.ending;
    pthread_mutex_unlock(&load.mutex);
    return ending;
}

static bool wait_for_slot(int64_t kernel)
{
    if (kernel < AHEAD * load.count) {
        return true;
    }
    if (!TRIED(cudaEventSynchronize(load.ended[kernel % (AHEAD * load.count)]))) {
        return false;
    }
    pthread_mutex_lock(&load.mutex);
    load.done++;
    pthread_cond_signal(&load.went_on);
    pthread_mutex_unlock(&load.mutex);
    return true;
}

static bool launch(int64_t kernel)
{
    int stream = (int)(kernel % load.count);
    int64_t count = FLOATS / load.count;
    int rounds = ROUNDS_LEAST + (int)(mix64((uint64_t)kernel) % ROUNDS_SPREAD);

    LAUNCH_UNCHECKED(load_kernel, load.blocks, load.threads, 0, load.streams[stream],
                     load.values + stream * count, count, rounds);
    return tried(cudaGetLastError(), "the launch of a kernel") &&
           TRIED(cudaEventRecord(load.ended[kernel % (AHEAD * load.count)],
                                 load.streams[stream]));
}

static void *feed_main(void *)
{
    int64_t kernel = 0;

    if (!TRIED(cudaSetDevice(load.device))) {
        return NULL;
    }
    while (!is_ending() && wait_for_slot(kernel) && launch(kernel)) {
        kernel++;
    }
    for (int i = 0; i < load.count; i++) {
        TRIED(cudaStreamSynchronize(load.streams[i]));
    }
    return NULL;
}

/* A kernel's share: a quarter of the multiprocessors, fewer where there are more streams
 * than four, and of each the half of its threads.  So the run always has room. */
static void take_share(const cudaDeviceProp *properties)
{
    int parts = load.count < 4 ? 4 : load.count;
    int blocks = properties->multiProcessorCount / parts;
    int threads = properties->maxThreadsPerMultiProcessor / 2 / WARP_LANES * WARP_LANES;

    load.blocks = blocks < 1 ? 1 : (unsigned)blocks;
    load.threads = threads < WARP_LANES ? (unsigned)WARP_LANES
                   : threads > 1024     ? 1024u
                                        : (unsigned)threads;
}

static bool make_streams(void)
{
    int least = 0, greatest = 0;
    bool made = TRIED(cudaGetDevice(&load.device)) &&
                TRIED(cudaDeviceGetStreamPriorityRange(&least, &greatest)) &&
                TRIED(cudaMalloc((void **)&load.values, FLOATS * sizeof *load.values)) &&
                TRIED(cudaMemset(load.values, 0, FLOATS * sizeof *load.values)) &&
                TRIED(cudaDeviceSynchronize());

    for (int i = 0; made && i < load.count; i++) {
        made = TRIED(
            cudaStreamCreateWithPriority(&load.streams[i], cudaStreamNonBlocking, least));
    }
    for (int i = 0; made && i < AHEAD * load.count; i++) {
        made = TRIED(cudaEventCreateWithFlags(
            &load.ended[i], cudaEventBlockingSync | cudaEventDisableTiming));
    }
    return made;
}

static const char *load_check_cb(void)
{
    static char cause[CAUSE_SIZE];
    bool failed;
    int64_t wanted;

    pthread_mutex_lock(&load.mutex);
    wanted = load.done + load.count;
    while (!load.failed && load.done < wanted) {
        pthread_cond_wait(&load.went_on, &load.mutex);
    }
    failed = load.failed != NULL;
    pthread_mutex_unlock(&load.mutex);
    if (!failed) {
        return NULL;
    }
    snprintf(cause, sizeof cause, "%s: %s (%s, %d)", load.failed,
             cudaGetErrorString(load.error), cudaGetErrorName(load.error),
             (int)load.error);
    return cause;
}

static const char *load_start_cb(int count)
{
    static char cause[CAUSE_SIZE];
    int error;

    load.count = count;
    take_share(device_opened());
    if (!make_streams()) {
        cudaGetLastError(); /* forgets it: said below */
        return load_check_cb();
    }
    error = pthread_create(&load.feeder, NULL, feed_main, NULL);
    if (error) {
        snprintf(cause, sizeof cause, "no thread to feed it: %s", strerror(error));
        return cause;
    }
    load.is_fed = true;
    return load_check_cb();
}

static void load_stop_cb(void)
{
    if (!load.is_fed) {
        return;
    }
    pthread_mutex_lock(&load.mutex);
    load.ending = true;
    pthread_mutex_unlock(&load.mutex);
    pthread_join(load.feeder, NULL);
    load.is_fed = false;
}

const struct backend_load device_load = {
    .what = "streams",
    .start = load_start_cb,
    .check = load_check_cb,
    .stop = load_stop_cb,
};
