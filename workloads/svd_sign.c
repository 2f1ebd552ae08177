/* The right singular vector of matrices that have one column: v[c] is 1 or -1, the sign
 * of the sum over rows r of matrix[c,r] * u[c,r] * singular[c].
 *
 * This is all that TensorFlow's SVD on GPU computes with atomic adds: cuSOLVER does the
 * rest.  u is the column divided by the singular value, or its negative, so all terms of
 * a sum have one sign.  The order of the additions reaches the sum's last bits, and never
 * its sign. */
#include "workloads/svd_sign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/instruments/philox.h"
#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/tree.h"
#include "workloads/workload.h"

enum { TASKS = 4 /* parts of a column that are added atomically, by a task each */ };

/* Neighbouring tasks have parts of one column: their threads meet there. */
static void task_add_atomically(const struct svd_sign *svd, int64_t task)
{
    int64_t rows = svd->shape.rows;
    int64_t begin = task / TASKS * rows + task % TASKS * rows / TASKS;
    int64_t end = task / TASKS * rows + (task % TASKS + 1) * rows / TASKS;
    float *v = &svd->v[task / TASKS];

    for (int64_t i = begin; i < end; i++) {
        float term = svd_term(svd, i);

#pragma omp atomic
        *v += term;
    }
}

static void sums_add_atomically(struct run *run)
{
    const struct svd_sign *svd = run->state;

    memset(svd->v, 0, (size_t)svd->shape.columns * sizeof(float));
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t task = 0; task < svd->shape.columns * TASKS; task++) {
        task_add_atomically(svd, task);
    }
}

static void compute_unordered(struct run *run)
{
    const struct svd_sign *svd = run->state;

    sums_add_atomically(run);
    for (int64_t c = 0; c < svd->shape.columns; c++) {
        svd->v[c] = svd_sign_of(svd->v[c]);
    }
}

static void compute_sum(struct run *run)
{
    sums_add_atomically(run);
}

static void compute_ordered(struct run *run)
{
    const struct svd_sign *svd = run->state;
    int64_t slot_rows = svd->shape.rows / SVD_SLOTS;

#pragma omp parallel for num_threads(run->threads)
    for (int64_t c = 0; c < svd->shape.columns; c++) {
        float *partials = svd->partials + c * SVD_SLOTS;

        for (int64_t slot = 0; slot < SVD_SLOTS; slot++) {
            int64_t begin = c * svd->shape.rows + slot * slot_rows;

            partials[slot] = 0;
            for (int64_t i = begin; i < begin + slot_rows; i++) {
                partials[slot] += svd_term(svd, i);
            }
        }
        tree_sum(partials, SVD_SLOTS, 1, 0, 1);
        svd->v[c] = svd_sign_of(partials[0]);
    }
}

/* One column, and what an SVD of it gives beside v; SIGN is v. */
static void column_decompose(const float *column, int64_t rows, int sign, float *ret_u,
                             float *ret_singular)
{
    double squares = 0;

    for (int64_t r = 0; r < rows; r++) {
        squares += (double)column[r] * column[r];
    }
    *ret_singular = (float)sqrt(squares);
    for (int64_t r = 0; r < rows; r++) {
        ret_u[r] = (float)(sign * column[r] / sqrt(squares));
    }
}

static void setup(struct run *run)
{
    const struct svd_shape *shape = run->size->params;
    int64_t columns = shape->columns, rows = shape->rows, count = columns * rows;
    int64_t extents[] = { columns, rows };
    struct svd_sign *svd = run_host_alloc(sizeof *svd);
    uint64_t stream = philox_stream(run->seed, run->workload->name, "matrix");
    float *matrix = run_host_alloc((size_t)count * sizeof *matrix);
    float *u = run_host_alloc((size_t)count * sizeof *u);
    float *singular = run_host_alloc((size_t)columns * sizeof *singular);

    for (int64_t i = 0; i < count; i++) {
        matrix[i] = philox_wide_f32(run->seed, stream, (uint64_t)i);
    }
    stream = philox_stream(run->seed, run->workload->name, "sign");
    for (int64_t c = 0; c < columns; c++) {
        int sign = philox_u32(run->seed, stream, (uint64_t)c) % 2 ? 1 : -1;

        column_decompose(matrix + c * rows, rows, sign, u + c * rows, &singular[c]);
    }
    svd->shape = *shape;
    svd->matrix = run_values_f32(run, "matrix", 2, extents, matrix);
    svd->u = run_values_f32(run, "u", 2, extents, u);
    svd->singular = run_values_f32(run, "singular", 1, &columns, singular);
    svd->v = run_output_f32(run, "v", 1, &columns);
    svd->partials = run_alloc_f32(run, columns * SVD_SLOTS);
    run->state = svd;
    free(singular);
    free(u);
    free(matrix);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const float *matrix = inputs[0].data, *u = inputs[1].data, *singular = inputs[2].data;
    int64_t rows = inputs[0].shape[1];
    struct exact_sums exact = sums_begin(run, rows + 2, output, ret_expected, ret_bound);

    for (int64_t i = 0; i < tensor_elements(&inputs[0]); i++) {
        sums_add(&exact, i / rows, (double)matrix[i] * u[i] * singular[i / rows]);
    }
    for (int64_t c = 0; c < exact.elements && !run->variant->control; c++) {
        ret_expected[c] = ret_expected[c] >= 0 ? 1 : -1;
        ret_bound[c] = 0;
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "atomic adds, then the sign: the order does not reach it",
      .models = "tf.linalg.svd on GPU, of matrices with one column",
      .algorithm = "atomic adds, sign",
      .compute = compute_unordered },
    { .name = "sum",
      .summary = "the same without taking the sign: what it hides",
      .models = "no framework: the sum of svd_op's atomic adds, looked at",
      .algorithm = "atomic adds",
      .control = true,
      .compute = compute_sum },
    { .name = "ordered",
      .summary = "a tree joins 32 sums of a column, then the sign",
      .models = "the same without atomic adds",
      .algorithm = "tree of 32 sums, sign",
      .compute = compute_ordered },
};

static const struct workload_relation relations[] = {
    { "ordered", "unordered", true },
};

static const struct workload_size sizes[] = {
    { "small", "matrix[128,4096,1] v[128]", &(const struct svd_shape){ 128, 4096 } },
    { "medium", "matrix[256,65536,1] v[256]", &(const struct svd_shape){ 256, 65536 } },
    { "large", "matrix[1024,65536,1] v[1024]", &(const struct svd_shape){ 1024, 65536 } },
};

static const struct workload_reference references[] = {
    CANDIDATE_2023("svd_op; from TF 2.8 on deterministic, or it raises"),
    TENSORFLOW_SOURCE("2.3.0", "core/kernels/svd_op_gpu.cu.cc",
                      "atomic adds where a matrix has one column; their sign goes out"),
    TENSORFLOW_SOURCE("2.11.0", "core/kernels/linalg/svd_op_gpu.cu.cc",
                      "the op as a whole raises when determinism is asked for"),
};

static const struct workload svd_sign = {
    .name = "svd_sign",
    .version = 1,
    .title = "SVD of one column: its sign",
    .summary = "sums of atomic adds of which only the sign is used; cuSOLVER is not part",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of v",
    WORKLOAD_REFERENCES(references),
    WORKLOAD_RELATIONS(relations),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(svd_sign);
