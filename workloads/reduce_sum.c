/* tf.math.reduce_sum along the last axis: sum[r] = sum over c of x[r,c]. */
#include "workloads/reduce_sum.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/tree.h"
#include "workloads/workload.h"

enum { MATMUL_ROWS = 8 };

struct reduce_sum {
    int64_t rows, columns, panel;
    int64_t blocks; /* of REDUCE_BLOCK columns, in a row */
    const float *x;
    float *sum;
    float *block_sums; /* [rows][blocks] */
    float *ones;       /* REDUCE_MATMUL_DEPTH + 1 of them */
};

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Neighbouring panels go through the rows in opposite directions: two threads meet at
 * some row, and nanoseconds decide at which. */
static void panel_add_atomically(const struct reduce_sum *reduce, int64_t panel)
{
    int64_t begin = panel * reduce->panel;
    int64_t end = min_i64(begin + reduce->panel, reduce->columns);

    for (int64_t i = 0; i < reduce->rows; i++) {
        int64_t row = panel % 2 ? reduce->rows - 1 - i : i;
        const float *x = reduce->x + row * reduce->columns;

        for (int64_t c = begin; c < end; c++) {
#pragma omp atomic
            reduce->sum[row] += x[c];
        }
    }
}

static void compute_unordered(struct run *run)
{
    const struct reduce_sum *reduce = run->state;
    int64_t panels = (reduce->columns + reduce->panel - 1) / reduce->panel;

    memset(reduce->sum, 0, (size_t)reduce->rows * sizeof(float));
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t panel = 0; panel < panels; panel++) {
        panel_add_atomically(reduce, panel);
    }
}

/* Sum of COUNT <= REDUCE_BLOCK values: element i goes to lane i mod REDUCE_LANES, lanes
 * join by a tree.
 */
static float block_sum(const float *x, int64_t count)
{
    float lanes[REDUCE_LANES] = { 0 };
    int64_t i = 0;

    for (; i + REDUCE_LANES <= count; i += REDUCE_LANES) {
#pragma omp simd
        for (int64_t lane = 0; lane < REDUCE_LANES; lane++) {
            lanes[lane] += x[i + lane];
        }
    }
    for (; i < count; i++) {
        lanes[i % REDUCE_LANES] += x[i];
    }
    tree_sum(lanes, REDUCE_LANES, 1, 0, 1);
    return lanes[0];
}

static void compute_ordered(struct run *run)
{
    const struct reduce_sum *reduce = run->state;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t i = 0; i < reduce->rows * reduce->blocks; i++) {
            int64_t begin = i % reduce->blocks * REDUCE_BLOCK;

            reduce->block_sums[i] =
                block_sum(reduce->x + i / reduce->blocks * reduce->columns + begin,
                          min_i64(REDUCE_BLOCK, reduce->columns - begin));
        }
#pragma omp for
        for (int64_t row = 0; row < reduce->rows; row++) {
            float *sums = reduce->block_sums + row * reduce->blocks;

            tree_sum(sums, reduce->blocks, 1, 0, 1);
            reduce->sum[row] = sums[0];
        }
    }
}

/* sums[r] = [x[r, 0 .. depth), sums[r]] * ones: a matrix product with a vector of ones
 * (slide 11) into which the sum so far is folded as one more column, as slide 12 folds a
 * bias into a product. */
static void matmul_ones(const struct reduce_sum *reduce, int64_t row, int64_t rows,
                        int64_t column, int64_t depth, float *sums)
{
    float product[MATMUL_ROWS] = { 0 };

    for (int64_t k = 0; k < depth; k++) {
        for (int64_t r = 0; r < rows; r++) {
            product[r] +=
                reduce->x[(row + r) * reduce->columns + column + k] * reduce->ones[k];
        }
    }
    for (int64_t r = 0; r < rows; r++) {
        sums[r] = product[r] + sums[r] * reduce->ones[depth];
    }
}

