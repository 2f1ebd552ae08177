/* Sums over rows for each channel, of dy and of dy * xhat, where xhat is the normalized
 * x: what the gradients of batch and layer normalization have in common.  The ordered
 * sums are added in the order of the CPU's, so they have its bits. */
#ifndef CUDA_KERNELS_CHANNEL_SUMS_H
#define CUDA_KERNELS_CHANNEL_SUMS_H

#include "cuda/kernels/kernel.h"
#include "cuda/kernels/tree.h"

enum {
    CHANNEL_SLOTS = 64,     /* `ordered`: groups of rows, which a tree joins */
    CHANNEL_TASK_ROWS = 32, /* summed by a thread before its atomicAdds */
    CHANNEL_AHEAD = 16,     /* rows that it reads before it adds them */
    CHANNEL_THREADS = 64,   /* of a block of `ordered`: small ones fill a device */
    CHANNEL_JOIN_SIDE = 32  /* sums of a thread block, and members of a tree */
};

/* Who normalizes: mean and inv_std are of a channel (batch) or of a row (layer). */
enum channel_norm { NORM_OF_CHANNEL, NORM_OF_ROW };

struct channel_sums {
    int64_t rows, channels;
    const float *x, *dy, *mean, *inv_std;
    float *doffset, *dscale; /* [channels]: of dy, and of dy * xhat */
    float *parts;            /* doffset and dscale for each slot */
};

template <enum channel_norm OF>
__device__ static inline float channel_xhat(const struct channel_sums *sums, int64_t row,
                                            int64_t c)
{
    int64_t of = OF == NORM_OF_ROW ? row : c;

    return (sums->x[row * sums->channels + c] - sums->mean[of]) * sums->inv_std[of];
}

/* Both sums of channel C over rows [BEGIN, END).  Neither is ever -0, so zeros behind the
 * end change nothing. */
template <enum channel_norm OF>
__device__ static inline void channel_rows_add(const struct channel_sums *sums, int64_t c,
                                               int64_t begin, int64_t end,
                                               float *ret_offset, float *ret_scale)
{
    float offset = 0, scale = 0;

    for (int64_t row = begin; row < end; row += CHANNEL_AHEAD) {
        float dy[CHANNEL_AHEAD], xhat[CHANNEL_AHEAD];

        for (int k = 0; k < CHANNEL_AHEAD; k++) {
            dy[k] = row + k < end ? sums->dy[(row + k) * sums->channels + c] : 0;
            xhat[k] = row + k < end ? channel_xhat<OF>(sums, row + k, c) : 0;
        }
        for (int k = 0; k < CHANNEL_AHEAD; k++) {
            offset += dy[k];
            scale += dy[k] * xhat[k];
        }
    }
    *ret_offset = offset;
    *ret_scale = scale;
}

template <enum channel_norm OF>
__global__ static void channel_atomic_kernel(struct channel_sums sums, int64_t tasks)
{
    KERNEL_FOR(i, tasks * sums.channels)
    {
        int64_t c = i % sums.channels, begin = i / sums.channels * CHANNEL_TASK_ROWS;
        int64_t end =
            begin + CHANNEL_TASK_ROWS < sums.rows ? begin + CHANNEL_TASK_ROWS : sums.rows;
        float offset, scale;

        channel_rows_add<OF>(&sums, c, begin, end, &offset, &scale);
        atomicAdd(&sums.doffset[c], offset);
        atomicAdd(&sums.dscale[c], scale);
    }
}

template <enum channel_norm OF>
static inline void channel_sums_unordered(const struct channel_sums *sums)
{
    size_t bytes = (size_t)sums->channels * sizeof(float);
    int64_t tasks = ceil_div(sums->rows, CHANNEL_TASK_ROWS);

    CUDA_TRY(cudaMemsetAsync(sums->doffset, 0, bytes));
    CUDA_TRY(cudaMemsetAsync(sums->dscale, 0, bytes));
    LAUNCH_ITEMS(channel_atomic_kernel<OF>, tasks * sums->channels, *sums, tasks);
}

template <enum channel_norm OF>
__global__ static void channel_slot_kernel(struct channel_sums sums)
{
    KERNEL_FOR(i, CHANNEL_SLOTS * sums.channels)
    {
        int64_t c = i % sums.channels, slot = i / sums.channels;
        float *part = sums.parts + slot * 2 * sums.channels + c;

        channel_rows_add<OF>(&sums, c, slot * sums.rows / CHANNEL_SLOTS,
                             (slot + 1) * sums.rows / CHANNEL_SLOTS, part,
                             part + sums.channels);
    }
}

__global__ static void channel_join_kernel(struct channel_sums sums)
{
    int64_t i = (int64_t)blockIdx.x * CHANNEL_JOIN_SIDE + threadIdx.x;
    int64_t stride = 2 * sums.channels;
    bool has_tree = i < stride;

    tree_sum_in_block(sums.parts + i, CHANNEL_SLOTS, stride,
                      has_tree ? threadIdx.y : (int64_t)CHANNEL_SLOTS, CHANNEL_JOIN_SIDE);
    if (!has_tree || threadIdx.y != 0) {
        return;
    }
    if (i < sums.channels) {
        sums.doffset[i] = sums.parts[i];
    } else {
        sums.dscale[i - sums.channels] = sums.parts[i];
    }
}

template <enum channel_norm OF>
static inline void channel_sums_ordered(const struct channel_sums *sums)
{
    LAUNCH(channel_slot_kernel<OF>,
           (unsigned)ceil_div(CHANNEL_SLOTS * sums->channels, CHANNEL_THREADS),
           CHANNEL_THREADS, 0, 0, *sums);
    LAUNCH(channel_join_kernel, (unsigned)ceil_div(2 * sums->channels, CHANNEL_JOIN_SIDE),
           dim3(CHANNEL_JOIN_SIDE, CHANNEL_JOIN_SIDE), 0, 0, *sums);
}

#endif
