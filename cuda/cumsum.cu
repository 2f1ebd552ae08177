/* Running sums; workloads/cumsum.c defines the operation, and says which algorithm
 * `unordered` is.  `ordered` adds in the CPU's order, so it has the CPU's bits.
 *
 * A warp takes one task, a lane one of its blocks: the warp reads and writes a tile of
 * neighbouring elements of each block through shared memory, where a lane goes through
 * the elements of its own block in order. */
#include "cuda/kernels/kernel.h"
#include "workloads/cumsum.h"

enum {
    WARPS = 4, /* of a thread block */
    TASK_THREADS = WARPS * WARP_LANES,
    TILE = WARP_LANES, /* elements of each block that are in shared memory at once */
    READ_AHEAD = 1024, /* aggregates that are in shared memory at once: prefix_kernel */
    READ_SHARE = READ_AHEAD / KERNEL_THREADS,
    ADD_GROUP = 4 /* times four numbers: what takes as long to add as to read */
};

static_assert((int)CUMSUM_TASK_BLOCKS == (int)WARP_LANES, "a lane a block");

/* One more column than a tile has, so that lanes in a column are in different banks. */
struct tile {
    float elements[CUMSUM_TASK_BLOCKS][TILE + 1];
};

__device__ static void tile_read(struct tile *tile, const float *x, int64_t lane)
{
    __syncwarp();
    for (int block = 0; block < CUMSUM_TASK_BLOCKS; block++) {
        tile->elements[block][lane] = x[block * CUMSUM_BLOCK + lane];
    }
    __syncwarp();
}

__device__ static void tile_write(const struct tile *tile, float *sums, int64_t lane)
{
    __syncwarp();
    for (int block = 0; block < CUMSUM_TASK_BLOCKS; block++) {
        sums[block * CUMSUM_BLOCK + lane] = tile->elements[block][lane];
    }
}

/* The sum of the lane's block, of the 32 that begin at X. */
__device__ static float block_sum(struct tile *tile, const float *x, int64_t lane)
{
    float sum = 0;

    for (int64_t at = 0; at < CUMSUM_BLOCK; at += TILE) {
        tile_read(tile, x + at, lane);
        for (int i = 0; i < TILE; i++) {
            sum = at + i ? sum + tile->elements[lane][i] : tile->elements[lane][i];
        }
    }
    return sum;
}

/* Writes the running sums of the lane's block that BEFORE precedes. */
__device__ static void block_scan(struct tile *tile, const float *x, float *sums,
                                  float before, int64_t lane)
{
    float sum = 0;

    for (int64_t at = 0; at < CUMSUM_BLOCK; at += TILE) {
        tile_read(tile, x + at, lane);
        for (int i = 0; i < TILE; i++) {
            sum += tile->elements[lane][i];
            tile->elements[lane][i] = before + sum;
        }
        tile_write(tile, sums + at, lane);
    }
}

/* For each task of the calling warp: its first block. */
#define TASK_FOR(first, blocks)                                                          \
    for (int64_t first = kernel_thread() / WARP_LANES * CUMSUM_TASK_BLOCKS;              \
         first < (blocks); first += kernel_threads() / WARP_LANES * CUMSUM_TASK_BLOCKS)

__global__ static void sum_kernel(struct cumsum cumsum)
{
    __shared__ struct tile tiles[WARPS];
    int64_t lane = threadIdx.x % WARP_LANES;
    struct tile *tile = &tiles[threadIdx.x / WARP_LANES];

    TASK_FOR(first, cumsum.blocks)
    {
        cumsum.aggregates[first + lane] =
            block_sum(tile, cumsum.x + first * CUMSUM_BLOCK, lane);
        cumsum.known[first + lane] = 0;
    }
}

/* The running sum before block FIRST, as far as it is known, in every lane.  What is
 * added, and in which order, is a walk from block to block; but a warp asks for a task's
 * blocks at once, so that a step of the walk takes no time of memory. */
__device__ static float look_back(const struct cumsum *cumsum, int64_t first,
                                  int64_t lane)
{
    float sum = 0;

    for (int64_t end = first; end > 0; end -= WARP_LANES) {
        int64_t block = end - 1 - lane; /* the nearest in lane 0 */
        float value = cumsum->aggregates[block];
        unsigned known =
            __ballot_sync(ALL_LANES, atomicAdd(&cumsum->known[block], 0) != 0);
        int nearest = known ? __ffs((int)known) - 1 : (int)WARP_LANES;

        __threadfence();
        if (lane == nearest) {
            value = *(volatile float *)&cumsum->prefixes[block];
        }
        for (int before = 0; before < nearest; before++) {
            sum = __shfl_sync(ALL_LANES, value, before) + sum;
        }
        if (known) {
            return __shfl_sync(ALL_LANES, value, nearest) + sum;
        }
    }
    return sum;
}

/* Publishes the running sums of a task's blocks; returns that before the lane's. */
__device__ static float task_publish(const struct cumsum *cumsum, int64_t first,
                                     int64_t lane)
{
    float before = look_back(cumsum, first, lane);
    float mine = cumsum->aggregates[first + lane], own = 0;

    for (int block = 0; block < CUMSUM_TASK_BLOCKS; block++) {
        own = block == lane ? before : own;
        before += __shfl_sync(ALL_LANES, mine, block);
    }
    cumsum->prefixes[first + lane] = own + mine;
    __threadfence();
    atomicExch(&cumsum->known[first + lane], 1);
    return own;
}

