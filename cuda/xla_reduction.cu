/* Row and column sums in two stages; workloads/xla_reduction.c defines the operation.
 * `ordered` adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/tree.h"
#include "workloads/xla_reduction.h"

enum {
    GROUP = WARP_LANES, /* neighbouring tiles of a row, that a warp sums at once */
    STRETCH = 16,       /* column tiles that a thread sums before its atomicAdd */
    SIDE = 32,          /* columns of a thread block, and threads of a column */
    LEVELS = 32         /* more than a tree has */
};

/* The tree of a tile whose values are XLA_TILE_COLUMNS neighbours. */
__device__ static float row_tile_sum(float *tile)
{
    for (int half = XLA_TILE_COLUMNS / 2; half >= 1; half /= 2) {
        for (int i = 0; i < half; i++) {
            tile[i] += tile[i + half];
        }
    }
    return tile[0];
}

/* One warp a block: it reads GROUP tiles of a row together, then each lane sums one.  The
 * padding of a shared row keeps lanes in different banks. */
__global__ static void row_tile_kernel(struct xla_reduction reduction, int64_t groups,
                                       bool atomically)
{
    __shared__ float tiles[GROUP][XLA_TILE_COLUMNS + 1];
    int lane = (int)threadIdx.x;

    for (int64_t group = blockIdx.x; group < reduction.rows * groups;
         group += gridDim.x) {
        int64_t row = group / groups, first = group % groups * GROUP;
        int64_t count = reduction.row_tiles - first;
        const float *x = reduction.x + row * reduction.columns + first * XLA_TILE_COLUMNS;
        float sum = 0;

        for (int64_t tile = 0; tile < GROUP && tile < count; tile++) {
            tiles[tile][lane] = x[tile * XLA_TILE_COLUMNS + lane];
        }
        __syncthreads();
        if (lane < count) {
            sum = row_tile_sum(tiles[lane]);
        }
        if (atomically && lane < count) {
            atomicAdd(&reduction.row_sums[row], sum);
        }
        if (!atomically && first + lane < reduction.padded_row_tiles) {
            reduction.row_parts[row * reduction.padded_row_tiles + first + lane] = sum;
        }
        __syncthreads();
    }
}

/* One warp a row.  Parts that meet while their distance is at least a warp are those of
 * one lane. */
__global__ static void row_join_kernel(struct xla_reduction reduction)
{
    int64_t count = reduction.padded_row_tiles, lane = threadIdx.x % WARP_LANES;

    for (int64_t row = kernel_thread() / WARP_LANES; row < reduction.rows;
         row += kernel_threads() / WARP_LANES) {
        float *parts = reduction.row_parts + row * count;
        float sum;

        for (int64_t half = count / 2; half >= WARP_LANES; half /= 2) {
            for (int64_t part = lane; part < half; part += WARP_LANES) {
                parts[part] += parts[part + half];
            }
        }
        sum = lane < count ? parts[lane] : 0;
        sum = tree_sum_in_warp(sum, count < WARP_LANES ? (int)count : (int)WARP_LANES);
        if (lane == 0) {
            reduction.row_sums[row] = sum;
        }
    }
}

__device__ static float column_tile_sum(const struct xla_reduction *reduction,
                                        int64_t column, int64_t tile)
{
    const float *x = reduction->x + tile * XLA_TILE_ROWS * reduction->columns + column;
    float sum = x[0];

    for (int64_t row = 1; row < XLA_TILE_ROWS; row++) {
        sum += x[row * reduction->columns];
    }
    return sum;
}

__global__ static void column_atomic_kernel(struct xla_reduction reduction)
{
    KERNEL_FOR(i, ceil_div(reduction.column_tiles, STRETCH) * reduction.columns)
    {
        int64_t column = i % reduction.columns, begin = i / reduction.columns * STRETCH;
        float sum = 0;

        for (int64_t tile = begin;
             tile < begin + STRETCH && tile < reduction.column_tiles; tile++) {
            sum += column_tile_sum(&reduction, column, tile);
        }
        atomicAdd(&reduction.column_sums[column], sum);
    }
}

