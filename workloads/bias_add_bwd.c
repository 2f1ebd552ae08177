/* Gradient of tf.nn.bias_add with respect to the bias (NHWC): db[c] = sum over n,h,w of
 * dy[n,h,w,c].  "Row" below is one pixel of one image: all its channels. */
#include "workloads/bias_add_bwd.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/tree.h"
#include "workloads/workload.h"

enum { TASK_ROWS = 8 };

static void row_add(float *to, const float *from, int64_t channels)
{
#pragma omp simd
    for (int64_t c = 0; c < channels; c++) {
        to[c] += from[c];
    }
}

/* Neighbouring tasks go in opposite directions: two threads meet somewhere in the
 * channels, and nanoseconds decide where. */
static void task_add_atomically(const struct bias_add_bwd *bias, int64_t first_row,
                                bool down)
{
    for (int64_t row = first_row; row < first_row + TASK_ROWS && row < bias->rows;
         row++) {
        const float *dy = bias->dy + row * bias->channels;

        for (int64_t i = 0; i < bias->channels; i++) {
            int64_t c = down ? bias->channels - 1 - i : i;

#pragma omp atomic
            bias->db[c] += dy[c];
        }
    }
}

static void compute_unordered(struct run *run)
{
    const struct bias_add_bwd *bias = run->state;
    int64_t tasks = (bias->rows + TASK_ROWS - 1) / TASK_ROWS;

    memset(bias->db, 0, (size_t)bias->channels * sizeof(float));
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t task = 0; task < tasks; task++) {
        task_add_atomically(bias, task * TASK_ROWS, task % 2);
    }
}

static void compute_ordered(struct run *run)
{
    const struct bias_add_bwd *bias = run->state;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int64_t slot = 0; slot < BIAS_SLOTS; slot++) {
            float *part = bias->parts + slot * bias->channels;

            memset(part, 0, (size_t)bias->channels * sizeof(float));
            for (int64_t row = slot * bias->rows / BIAS_SLOTS;
                 row < (slot + 1) * bias->rows / BIAS_SLOTS; row++) {
                row_add(part, bias->dy + row * bias->channels, bias->channels);
            }
        }
        tree_join(bias->db, bias->channels, bias->parts, BIAS_SLOTS, bias->channels);
    }
}

/* The patch makes bias_add a broadcasting tf.add, whose gradient is tf.reduce_sum over
 * the broadcast axes: fixed lanes in fixed blocks, another order than `ordered` has. */
static void compute_patched(struct run *run)
{
    const struct bias_add_bwd *bias = run->state;
    int64_t blocks = (bias->rows + BIAS_BLOCK_ROWS - 1) / BIAS_BLOCK_ROWS;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int64_t lane = 0; lane < blocks * BIAS_LANES; lane++) {
            float *part = bias->parts + lane * bias->channels;
            int64_t begin = lane / BIAS_LANES * BIAS_BLOCK_ROWS,
                    end = begin + BIAS_BLOCK_ROWS;

            if (end > bias->rows) {
                end = bias->rows;
            }
            memset(part, 0, (size_t)bias->channels * sizeof(float));
            for (int64_t row = begin + lane % BIAS_LANES; row < end; row += BIAS_LANES) {
                row_add(part, bias->dy + row * bias->channels, bias->channels);
            }
        }
        tree_join(bias->db, bias->channels, bias->parts, blocks * BIAS_LANES,
                  bias->channels);
    }
}

static void setup(struct run *run)
{
    const struct bias_add_shape *shape = run->size->params;
    struct bias_add_bwd *bias = run_host_alloc(sizeof *bias);
    int64_t dy_shape[] = { shape->images, shape->height, shape->width, shape->channels };
    int64_t parts;

    bias->rows = shape->images * shape->height * shape->width;
    bias->channels = shape->channels;
    parts = (bias->rows + BIAS_BLOCK_ROWS - 1) / BIAS_BLOCK_ROWS * BIAS_LANES;
    if (parts < BIAS_SLOTS) {
        parts = BIAS_SLOTS;
    }
    bias->dy = run_input_f32(run, "dy", 4, dy_shape, FILL_WIDE);
    bias->db = run_output_f32(run, "db", 1, &bias->channels);
    bias->parts = run_alloc_f32(run, parts * bias->channels);
    run->state = bias;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const float *dy = inputs[0].data;
    int64_t channels = output->shape[0], rows = tensor_elements(&inputs[0]) / channels;
    struct exact_sums exact = sums_begin(run, rows, output, ret_expected, ret_bound);

    for (int64_t row = 0; row < rows; row++) {
        for (int64_t c = 0; c < channels; c++) {
            sums_add(&exact, c, dy[row * channels + c]);
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every element of dy is added to its channel with an atomic add",
      .models = "TensorFlow BiasAddGrad: the CUDA kernel that calls atomicAdd",
      .algorithm = "atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "64 fixed groups of rows, joined by a fixed tree",
      .models = "TensorFlow BiasAddGrad under TF_DETERMINISTIC_OPS: one column reduction",
      .algorithm = "64 row slots, fixed tree",
      .compute = compute_ordered },
    { .name = "patched",
      .summary = "gradient of a broadcasting add: a reduce_sum over n,h,w",
      .models = "tfdeterminism.patch: bias_add as tf.math.add with implicit broadcasting",
      .algorithm = "blocks of 256 rows, 16 lanes, fixed tree",
      .compute = compute_patched },
};

static const struct workload_size sizes[] = {
    { "small", "dy[12,14,14,1024] db[1024]",
      &(const struct bias_add_shape){ 12, 14, 14, 1024 } },
    { "medium", "dy[64,14,14,1024] db[1024]",
      &(const struct bias_add_shape){ 64, 14, 14, 1024 } },
    { "large", "dy[256,28,28,512] db[512]",
      &(const struct bias_add_shape){ 256, 28, 28, 512 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_ISSUE(22398, "BiasAddGrad on GPU gives other results each run",
                     "closed 2020-06", "TF 2.1"),
    TENSORFLOW_PR(31465, "deterministic bias_add gradient by TF_DETERMINISTIC_OPS",
                  "merged 2020-06", "TF 2.1"),
    TENSORFLOW_NOTE(34887, "release note about TF_DETERMINISTIC_OPS", "merged 2020-06",
                    "TF 2.1"),
    TENSORFLOW_NOTE(35006, "the same release note, corrected", "merged 2020-06",
                    "TF 2.1"),
    TENSORFLOW_PR(33803, "tests of bias_add in eager mode", "merged 2020-06", "TF 2.2"),
    { .kind = "source",
      .id = "tfdeterminism.patch",
      .title = "bias_add replaced by broadcasting add",
      .url = "https://github.com/NVIDIA/framework-reproducibility/blob/"
             "2f82d6d55cc538c25bdd7496c8c811d84e46bf68/fwd9m/tensorflow/patch.py",
      .solved = "TF 1.14" },
    GTC_SLIDES("slides 30-31", "bias addition: root cause and temporary solution", NULL),
    STACK_OVERFLOW(
        "the patch and TF_CUDNN_DETERMINISTIC both repeat, with different losses"),
};

static const struct workload bias_add_bwd = {
    .name = "bias_add_bwd",
    .version = 1,
    .title = "tf.nn.bias_add backprop",
    .summary = "bias gradient: the upstream gradient summed over images and pixels",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of db",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(bias_add_bwd);
