/* Matrix product by oneDNN: c[m,n] = sum over k of a[m,k] * b[k,n], with few elements of
 * c and a long k, so that threads have to share the sums. */
#include "workloads/workload.h"

#include "workloads/onednn/step.h"
#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"

struct matmul_shape {
    int64_t rows, inner, columns;
};

static void setup(struct run *run)
{
    const struct matmul_shape *s = run->size->params;
    struct onednn_step *step = run_host_alloc(sizeof *step);
    int64_t a_shape[] = { s->rows, s->inner }, b_shape[] = { s->inner, s->columns };
    int64_t c_shape[] = { s->rows, s->columns };
    struct onednn_layout a = onednn_layout(run, 2, a_shape, ONEDNN_ORDER_AB);
    struct onednn_layout b = onednn_layout(run, 2, b_shape, ONEDNN_ORDER_AB);
    struct onednn_layout c = onednn_layout(run, 2, c_shape, ONEDNN_ORDER_AB);
    struct onednn_operation operation;

    run->state = step;
    onednn_check(run, onednn_api()->matmul_desc_init(&operation, &a, &b, NULL, &c),
                 "matmul_desc_init");
    onednn_step_init(run, step, &operation, NULL);
    onednn_step_bind(run, step, ONEDNN_SOURCE, &a,
                     run_input_f32(run, "a", 2, a_shape, FILL_UNIFORM));
    onednn_step_bind(run, step, ONEDNN_WEIGHTS, &b,
                     run_input_f32(run, "b", 2, b_shape, FILL_WIDE));
    onednn_step_bind(run, step, ONEDNN_RESULT, &c, run_output_f32(run, "c", 2, c_shape));
}

static void compute(struct run *run)
{
    onednn_step_execute(run, run->state);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct matmul_shape *s = run->size->params;
    const float *a = inputs[0].data, *b = inputs[1].data;
    struct exact_sums exact = sums_begin(run, s->inner, output, ret_expected, ret_bound);

    for (int64_t m = 0; m < s->rows; m++) {
        for (int64_t k = 0; k < s->inner; k++) {
            for (int64_t n = 0; n < s->columns; n++) {
                sums_add(&exact, m * s->columns + n,
                         (double)a[m * s->inner + k] * b[k * s->columns + n]);
            }
        }
    }
}

static const struct workload_variant variants[] = {
    { ONEDNN_LIBRARY, .summary = "oneDNN's matmul as it comes", .compute = compute },
};

static const struct workload_size sizes[] = {
    { "small", "a[32,16384] b[16384,32] c[32,32]",
      &(const struct matmul_shape){ 32, 16384, 32 } },
    { "medium", "a[128,65536] b[65536,128] c[128,128]",
      &(const struct matmul_shape){ 128, 65536, 128 } },
    { "large", "a[2048,8192] b[8192,2048] c[2048,2048]",
      &(const struct matmul_shape){ 2048, 8192, 2048 } },
};

static const struct workload_reference references[] = {
    GTC_SLIDES("slide 5", "inside which environment equal bits are expected", NULL),
    GITHUB_ISSUE(
        "oneDNN", "uxlfoundation/oneDNN", 1443,
        "the same answer in the same environment; none for another number of threads",
        NULL, NULL),
    GITHUB_ISSUE("oneDNN", "uxlfoundation/oneDNN", 789,
                 "asks for products that do not depend on the threads", NULL, NULL),
    GITHUB_ISSUE("pytorch", "pytorch/pytorch", 88718,
                 "a linear layer changes with the number of threads", NULL, NULL),
};

static const struct workload onednn_matmul = {
    .name = "onednn_matmul",
    .version = 1,
    .title = "oneDNN matrix product",
    .summary = "product of two matrices with a long inner dimension, by oneDNN",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .no_control = ONEDNN_NO_CONTROL,
    .weight_sum = "sum of c",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(onednn_matmul);