static void compute_matmul(struct run *run)
{
    const struct reduce_sum *reduce = run->state;

#pragma omp parallel for num_threads(run->threads)
    for (int64_t row = 0; row < reduce->rows; row += MATMUL_ROWS) {
        int64_t rows = min_i64(MATMUL_ROWS, reduce->rows - row);
        float sums[MATMUL_ROWS] = { 0 };

        for (int64_t column = 0; column < reduce->columns;
             column += REDUCE_MATMUL_DEPTH) {
            matmul_ones(reduce, row, rows, column,
                        min_i64(REDUCE_MATMUL_DEPTH, reduce->columns - column), sums);
        }
        memcpy(reduce->sum + row, sums, (size_t)rows * sizeof(float));
    }
}

static void setup(struct run *run)
{
    const struct reduce_sum_shape *shape = run->size->params;
    struct reduce_sum *reduce = run_host_alloc(sizeof *reduce);
    int64_t x_shape[] = { shape->rows, shape->columns };

    reduce->rows = shape->rows;
    reduce->columns = shape->columns;
    reduce->panel = shape->panel;
    reduce->blocks = (shape->columns + REDUCE_BLOCK - 1) / REDUCE_BLOCK;
    reduce->x = run_input_f32(run, "x", 2, x_shape, FILL_WIDE);
    reduce->sum = run_output_f32(run, "sum", 1, &shape->rows);
    reduce->block_sums = run_alloc_f32(run, reduce->rows * reduce->blocks);
    reduce->ones = run_alloc(run, (REDUCE_MATMUL_DEPTH + 1) * sizeof(float));
    for (int k = 0; k <= REDUCE_MATMUL_DEPTH; k++) {
        reduce->ones[k] = 1;
    }
    run->state = reduce;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const float *x = inputs[0].data;
    int64_t rows = output->shape[0], columns = inputs[0].shape[1];
    struct exact_sums exact = sums_begin(run, columns, output, ret_expected, ret_bound);

    for (int64_t row = 0; row < rows; row++) {
        for (int64_t c = 0; c < columns; c++) {
            sums_add(&exact, row, x[row * columns + c]);
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every element is added to the sum of its row with an atomic add",
      .models = "tf.reduce_sum on GPU before TF 1.12: partial sums meet in atomicAdd",
      .algorithm = "atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "blocks of 256 with 16 fixed lanes, joined by a fixed tree",
      .models = "tf.reduce_sum on GPU since before TF 1.12",
      .algorithm = "blocks of 256, 16 lanes, fixed tree",
      .compute = compute_ordered },
    { .name = "matmul",
      .summary = "matrix product with a vector of ones, running sum folded in as a bias",
      .models = "the two-part work-around of GTC S9911 slides 11-12",
      .algorithm = "matrix product with ones, depth 64",
      .compute = compute_matmul },
};

static const struct workload_size sizes[] = {
    { "small", "x[512,4096] sum[512]",
      &(const struct reduce_sum_shape){ 512, 4096, 16 } },
    { "medium", "x[1024,16384] sum[1024]",
      &(const struct reduce_sum_shape){ 1024, 16384, 16 } },
    { "large", "x[4096,65536] sum[4096]",
      &(const struct reduce_sum_shape){ 4096, 65536, 16 } },
    /* One float32 sum has few reachable values, so runs may well agree by chance. */
    { "scalar", "x[1,2097152] sum[1]",
      &(const struct reduce_sum_shape){ 1, 2097152, 8192 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_ISSUE(2652, "backward pass of broadcasting on GPU is non-deterministic",
                     "closed 2020-06", "before TF 1.12"),
    TENSORFLOW_ISSUE(2732, "asks to document that GPU reductions are non-deterministic",
                     "closed 2020-06", "before TF 1.12"),
    GTC_SLIDES("slides 10-13", "the work-around by matrix products, and that it is past",
               "before TF 1.12"),
    STACK_OVERFLOW("threads that end in another order sum in another order; reductions "
                   "since mended"),
};

static const struct workload reduce_sum = {
    .name = "reduce_sum",
    .version = 1,
    .title = "tf.math.reduce_sum",
    .summary = "sum of a matrix along its last axis",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the row sums",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(reduce_sum);
