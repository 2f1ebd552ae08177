/* Gradients of several ranks, what an all-reduce does with them, and where the ranks are:
 * all on this run's device, or each on a device of its own.  A kernel computes for those
 * on its device. */
#ifndef CUDA_KERNELS_RING_H
#define CUDA_KERNELS_RING_H

#include "cuda/kernels/kernel.h"
#include "cuda/nccl/ranks.h"
#include "workloads/ring_allreduce.h"

/* The layers, one after the other. */
struct ring_tables {
    int32_t *first;     /* [tensors + 1]: its first row */
    int32_t *tensor_of; /* [rows]: whose row it is */
    int32_t *places;    /* [tensors]: where it begins in `packed`; in elements */
};

/* In the memory of the rank's device. */
struct ring_rank {
    const float *x;            /* [batch][rows] */
    const float *dy;           /* [batch][RING_WIDTH] */
    float *gradients;          /* [rows][RING_WIDTH], one tensor after the other */
    float *packed;             /* [rows][RING_WIDTH], as they became ready */
    int32_t *arrived;          /* how many tensors are ready */
    int32_t *arrivals;         /* [tensors]: how many were ready before */
    struct ring_tables tables; /* of all ranks on the device */
};

struct ring {
    int64_t tensors, batch, rows;
    int ranks;
    struct ring_rank rank[RING_RANKS];
};

static inline int64_t ring_elements(const struct ring *ring)
{
    return ring->rows * RING_WIDTH;
}

/* A block a tensor of a rank, from the last to the first, as back-propagation goes; one
 * that is computed tells so. */
__global__ static void ring_gradient_kernel(struct ring ring, int first_rank, int ranks)
{
    const struct ring_rank *rank = &ring.rank[first_rank + (int)blockIdx.x % ranks];
    int64_t tensor = ring.tensors - 1 - blockIdx.x / (unsigned)ranks;
    int64_t end = (int64_t)rank->tables.first[tensor + 1] * RING_WIDTH;

    for (int64_t i = (int64_t)rank->tables.first[tensor] * RING_WIDTH + threadIdx.x;
         i < end; i += blockDim.x) {
        const float *x = rank->x + i / RING_WIDTH, *dy = rank->dy + i % RING_WIDTH;
        float sum = 0;

        for (int64_t b = 0; b < ring.batch; b++) {
            sum += x[b * ring.rows] * dy[b * RING_WIDTH];
        }
        rank->gradients[i] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        rank->arrivals[tensor] = atomicAdd(rank->arrived, 1);
    }
}

/* Where element I of the gradients is in the packed buffer. */
__device__ static inline int64_t ring_place(const struct ring_rank *rank, int64_t i)
{
    int64_t tensor = rank->tables.tensor_of[i / RING_WIDTH];

    return rank->tables.places[tensor] + i -
           (int64_t)rank->tables.first[tensor] * RING_WIDTH;
}

__global__ static void ring_pack_kernel(struct ring ring, int first_rank, int ranks)
{
    int64_t elements = ring.rows * RING_WIDTH;

    KERNEL_FOR(i, elements * ranks)
    {
        const struct ring_rank *rank = &ring.rank[first_rank + i / elements];

        rank->packed[ring_place(rank, i % elements)] = rank->gradients[i % elements];
    }
}

/* The first rank's buffer, unpacked. */
__global__ static void ring_unpack_kernel(struct ring ring, float *sum)
{
    KERNEL_FOR(i, ring.rows * RING_WIDTH)
    {
        sum[i] = ring.rank[0].packed[ring_place(&ring.rank[0], i)];
    }
}

/* The sum of element I over the ranks of a ring, from that of FIRST on. */
__device__ static inline float ring_add(const struct ring *ring, bool packed,
                                        int64_t first, int64_t i)
{
    float sum = 0;

    for (int64_t step = 0; step < ring->ranks; step++) {
        const struct ring_rank *rank = &ring->rank[(first + step) % ring->ranks];
        float value = packed ? rank->packed[i] : rank->gradients[i];

        sum = step ? sum + value : value;
    }
    return sum;
}

/* One ring over the whole buffer, or, from the fixed root, all of it in order of ranks.
 * All sums lie in the first rank's buffer. */
__global__ static void ring_fused_kernel(struct ring ring, bool from_root)
{
    int64_t elements = ring.rows * RING_WIDTH;

    KERNEL_FOR(i, elements)
    {
        int64_t chunk = ring_chunk(i, elements, ring.ranks);

        ring.rank[0].packed[i] = ring_add(&ring, true, from_root ? 0 : chunk + 1, i);
    }
}

/* A ring for each GROUP of tensors side by side. */
__global__ static void ring_groups_kernel(struct ring ring, int64_t group, float *sum)
{
    KERNEL_FOR(i, ring.rows * RING_WIDTH)
    {
        const struct ring_tables *layers = &ring.rank[0].tables;
        int64_t from = layers->tensor_of[i / RING_WIDTH] / group * group;
        int64_t end = from + group < ring.tensors ? from + group : ring.tensors;
        int64_t begin = (int64_t)layers->first[from] * RING_WIDTH,
                count = (int64_t)layers->first[end] * RING_WIDTH - begin;

        sum[i] = ring_add(&ring, false, ring_chunk(i - begin, count, ring.ranks) + 1, i);
    }
}

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
