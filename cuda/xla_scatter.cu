/* XLA's scatter of windows; workloads/xla_scatter.c defines the operation.  `ordered`
 * gives tiles of the sums an owner where the CPU gives them to bands of 8 rows; an
 * element adds its windows in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/sort.h"
#include "workloads/xla_scatter.h"

enum { TILES_MAX = 4 /* that a window touches: a tile is as large as a window */ };

struct scatter_gpu : xla_scatter {
    int64_t tiles_across, tiles_down;
    int32_t *tiles; /* [windows][TILES_MAX]: which a window touches; negative: none */
    struct row_sort sort; /* those by tile, in the order of the windows */
};

/* One thread an element of a window. */
__global__ static void atomic_kernel(struct scatter_gpu scatter)
{
    const struct xla_scatter_shape s = scatter.shape;
    int64_t elements = s.height * s.width;

    KERNEL_FOR(i, s.windows * elements)
    {
        const int32_t *index = scatter.indices + i / elements * 2;
        int64_t row = index[0] + i % elements / s.width;

        if (xla_window_fits(&s, index)) {
            atomicAdd(&scatter.sums[row * s.extent + index[1] + i % s.width],
                      scatter.updates[i]);
        }
    }
}

static void compute_unordered(struct run *run)
{
    const struct scatter_gpu *scatter = (const struct scatter_gpu *)run->state;
    const struct xla_scatter_shape *s = &scatter->shape;

    CUDA_TRY(cudaMemsetAsync(scatter->sums, 0,
                             (size_t)(s->extent * s->extent) * sizeof(float)));
    LAUNCH_ITEMS(atomic_kernel, s->windows * s->height * s->width, *scatter);
}

/* The first tile down and across that a window touches, and the next where it reaches
 * over. */
__global__ static void touch_kernel(struct scatter_gpu scatter)
{
    const struct xla_scatter_shape s = scatter.shape;

    KERNEL_FOR(i, s.windows * TILES_MAX)
    {
        const int32_t *index = scatter.indices + i / TILES_MAX * 2;
        bool below = i % TILES_MAX / 2, right = i % 2;
        bool touches = xla_window_fits(&s, index) && (!below || index[0] % s.height) &&
                       (!right || index[1] % s.width);
        int64_t tile = (index[0] / s.height + below) * scatter.tiles_across +
                       index[1] / s.width + right;

        scatter.tiles[i] = touches ? (int32_t)tile : -1;
    }
}

/* One block a tile, one thread an element of it: window after window. */
__global__ static void tile_kernel(struct scatter_gpu scatter)
{
    const struct xla_scatter_shape s = scatter.shape;
    int64_t row = blockIdx.x / scatter.tiles_across * s.height + threadIdx.y;
    int64_t column = blockIdx.x % scatter.tiles_across * s.width + threadIdx.x;
    float sum = 0;

    for (int32_t at = scatter.sort.starts[blockIdx.x];
         at < scatter.sort.starts[blockIdx.x + 1]; at++) {
        int64_t window = scatter.sort.sorted[at] / TILES_MAX;
        int64_t down = row - scatter.indices[2 * window];
        int64_t across = column - scatter.indices[2 * window + 1];

        if (down >= 0 && down < s.height && across >= 0 && across < s.width) {
            sum += scatter.updates[(window * s.height + down) * s.width + across];
        }
    }
    if (row < s.extent && column < s.extent) {
        scatter.sums[row * s.extent + column] = sum;
    }
}

static void compute_ordered(struct run *run)
{
    struct scatter_gpu *scatter = (struct scatter_gpu *)run->state;
    const struct xla_scatter_shape *s = &scatter->shape;

    LAUNCH_ITEMS(touch_kernel, scatter->sort.rows, *scatter);
    sort_rows(&scatter->sort, scatter->tiles);
    LAUNCH(tile_kernel, (unsigned)scatter->sort.destinations,
           dim3((unsigned)s->width, (unsigned)s->height), 0, 0, *scatter);
}

static void setup(struct run *run)
{
    const struct xla_scatter_shape *s =
        (const struct xla_scatter_shape *)run->size->params;
    struct scatter_gpu *scatter = (struct scatter_gpu *)run_host_alloc(sizeof *scatter);

    xla_scatter_tensors(run, scatter);
    scatter->tiles_across = ceil_div(s->extent, s->width);
    scatter->tiles_down = ceil_div(s->extent, s->height);
    scatter->sort.rows = s->windows * TILES_MAX;
    scatter->sort.destinations = scatter->tiles_across * scatter->tiles_down;
    scatter->tiles = run_alloc_i32(run, scatter->sort.rows);
    sort_init(run, &scatter->sort);
    run->state = scatter;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every element of a window is added with atomicAdd",
      .algorithm = "atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "windows sorted by the tiles they touch, stably; each element has one "
                 "owner",
      .models = "XLA's deterministic scatter, by sorting in the place of a loop over the "
                "updates",
      .algorithm = "owner of 8 rows, windows in order",
      .compute = compute_ordered },
};

CUDA_TWIN(xla_scatter, 1, variants, setup);
