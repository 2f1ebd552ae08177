/* Gradient of gather; workloads/gather_bwd.c defines the operation.  `ordered` and
 * `one_hot` add in the CPU's order, so they have the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/scatter.h"
#include "workloads/gather_bwd.h"

/* A block of the matrix product: HOT_COLUMNS columns of HOT_ENTRIES entries, of which a
 * warp has HOT_OWN and a lane a column.  It reads the next tile of rows while it adds
 * those of the last.  What is serial are the additions of an element, in order of rows:
 * parts of the rows that met later would give other bits. */
enum {
    HOT_COLUMNS = WARP_LANES,
    HOT_OWN = 4,   /* sums of a thread: enough to hide how long an addition takes */
    HOT_WARPS = 4, /* a multiprocessor issues for so many at once */
    HOT_ENTRIES = HOT_OWN * HOT_WARPS,
    HOT_ROWS = HOT_WARPS * WARP_LANES, /* of a tile: one for each thread */
    HOT_SHARE = HOT_ROWS / HOT_WARPS,
    HOT_GROUP = 4 /* rows that take as long to add as to read from shared memory */
};

struct hot_tile {
    float dy[HOT_ROWS][HOT_COLUMNS];
    float4 one_hot[HOT_WARPS][HOT_ROWS];
};

/* What a thread reads of a tile. */
struct hot_share {
    int32_t index;
    float dy[HOT_SHARE];
};

/* Of the tile that begins with row BEGIN; zeros where there is nothing: a sum that began
 * with 0 is never -0, so they do not change it. */
__device__ static void hot_read(const struct scatter *scatter, int64_t column,
                                int64_t begin, struct hot_share *ret_share)
{
    int64_t own = begin + threadIdx.y * WARP_LANES + threadIdx.x;

    ret_share->index = own < scatter->rows ? scatter->index[own] : -1;
#pragma unroll
    for (int i = 0; i < HOT_SHARE; i++) {
        int64_t row = begin + i * HOT_WARPS + threadIdx.y;

        ret_share->dy[i] = row < scatter->rows && column < scatter->width
                               ? scatter->values[row * scatter->width + column]
                               : 0;
    }
}

__device__ static float hot_at(int64_t entry, int32_t index)
{
    return index == entry ? 1.0f : 0.0f;
}

/* Writes the share to the tile, whose entries begin with FIRST. */
__device__ static void hot_write(struct hot_tile *tile, int64_t first,
                                 const struct hot_share *share)
{
#pragma unroll
    for (int i = 0; i < HOT_SHARE; i++) {
        tile->dy[i * HOT_WARPS + threadIdx.y][threadIdx.x] = share->dy[i];
    }
    for (int warp = 0; warp < HOT_WARPS; warp++) {
        int64_t entry = first + warp * HOT_OWN;
        float4 one_hot = { hot_at(entry, share->index), hot_at(entry + 1, share->index),
                           hot_at(entry + 2, share->index),
                           hot_at(entry + 3, share->index) };

        tile->one_hot[warp][threadIdx.y * WARP_LANES + threadIdx.x] = one_hot;
    }
}

struct hot_group {
    float4 one_hot[HOT_GROUP];
    float dy[HOT_GROUP];
};

__device__ static void hot_group_read(const struct hot_tile *tile, int row,
                                      struct hot_group *ret_group)
{
#pragma unroll
    for (int i = 0; i < HOT_GROUP; i++) {
        ret_group->one_hot[i] = tile->one_hot[threadIdx.y][row + i];
        ret_group->dy[i] = tile->dy[row + i][threadIdx.x];
    }
}

/* Adds the rows of the tile, and reads a group while it adds the one before. */
__device__ static void hot_add(const struct hot_tile *tile, float sum[HOT_OWN])
{
    struct hot_group next;

    hot_group_read(tile, 0, &next);
#pragma unroll 1
    for (int row = 0; row < HOT_ROWS; row += HOT_GROUP) {
        struct hot_group group = next;

        /* The last reads the first again, for nobody. */
        hot_group_read(tile, (row + HOT_GROUP) % HOT_ROWS, &next);
#pragma unroll
        for (int i = 0; i < HOT_GROUP; i++) {
            sum[0] += group.one_hot[i].x * group.dy[i];
            sum[1] += group.one_hot[i].y * group.dy[i];
            sum[2] += group.one_hot[i].z * group.dy[i];
            sum[3] += group.one_hot[i].w * group.dy[i];
        }
    }
}

/* transpose(one_hot(indices)) * dy, zeros and all. */
__global__ static void __launch_bounds__(HOT_ROWS) one_hot_kernel(struct scatter scatter)
{
    __shared__ struct hot_tile tile;
    int64_t column = (int64_t)blockIdx.x * HOT_COLUMNS + threadIdx.x;
    int64_t first = (int64_t)blockIdx.y * HOT_ENTRIES;
    float sum[HOT_OWN] = { 0, 0, 0, 0 };
    struct hot_share share;

    hot_read(&scatter, column, 0, &share);
    for (int64_t begin = 0; begin < scatter.rows; begin += HOT_ROWS) {
        hot_write(&tile, first, &share);
        __syncthreads();
        hot_read(&scatter, column, begin + HOT_ROWS, &share);
        hot_add(&tile, sum);
        __syncthreads();
    }
    for (int i = 0; i < HOT_OWN; i++) {
        int64_t entry = first + threadIdx.y * HOT_OWN + i;

        if (entry < scatter.destinations && column < scatter.width) {
            scatter.sums[entry * scatter.width + column] = sum[i];
        }
    }
}

static void compute_one_hot(struct run *run)
{
    const struct scatter *scatter = (const struct scatter *)run->state;

    LAUNCH(one_hot_kernel,
           dim3((unsigned)ceil_div(scatter->width, HOT_COLUMNS),
                (unsigned)ceil_div(scatter->destinations, HOT_ENTRIES)),
           dim3(WARP_LANES, HOT_WARPS), 0, 0, *scatter);
}

static void setup(struct run *run)
{
    struct scatter_gpu *scatter = (struct scatter_gpu *)run_host_alloc(sizeof *scatter);

    gather_bwd_tensors(run, scatter);
    scatter_init(run, scatter);
    run->state = scatter;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every element of dy is added to its entry with atomicAdd",
      .algorithm = "atomicAdd",
      .control = true,
      .compute = scatter_compute_unordered },
    { .name = "ordered",
      .summary = "rows sorted by entry, stably; each element has one owner",
      .algorithm = "counting sort, entries in order of rows",
      .compute = scatter_compute_ordered },
    { .name = "one_hot",
      .algorithm = "matrix product with one-hot rows",
      .compute = compute_one_hot },
};

CUDA_TWIN(gather_bwd, 1, variants, setup);