/* The tree over tiles MEMBER, MEMBER + MEMBERS, …, COUNT of them, both powers of two. Its
 * last pair is that of the even ones and the odd ones, and so on: the tiles in order of
 * their reversed bits are the leaves from left to right, which a stack of unfinished
 * subtrees joins. */
__device__ static float column_tree(const struct xla_reduction *reduction, int64_t column,
                                    int64_t member, int64_t members, int64_t count)
{
    float stack[LEVELS];
    int64_t reversed = 0;
    int depth = 0;

    for (int64_t leaf = 0; leaf < count; leaf++) {
        int64_t tile = member + reversed * members, bit = count / 2;

        stack[depth++] =
            tile < reduction->column_tiles ? column_tile_sum(reduction, column, tile) : 0;
        for (int64_t done = leaf; done & 1; done /= 2) {
            depth--;
            stack[depth - 1] += stack[depth];
        }
        for (; bit && (reversed & bit); bit /= 2) {
            reversed -= bit;
        }
        reversed += bit;
    }
    return stack[0];
}

/* SIDE columns a block, and for each as many threads, of which each has its share of the
 * tree; the shares join by the rest of it. */
__global__ static void column_tree_kernel(struct xla_reduction reduction, int64_t members)
{
    __shared__ float parts[SIDE][SIDE];
    int64_t column = (int64_t)blockIdx.x * SIDE + threadIdx.x, member = threadIdx.y;
    bool takes_part = column < reduction.columns && member < members;

    if (takes_part) {
        parts[member][threadIdx.x] = column_tree(&reduction, column, member, members,
                                                 reduction.padded_column_tiles / members);
    }
    tree_sum_in_block(&parts[0][threadIdx.x], members, SIDE,
                      takes_part ? member : members, SIDE);
    if (takes_part && member == 0) {
        reduction.column_sums[column] = parts[0][threadIdx.x];
    }
}

static void rows_reduce(const struct xla_reduction *reduction, bool atomically)
{
    int64_t groups = ceil_div(reduction->padded_row_tiles, GROUP);
    int64_t blocks = reduction->rows * groups, most = kernel_blocks_max();

    LAUNCH(row_tile_kernel, (unsigned)(blocks < most ? blocks : most), WARP_LANES, 0, 0,
           *reduction, groups, atomically);
}

static void compute_unordered(struct run *run)
{
    const struct xla_reduction *reduction = (const struct xla_reduction *)run->state;

    CUDA_TRY(
        cudaMemsetAsync(reduction->row_sums, 0, (size_t)reduction->rows * sizeof(float)));
    CUDA_TRY(cudaMemsetAsync(reduction->column_sums, 0,
                             (size_t)reduction->columns * sizeof(float)));
    rows_reduce(reduction, true);
    LAUNCH_ITEMS(column_atomic_kernel,
                 ceil_div(reduction->column_tiles, STRETCH) * reduction->columns,
                 *reduction);
}

static void compute_ordered(struct run *run)
{
    const struct xla_reduction *reduction = (const struct xla_reduction *)run->state;
    int64_t members = reduction->padded_column_tiles;

    rows_reduce(reduction, false);
    LAUNCH_ITEMS(row_join_kernel, reduction->rows * WARP_LANES, *reduction);
    LAUNCH(column_tree_kernel, (unsigned)ceil_div(reduction->columns, SIDE),
           dim3(SIDE, SIDE), 0, 0, *reduction, members < SIDE ? members : (int64_t)SIDE);
}

static void setup(struct run *run)
{
    struct xla_reduction *reduction =
        (struct xla_reduction *)run_host_alloc(sizeof *reduction);

    xla_reduction_tensors(run, reduction);
    run->state = reduction;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "the partial sums of tiles meet in atomicAdd",
      .algorithm = "tiles of 32 columns or 32 rows, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "tiles of 32 columns or 2 rows, padded tree",
      .compute = compute_ordered },
};

CUDA_TWIN(xla_reduction, 1, variants, setup);
