/* Softmax cross-entropy, dense and sparse: what both twins share; the operation is that
 * of workloads/shared/softmax.h.
 *
 * A warp takes a task, SOFTMAX_TASK classes of one example; what tasks find meets in
 * atomicAdd, or is stored and joined by one warp an example.  expf and logf of the GPU
 * are not those of the CPU's library, so no variant promises the CPU's bits, and the
 * order within a task is the warp's own. */
#ifndef CUDA_KERNELS_SOFTMAX_H
#define CUDA_KERNELS_SOFTMAX_H

#include "cuda/kernels/kernel.h"
#include "workloads/shared/softmax_shape.h"

#include <math.h>
#include <stdlib.h>

enum { SOFTMAX_TASK = 8 * WARP_LANES /* classes */ };

struct softmax {
    int64_t examples, classes, tasks; /* tasks of an example */
    const float *logits;              /* [examples][classes] */
    float *maxima, *sums;             /* [examples] */
    float *parts;                     /* [examples][tasks] */
    float *losses_host;               /* [examples]: host memory */
};

/* Takes the memory and makes the logits. */
static inline void softmax_init(struct run *run, struct softmax *softmax)
{
    const struct xent_shape *size = (const struct xent_shape *)run->size->params;
    int64_t shape[] = { size->examples, size->classes };
    size_t bytes = (size_t)size->examples * sizeof(float);

    softmax->examples = size->examples;
    softmax->classes = size->classes;
    softmax->tasks = ceil_div(size->classes, SOFTMAX_TASK);
    softmax->logits = run_input_f32(run, "logits", 2, shape, FILL_UNIFORM);
    softmax->maxima = (float *)run_alloc(run, bytes);
    softmax->sums = (float *)run_alloc(run, bytes);
    softmax->parts = (float *)run_alloc(run, bytes * (size_t)softmax->tasks);
    softmax->losses_host = (float *)run_host_alloc(bytes);
}

/* WARP_FOR(warp, count) … gives each warp of the grid its items, all lanes the same. */
#define WARP_FOR(warp, count)                                                            \
    for (int64_t warp = kernel_thread() / WARP_LANES; warp < (count);                    \
         warp += kernel_threads() / WARP_LANES)

/* The largest logit of each example: exact, so in any order. */
__global__ static void softmax_maximum_kernel(struct softmax softmax)
{
    int64_t lane = threadIdx.x % WARP_LANES;

    WARP_FOR(b, softmax.examples)
    {
        const float *logits = softmax.logits + b * softmax.classes;
        float maximum = -INFINITY;

        for (int64_t c = lane; c < softmax.classes; c += WARP_LANES) {
            maximum = fmaxf(maximum, logits[c]);
        }
        for (int step = WARP_LANES / 2; step > 0; step /= 2) {
            maximum = fmaxf(maximum, __shfl_xor_sync(ALL_LANES, maximum, step));
        }
        if (lane == 0) {
            softmax.maxima[b] = maximum;
            softmax.sums[b] = 0;
        }
    }
}

/* What a task found: added to its example in TO, or kept for the join. */
__device__ static inline void softmax_task_end(const struct softmax *softmax,
                                               int64_t task, float value, bool atomically,
                                               float *to)
{
    value = warp_sum(value);
    if (threadIdx.x % WARP_LANES != 0) {
        return;
    }
    if (atomically) {
        atomicAdd(&to[task / softmax->tasks], value);
    } else {
        softmax->parts[task] = value;
    }
}

__global__ static void softmax_sum_kernel(struct softmax softmax, bool atomically)
{
    WARP_FOR(task, softmax.examples * softmax.tasks)
    {
        int64_t b = task / softmax.tasks, begin = task % softmax.tasks * SOFTMAX_TASK;
        const float *logits = softmax.logits + b * softmax.classes;
        float sum = 0;

        for (int64_t c = begin + threadIdx.x % WARP_LANES;
             c < begin + SOFTMAX_TASK && c < softmax.classes; c += WARP_LANES) {
            sum += expf(logits[c] - softmax.maxima[b]);
        }
        softmax_task_end(&softmax, task, sum, atomically, softmax.sums);
    }
}

__global__ static void softmax_join_kernel(struct softmax softmax, float *to)
{
    WARP_FOR(b, softmax.examples)
    {
        float sum = 0;

        for (int64_t t = threadIdx.x % WARP_LANES; t < softmax.tasks; t += WARP_LANES) {
            sum += softmax.parts[b * softmax.tasks + t];
        }
        sum = warp_sum(sum);
        if (threadIdx.x % WARP_LANES == 0) {
            to[b] = sum;
        }
    }
}

/* After the tasks of an `ordered` variant: joins their parts. */
static inline void softmax_join(const struct softmax *softmax, float *to)
{
    LAUNCH_ITEMS(softmax_join_kernel, softmax->examples * WARP_LANES, *softmax, to);
}

/* maxima and sums */
static inline void softmax_find_sums(const struct softmax *softmax, bool atomically)
{
    LAUNCH_ITEMS(softmax_maximum_kernel, softmax->examples * WARP_LANES, *softmax);
    LAUNCH_ITEMS(softmax_sum_kernel, softmax->examples * softmax->tasks * WARP_LANES,
                 *softmax, atomically);
    if (!atomically) {
        softmax_join(softmax, softmax->sums);
    }
}

/* The loss of the run from LOSSES, in the memory of the device. */
static inline float softmax_loss(const struct softmax *softmax, const float *losses)
{
    CUDA_TRY(cudaMemcpy(softmax->losses_host, losses,
                        (size_t)softmax->examples * sizeof(float),
                        cudaMemcpyDeviceToHost));
    return softmax_mean(softmax->losses_host, softmax->examples);
}

#endif
