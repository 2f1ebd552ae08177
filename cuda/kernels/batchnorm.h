/* What the gradients of batch normalization with and without training share: the twin of
 * workloads/shared/batchnorm.h, which defines the operation.  The ordered sums are added
 * in the CPU's order, so they have the CPU's bits. */
#ifndef CUDA_KERNELS_BATCHNORM_H
#define CUDA_KERNELS_BATCHNORM_H

#include "cuda/kernels/kernel.h"
#include "cuda/kernels/tree.h"
#include "workloads/shared/batchnorm_shape.h"

#include <stdlib.h>

enum {
    NORM_TASK_ROWS = 32, /* summed by a thread before its atomicAdds */
    NORM_AHEAD = 8,      /* rows that it reads before it adds them */
    NORM_JOIN_SIDE = 32  /* sums of a thread block, and members of a tree */
};

struct norm {
    int64_t rows, channels;
    const float *x, *dy, *scale, *mean, *inv_std;
    float *dx, *doffset, *dscale;
    float *parts; /* doffset and dscale for each slot */
};

__device__ static inline float norm_xhat(const struct norm *norm, int64_t i)
{
    int64_t c = i % norm->channels;

    return (norm->x[i] - norm->mean[c]) * norm->inv_std[c];
}

/* Both sums of channel C over rows [BEGIN, END).  Neither is ever -0, so zeros behind the
 * end change nothing. */
__device__ static inline void norm_rows_add(const struct norm *norm, int64_t c,
                                            int64_t begin, int64_t end, float *ret_offset,
                                            float *ret_scale)
{
    float offset = 0, scale = 0;

    for (int64_t row = begin; row < end; row += NORM_AHEAD) {
        float dy[NORM_AHEAD], xhat[NORM_AHEAD];

        for (int k = 0; k < NORM_AHEAD; k++) {
            int64_t i = (row + k) * norm->channels + c;

            dy[k] = row + k < end ? norm->dy[i] : 0;
            xhat[k] = row + k < end ? (norm->x[i] - norm->mean[c]) * norm->inv_std[c] : 0;
        }
        for (int k = 0; k < NORM_AHEAD; k++) {
            offset += dy[k];
            scale += dy[k] * xhat[k];
        }
    }
    *ret_offset = offset;
    *ret_scale = scale;
}

__global__ static void norm_atomic_kernel(struct norm norm, int64_t tasks)
{
    KERNEL_FOR(i, tasks * norm.channels)
    {
        int64_t c = i % norm.channels, begin = i / norm.channels * NORM_TASK_ROWS;
        int64_t end =
            begin + NORM_TASK_ROWS < norm.rows ? begin + NORM_TASK_ROWS : norm.rows;
        float offset, scale;

        norm_rows_add(&norm, c, begin, end, &offset, &scale);
        atomicAdd(&norm.doffset[c], offset);
        atomicAdd(&norm.dscale[c], scale);
    }
}

static inline void norm_sums_unordered(const struct norm *norm)
{
    size_t bytes = (size_t)norm->channels * sizeof(float);
    int64_t tasks = ceil_div(norm->rows, NORM_TASK_ROWS);

    CUDA_TRY(cudaMemsetAsync(norm->doffset, 0, bytes));
    CUDA_TRY(cudaMemsetAsync(norm->dscale, 0, bytes));
    LAUNCH_ITEMS(norm_atomic_kernel, tasks * norm->channels, *norm, tasks);
}

__global__ static void norm_slot_kernel(struct norm norm)
{
    KERNEL_FOR(i, NORM_SLOTS * norm.channels)
    {
        int64_t c = i % norm.channels, slot = i / norm.channels;
        float *part = norm.parts + slot * 2 * norm.channels + c;

        norm_rows_add(&norm, c, slot * norm.rows / NORM_SLOTS,
                      (slot + 1) * norm.rows / NORM_SLOTS, part, part + norm.channels);
    }
}

__global__ static void norm_join_kernel(struct norm norm)
{
    int64_t i = (int64_t)blockIdx.x * NORM_JOIN_SIDE + threadIdx.x;
    int64_t stride = 2 * norm.channels;
    bool has_tree = i < stride;

    tree_sum_in_block(norm.parts + i, NORM_SLOTS, stride,
                      has_tree ? threadIdx.y : (int64_t)NORM_SLOTS, NORM_JOIN_SIDE);
    if (!has_tree || threadIdx.y != 0) {
        return;
    }
    if (i < norm.channels) {
        norm.doffset[i] = norm.parts[i];
    } else {
        norm.dscale[i - norm.channels] = norm.parts[i];
    }
}

static inline void norm_sums_ordered(const struct norm *norm)
{
    LAUNCH_ITEMS(norm_slot_kernel, NORM_SLOTS * norm->channels, *norm);
    LAUNCH(norm_join_kernel, (unsigned)ceil_div(2 * norm->channels, NORM_JOIN_SIDE),
           dim3(NORM_JOIN_SIDE, NORM_JOIN_SIDE), 0, 0, *norm);
}

__global__ static void norm_statistics_kernel(struct norm norm)
{
    KERNEL_FOR(c, norm.channels)
    {
        norm_statistics(norm.x + c, norm.rows, norm.channels, &norm.parts[c],
                        &norm.parts[norm.channels + c]);
    }
}

/* Statistics of x, which is in the memory of the device; parts is free to hold them. */
static inline void norm_make_statistics(struct run *run, struct norm *norm)
{
    size_t bytes = (size_t)norm->channels * sizeof(float);
    float *host = (float *)run_host_alloc(2 * bytes);

    LAUNCH_ITEMS(norm_statistics_kernel, norm->channels, *norm);
    CUDA_TRY(cudaMemcpy(host, norm->parts, 2 * bytes, cudaMemcpyDeviceToHost));
    norm->mean = run_values_f32(run, "mean", 1, &norm->channels, host);
    norm->inv_std =
        run_values_f32(run, "inv_std", 1, &norm->channels, host + norm->channels);
    free(host);
}

static inline void norm_setup(struct run *run)
{
    const struct norm_shape *s = (const struct norm_shape *)run->size->params;
    struct norm *norm = (struct norm *)run_host_alloc(sizeof *norm);
    int64_t shape[] = { s->images, s->height, s->width, s->channels };
    const int64_t *channels = &shape[3];

    norm->rows = s->images * s->height * s->width;
    norm->channels = s->channels;
    norm->x = run_input_f32(run, "x", 4, shape, FILL_UNIFORM);
    norm->dy = run_input_f32(run, "dy", 4, shape, FILL_WIDE);
    norm->scale = run_input_f32(run, "scale", 1, channels, FILL_UNIFORM);
    norm->parts = run_alloc_f32(run, NORM_SLOTS * 2 * s->channels);
    norm_make_statistics(run, norm);
    norm->dx = run_output_f32(run, "dx", 4, shape);
    norm->doffset = run_output_f32(run, "doffset", 1, channels);
    norm->dscale = run_output_f32(run, "dscale", 1, channels);
    run->state = norm;
}

#endif
