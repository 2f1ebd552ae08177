/* Where the ranks of ring_allreduce are: all on this run's device, or each on a device of
 * its own. */
#ifndef CUDA_KERNELS_RING_RANKS_H
#define CUDA_KERNELS_RING_RANKS_H

#include "cuda/kernels/ring.h"
#include "cuda/nccl/ranks.h"

struct ring_ranks {
    struct ring ring;
    struct nccl_ranks nccl; /* count 0: all ranks are on this run's device */
};

/* The ranks on a device: the first, how many, and the stream of what they do. */
struct ring_device {
    int first, ranks;
    cudaStream_t stream;
};

/* Makes the I-th device the current one; false, and this run's is, where there is none.
 */
static inline bool ring_device_enter(const struct ring_ranks *all, int i,
                                     struct ring_device *ret_device)
{
    if (i >= (all->nccl.count ? all->nccl.count : 1)) {
        if (all->nccl.count) {
            CUDA_TRY(cudaSetDevice(all->nccl.devices[0]));
        }
        return false;
    }
    ret_device->first = i;
    ret_device->ranks = all->nccl.count ? 1 : all->ring.ranks;
    ret_device->stream = all->nccl.count ? all->nccl.streams[i] : 0;
    if (all->nccl.count) {
        CUDA_TRY(cudaSetDevice(all->nccl.devices[i]));
    }
    return true;
}

/* RING_DEVICE_FOR(ranks, at) …: on each device. */
#define RING_DEVICE_FOR(all, at)                                                         \
    for (int at##_i = 0; ring_device_enter(all, at##_i, &(at)); at##_i++)

/* This run's device is the first rank's, those behind it are the others'. */
static inline void ring_devices_take(struct ring_ranks *all)
{
    int own, devices;

    CUDA_TRY(cudaGetDevice(&own));
    CUDA_TRY(cudaGetDeviceCount(&devices));
    all->nccl.count = all->ring.ranks;
    for (int i = 0; i < all->nccl.count; i++) {
        all->nccl.devices[i] = (own + i) % devices;
        CUDA_TRY(cudaSetDevice(all->nccl.devices[i]));
        CUDA_TRY(cudaStreamCreate(&all->nccl.streams[i]));
    }
    CUDA_TRY(cudaSetDevice(own));
}

/* VALUES, COUNT of them, on the current device. */
static inline int32_t *ring_table(struct run *run, const int32_t *values, int64_t count)
{
    size_t bytes = (size_t)count * sizeof *values;
    int32_t *copy = (int32_t *)run_alloc(run, bytes);

    CUDA_TRY(cudaMemcpy(copy, values, bytes, cudaMemcpyHostToDevice));
    return copy;
}

/* The part of an input that is a rank's: COUNT values at FROM, on its device. */
static inline const float *ring_part(struct run *run, const struct ring_ranks *all,
                                     const float *from, int64_t count)
{
    size_t bytes = (size_t)count * sizeof *from;
    float *copy;

    if (!all->nccl.count) {
        return from;
    }
    copy = (float *)run_alloc(run, bytes);
    CUDA_TRY(cudaMemcpy(copy, from, bytes, cudaMemcpyDefault));
    return copy;
}

/* The tables of the layers on the current device; the host's are those of HOST. */
static inline void ring_tables_copy(struct run *run, const struct ring *ring,
                                    const struct ring_tables *host,
                                    struct ring_tables *ret_tables)
{
    ret_tables->first = ring_table(run, host->first, ring->tensors + 1);
    ret_tables->tensor_of = ring_table(run, host->tensor_of, ring->rows);
    ret_tables->places = ring_table(run, host->places, ring->tensors);
}

/* Takes the memory of all ranks and copies their parts of the inputs X and DY. */
static inline void ring_ranks_make(struct run *run, struct ring_ranks *all,
                                   const struct ring_tables *host, const float *x,
                                   const float *dy)
{
    struct ring *ring = &all->ring;
    size_t bytes = (size_t)ring_elements(ring) * sizeof(float);
    int64_t inputs = ring->batch * ring->rows, outputs = ring->batch * RING_WIDTH;
    struct ring_tables tables;
    struct ring_device at;

    RING_DEVICE_FOR(all, at)
    {
        ring_tables_copy(run, ring, host, &tables);
        for (int i = at.first; i < at.first + at.ranks; i++) {
            struct ring_rank *rank = &ring->rank[i];

            rank->x = ring_part(run, all, x + i * inputs, inputs);
            rank->dy = ring_part(run, all, dy + i * outputs, outputs);
            rank->gradients = (float *)run_alloc(run, bytes);
            rank->packed = (float *)run_alloc(run, bytes);
            rank->arrived = (int32_t *)run_alloc(run, sizeof(int32_t));
            rank->arrivals = run_alloc_i32(run, ring->tensors);
            rank->tables = tables;
        }
        CUDA_TRY(cudaDeviceSynchronize());
    }
}

#endif
