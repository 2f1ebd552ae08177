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
    READ_AHEAD = 1024  /* aggregates; see prefix_kernel */
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

/* The running sum before BLOCK, as far as it is known. */
__device__ static float look_back(const struct cumsum *cumsum, int64_t block)
{
    float sum = 0;

    while (block-- > 0) {
        if (atomicAdd(&cumsum->known[block], 0)) {
            __threadfence();
            return *(volatile float *)&cumsum->prefixes[block] + sum;
        }
        sum = cumsum->aggregates[block] + sum;
    }
    return sum;
}

/* Publishes the running sums of a task's blocks; returns that before the lane's. */
__device__ static float task_publish(const struct cumsum *cumsum, int64_t first,
                                     int64_t lane)
{
    float before = lane == 0 ? look_back(cumsum, first) : 0;
    float mine = cumsum->aggregates[first + lane], own = 0;

    before = __shfl_sync(ALL_LANES, before, 0);
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

/* The running sums of the aggregates, in order: one thread adds, all read for it. */
__global__ static void prefix_kernel(struct cumsum cumsum)
{
    __shared__ float ahead[READ_AHEAD];
    float sum = 0;

    for (int64_t begin = 0; begin < cumsum.blocks; begin += READ_AHEAD) {
        int64_t count = cumsum.blocks - begin;

        if (count > READ_AHEAD) {
            count = READ_AHEAD;
        }
        for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
            ahead[i] = cumsum.aggregates[begin + i];
        }
        __syncthreads();
        for (int64_t i = 0; i < count && threadIdx.x == 0; i++) {
            ahead[i] = sum += ahead[i];
        }
        __syncthreads();
        for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
            cumsum.prefixes[begin + i] = ahead[i];
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