__global__ static void look_back_kernel(struct cumsum cumsum)
{
    __shared__ struct tile tiles[WARPS];
    int64_t lane = threadIdx.x % WARP_LANES;
    struct tile *tile = &tiles[threadIdx.x / WARP_LANES];

    TASK_FOR(first, cumsum.blocks)
    {
        float before = task_publish(&cumsum, first, lane);

        block_scan(tile, cumsum.x + first * CUMSUM_BLOCK,
                   cumsum.sums + first * CUMSUM_BLOCK, before, lane);
    }
}

/* This thread's aggregates of the READ_AHEAD from BEGIN on; zeros behind the end. */
__device__ static void ahead_read(const struct cumsum *cumsum, int64_t begin,
                                  float ret_share[READ_SHARE])
{
#pragma unroll
    for (int i = 0; i < READ_SHARE; i++) {
        int64_t block = begin + i * KERNEL_THREADS + threadIdx.x;

        ret_share[i] = block < cumsum->blocks ? cumsum->aggregates[block] : 0;
    }
}

/* Makes COUNT numbers their running sums that SUM precedes; returns the last.  It reads a
 * group while it adds the one before. */
__device__ static float ahead_add(float4 *ahead, int count, float sum)
{
    float4 group[ADD_GROUP];

    for (int i = 0; i < ADD_GROUP; i++) {
        group[i] = ahead[i];
    }
    for (int at = 0; at < count; at += ADD_GROUP) {
        int next = at + ADD_GROUP < count ? at + ADD_GROUP : at;

#pragma unroll
        for (int i = 0; i < ADD_GROUP; i++) {
            float4 sums = group[i];

            group[i] = ahead[next + i];
            sums.x = sum += sums.x;
            sums.y = sum += sums.y;
            sums.z = sum += sums.z;
            sums.w = sum += sums.w;
            ahead[at + i] = sums;
        }
    }
    return sum;
}

/* The running sums of the aggregates, in order.  That is a serial chain, and one thread
 * adds; the others read and write for it. */
__global__ static void __launch_bounds__(KERNEL_THREADS)
    prefix_kernel(struct cumsum cumsum)
{
    __shared__ float4 ahead[READ_AHEAD / 4];
    float *each = (float *)ahead, share[READ_SHARE], sum = 0;

    ahead_read(&cumsum, 0, share);
    for (int64_t begin = 0; begin < cumsum.blocks; begin += READ_AHEAD) {
        for (int i = 0; i < READ_SHARE; i++) {
            each[i * KERNEL_THREADS + threadIdx.x] = share[i];
        }
        __syncthreads();
        ahead_read(&cumsum, begin + READ_AHEAD, share);
        if (threadIdx.x == 0) {
            sum = ahead_add(ahead, READ_AHEAD / 4, sum);
        }
        __syncthreads();
        for (int i = 0; i < READ_SHARE; i++) {
            int64_t block = begin + i * KERNEL_THREADS + threadIdx.x;

            if (block < cumsum.blocks) {
                cumsum.prefixes[block] = each[i * KERNEL_THREADS + threadIdx.x];
            }
        }
    }
}

__global__ static void scan_kernel(struct cumsum cumsum)
{
    __shared__ struct tile tiles[WARPS];
    int64_t lane = threadIdx.x % WARP_LANES;
    struct tile *tile = &tiles[threadIdx.x / WARP_LANES];

    TASK_FOR(first, cumsum.blocks)
    {
        float before = first + lane ? cumsum.prefixes[first + lane - 1] : 0;

        block_scan(tile, cumsum.x + first * CUMSUM_BLOCK,
                   cumsum.sums + first * CUMSUM_BLOCK, before, lane);
    }
}

/* Thread blocks for one warp a task. */
static unsigned task_blocks(const struct cumsum *cumsum)
{
    return kernel_blocks(cumsum->blocks * ((int)KERNEL_THREADS / (int)TASK_THREADS));
}

static void compute_unordered(struct run *run)
{
    const struct cumsum *cumsum = (const struct cumsum *)run->state;

    LAUNCH(sum_kernel, task_blocks(cumsum), TASK_THREADS, 0, 0, *cumsum);
    LAUNCH(look_back_kernel, task_blocks(cumsum), TASK_THREADS, 0, 0, *cumsum);
}

static void compute_ordered(struct run *run)
{
    const struct cumsum *cumsum = (const struct cumsum *)run->state;

    LAUNCH(sum_kernel, task_blocks(cumsum), TASK_THREADS, 0, 0, *cumsum);
    LAUNCH(prefix_kernel, 1, KERNEL_THREADS, 0, 0, *cumsum);
    LAUNCH(scan_kernel, task_blocks(cumsum), TASK_THREADS, 0, 0, *cumsum);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .algorithm = "blocks of 256, look-back over what is known",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "blocks of 256, three passes",
      .compute = compute_ordered },
};

CUDA_TWIN(cumsum, 1, variants, NULL);
