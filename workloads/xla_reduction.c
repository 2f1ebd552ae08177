/* A row and a column reduction as XLA compiles them, in two stages: thread-blocks reduce
 * tiles, then the tiles' partial sums are joined.
 * row_sums[r] = sum over c of x[r,c]; column_sums[c] = sum over r of x[r,c]. */
#include "workloads/xla_reduction.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/tree.h"
#include "workloads/workload.h"

static float row_tile_sum(const struct xla_reduction *reduction, int64_t row,
                          int64_t tile)
{
    const float *x = reduction->x + row * reduction->columns + tile * XLA_TILE_COLUMNS;
    float lanes[XLA_TILE_COLUMNS];

    memcpy(lanes, x, sizeof(lanes));
    for (int64_t half = XLA_TILE_COLUMNS / 2; half >= 1; half /= 2) {
        for (int64_t lane = 0; lane < half; lane++) {
            lanes[lane] += lanes[lane + half];
        }
    }
    return lanes[0];
}

static float column_tile_sum(const struct xla_reduction *reduction, int64_t column,
                             int64_t tile)
{
    const float *x = reduction->x + tile * XLA_TILE_ROWS * reduction->columns + column;
    float sum = x[0];

    for (int64_t row = 1; row < XLA_TILE_ROWS; row++) {
        sum += x[row * reduction->columns];
    }
    return sum;
}

/* Neighbouring tiles go in opposite directions, here and below: two threads meet
 * somewhere, and nanoseconds decide where. */
static void row_tiles_add_atomically(const struct xla_reduction *reduction, int64_t tile)
{
    for (int64_t i = 0; i < reduction->rows; i++) {
        int64_t row = tile % 2 ? reduction->rows - 1 - i : i;
        float sum = row_tile_sum(reduction, row, tile);

#pragma omp atomic
        reduction->row_sums[row] += sum;
    }
}

static void column_tiles_add_atomically(const struct xla_reduction *reduction,
                                        int64_t tile)
{
    for (int64_t i = 0; i < reduction->columns; i++) {
        int64_t column = tile % 2 ? reduction->columns - 1 - i : i;
        float sum = column_tile_sum(reduction, column, tile);

#pragma omp atomic
        reduction->column_sums[column] += sum;
    }
}

static void compute_unordered(struct run *run)
{
    const struct xla_reduction *reduction = run->state;

    memset(reduction->row_sums, 0, (size_t)reduction->rows * sizeof(float));
    memset(reduction->column_sums, 0, (size_t)reduction->columns * sizeof(float));
#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t tile = 0; tile < reduction->row_tiles; tile++) {
            row_tiles_add_atomically(reduction, tile);
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t tile = 0; tile < reduction->column_tiles; tile++) {
            column_tiles_add_atomically(reduction, tile);
        }
    }
}

static void row_reduce(const struct xla_reduction *reduction, int64_t row)
{
    float *parts = reduction->row_parts + row * reduction->padded_row_tiles;

    for (int64_t tile = 0; tile < reduction->padded_row_tiles; tile++) {
        parts[tile] =
            tile < reduction->row_tiles ? row_tile_sum(reduction, row, tile) : 0;
    }
    tree_sum(parts, reduction->padded_row_tiles, 1, 0, 1);
    reduction->row_sums[row] = parts[0];
}

static void column_tiles_store(const struct xla_reduction *reduction, int64_t tile)
{
    float *parts = reduction->column_parts + tile * reduction->columns;
    const float *x = reduction->x + tile * XLA_TILE_ROWS * reduction->columns;

    memset(parts, 0, (size_t)reduction->columns * sizeof(float));
    if (tile >= reduction->column_tiles) {
        return;
    }
    memcpy(parts, x, (size_t)reduction->columns * sizeof(float));
    for (int64_t row = 1; row < XLA_TILE_ROWS; row++) {
#pragma omp simd
        for (int64_t column = 0; column < reduction->columns; column++) {
            parts[column] += x[row * reduction->columns + column];
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct xla_reduction *reduction = run->state;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(dynamic, 16) nowait
        for (int64_t row = 0; row < reduction->rows; row++) {
            row_reduce(reduction, row);
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t tile = 0; tile < reduction->padded_column_tiles; tile++) {
            column_tiles_store(reduction, tile);
        }
        tree_join(reduction->column_sums, reduction->columns, reduction->column_parts,
                  reduction->padded_column_tiles, reduction->columns);
    }
}

static void setup(struct run *run)
{
    struct xla_reduction *reduction = run_host_alloc(sizeof *reduction);

    xla_reduction_tensors(run, reduction);
    reduction->column_parts =
        run_alloc_f32(run, reduction->padded_column_tiles * reduction->columns);
    run->state = reduction;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct xla_reduction_shape *shape = run->size->params;
    const float *x = inputs[0].data;
    bool rows = output == &run->outputs[0];
    struct exact_sums exact = sums_begin(run, rows ? shape->columns : shape->rows, output,
                                         ret_expected, ret_bound);

    for (int64_t r = 0; r < shape->rows; r++) {
        for (int64_t c = 0; c < shape->columns; c++) {
            sums_add(&exact, rows ? r : c, x[r * shape->columns + c]);
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "the partial sums of tiles meet in atomic adds",
      .models = "XLA's GPU reductions before TF 2.2: the last stage is atomicAdd",
      .algorithm = "tiles of 32 columns or 2 rows, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "the partial sums of tiles, padded to a power of two, join in a tree",
      .models = "XLA's tree reduction by padding, selected by TF_DETERMINISTIC_OPS",
      .algorithm = "tiles of 32 columns or 2 rows, padded tree",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "x[1024,2048] row_sums[1024] column_sums[2048]",
      &(const struct xla_reduction_shape){ 1024, 2048 } },
    { "medium", "x[4096,3072] row_sums[4096] column_sums[3072]",
      &(const struct xla_reduction_shape){ 4096, 3072 } },
    { "large", "x[16384,16384] row_sums[16384] column_sums[16384]",
      &(const struct xla_reduction_shape){ 16384, 16384 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_COMMIT(e31955d9, fb34ae7273354dc2347ba99eea8c5280,
                      "XLA: tree reduction by padding", "merged 2020-06", "TF 2.2"),
    TENSORFLOW_COMMIT(8b7a3db0, b6e09415b5640be4986fb4d7c6e5209a,
                      "XLA: TF_DETERMINISTIC_OPS selects the reductions without atomics",
                      "merged 2020-06", "TF 2.2"),
    TENSORFLOW_NOTE(38509, "release note about what became deterministic",
                    "merged 2020-06", "TF 2.2"),
    TENSORFLOW_PR(37377, "XLA: what those reductions left to be done", "merged 2020-06",
                  "TF 2.3"),
};

static const struct workload xla_reduction = {
    .name = "xla_reduction",
    .version = 1,
    .title = "XLA reductions on GPU",
    .summary = "sums of a matrix along its rows and along its columns, in two stages",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the row sums",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(xla_reduction);
