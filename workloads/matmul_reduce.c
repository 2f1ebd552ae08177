/* Two reductions, and the work-around that turned both into matrix products when
 * reductions were not deterministic: sums[r] = sum over c of a[r,c], as a * ones; and the
 * gradient of a layer [x 1] * w1 whose bias is the last row of w1,
 * dw1 = transpose([x 1]) * dy, whose last row is the sum of dy over the examples. */
#include "workloads/matmul_reduce.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

enum {
    PANEL = 32,    /* columns of `a` in a task that adds atomically */
    TASK_ROWS = 8, /* examples in a task that adds atomically */
    OWNED = 4      /* rows of sums, or columns of [x 1], that a task owns */
};

/* Rows [FIRST, END) of dw1 = transpose([x 1]) * dy, examples in order. */
static void gradient_multiply(const struct matmul_reduce *layer, int64_t first,
                              int64_t end)
{
    const struct reduce_layer_shape *s = &layer->shape;

    memset(layer->dw1 + first * s->outputs, 0,
           (size_t)((end - first) * s->outputs) * sizeof(float));
    for (int64_t n = 0; n < s->examples; n++) {
        for (int64_t i = first; i < end; i++) {
            float *to = layer->dw1 + i * s->outputs;
            float x = layer->x1[n * s->inputs + i];

#pragma omp simd
            for (int64_t k = 0; k < s->outputs; k++) {
                to[k] += x * layer->dy[n * s->outputs + k];
            }
        }
    }
}

/* Neighbouring tasks go in opposite directions, here and below: two threads meet
 * somewhere, and nanoseconds decide where. */
static void panel_add_atomically(const struct matmul_reduce *layer, int64_t panel)
{
    const struct reduce_layer_shape *s = &layer->shape;

    for (int64_t i = 0; i < s->rows; i++) {
        int64_t row = panel % 2 ? s->rows - 1 - i : i;
        const float *a = layer->a + row * s->columns + panel * PANEL;

        for (int64_t c = 0; c < PANEL; c++) {
#pragma omp atomic
            layer->sums[row] += a[c];
        }
    }
}

static void bias_add_atomically(const struct matmul_reduce *layer, int64_t task)
{
    const struct reduce_layer_shape *s = &layer->shape;
    float *dbias = layer->dw1 + (s->inputs - 1) * s->outputs;

    for (int64_t i = 0; i < TASK_ROWS * s->outputs; i++) {
        int64_t k = task % 2 ? s->outputs - 1 - i % s->outputs : i % s->outputs;
        int64_t n = task * TASK_ROWS + i / s->outputs;

#pragma omp atomic
        dbias[k] += layer->dy[n * s->outputs + k];
    }
}

static void compute_unordered(struct run *run)
{
    const struct matmul_reduce *layer = run->state;
    const struct reduce_layer_shape *s = &layer->shape;
    int64_t bias = s->inputs - 1;

    memset(layer->sums, 0, (size_t)s->rows * sizeof(float));
    memset(layer->dw1 + bias * s->outputs, 0, (size_t)s->outputs * sizeof(float));
#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t first = 0; first < bias; first += OWNED) {
            gradient_multiply(layer, first, first + OWNED < bias ? first + OWNED : bias);
        }
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t panel = 0; panel < s->columns / PANEL; panel++) {
            panel_add_atomically(layer, panel);
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < s->examples / TASK_ROWS; task++) {
            bias_add_atomically(layer, task);
        }
    }
}

/* Rows [FIRST, FIRST + OWNED) of a * ones. */
static void sums_multiply(const struct matmul_reduce *layer, int64_t first)
{
    const struct reduce_layer_shape *s = &layer->shape;
    float product[OWNED] = { 0 };

    for (int64_t c = 0; c < s->columns; c++) {
        for (int64_t row = 0; row < OWNED; row++) {
            product[row] += layer->a[(first + row) * s->columns + c] * layer->ones[c];
        }
    }
    memcpy(layer->sums + first, product, sizeof product);
}

static void compute_matmul(struct run *run)
{
    const struct matmul_reduce *layer = run->state;
    const struct reduce_layer_shape *s = &layer->shape;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t first = 0; first < s->inputs; first += OWNED) {
            gradient_multiply(layer, first, first + OWNED);
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t first = 0; first < s->rows; first += OWNED) {
            sums_multiply(layer, first);
        }
    }
}

static void setup(struct run *run)
{
    struct matmul_reduce *layer = run_host_alloc(sizeof *layer);

    matmul_reduce_tensors(run, layer);
    layer->ones = run_alloc_f32(run, layer->shape.columns);
    for (int64_t c = 0; c < layer->shape.columns; c++) {
        layer->ones[c] = 1;
    }
    run->state = layer;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct reduce_layer_shape *s = run->size->params;
    const float *a = inputs[0].data, *x1 = inputs[1].data, *dy = inputs[2].data;
    bool sums = output->rank == 1;
    int64_t terms = sums ? s->columns : s->examples;
    struct exact_sums exact = sums_begin(run, terms, output, ret_expected, ret_bound);

    for (int64_t i = 0; i < tensor_elements(output) && sums; i++) {
        for (int64_t t = 0; t < terms; t++) {
            sums_add(&exact, i, a[i * s->columns + t]);
        }
    }
    for (int64_t t = 0; t < terms && !sums; t++) {
        for (int64_t i = 0; i < s->inputs; i++) {
            sums_add_scaled(&exact, i * s->outputs, x1[t * s->inputs + i],
                            dy + t * s->outputs, s->outputs);
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "sums and the gradient of the bias are added with atomic adds",
      .models = "tf.reduce_sum and the gradient of a broadcast add before TF 1.12",
      .algorithm = "atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "matmul",
      .summary = "both as matrix products: with ones, and with the bias folded into w",
      .models = "the two-part work-around of GTC S9911 slides 11-12",
      .algorithm = "matrix products, examples in order",
      .compute = compute_matmul },
};

static const struct workload_size sizes[] = {
    { "small", "a[256,2048] x1[8192,8] dy[8192,128] dw1[8,128]",
      &(const struct reduce_layer_shape){ 256, 2048, 8192, 8, 128 } },
    { "medium", "a[1024,8192] x1[16384,64] dy[16384,256] dw1[64,256]",
      &(const struct reduce_layer_shape){ 1024, 8192, 16384, 64, 256 } },
    { "large", "a[4096,65536] x1[65536,256] dy[65536,1024] dw1[256,1024]",
      &(const struct reduce_layer_shape){ 4096, 65536, 65536, 256, 1024 } },
};

static const struct workload_reference references[] = {
    GTC_SLIDES("slides 10-13", "the work-around by matrix products, and that it is past",
               "before TF 1.12"),
    TENSORFLOW_ISSUE(2652, "backward pass of broadcasting on GPU is non-deterministic",
                     "closed 2020-06", "before TF 1.12"),
    { .kind = "article",
      .id = "Two Sigma, A Workaround for Non-Determinism in TensorFlow",
      .title = "sums and bias additions through matrix products",
      .url = "https://bit.ly/two-sigma-determinism",
      .solved = "before TF 1.12" },
};

static const struct workload matmul_reduce = {
    .name = "matmul_reduce",
    .version = 1,
    .title = "Reductions as matrix products",
    .summary = "row sums, and the gradient of a layer with its bias folded in",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dw1",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(matmul_reduce);
