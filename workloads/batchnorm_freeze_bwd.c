/* Gradients of batch normalization with frozen statistics (is_training=False, as in fine
 * tuning): those of scale and offset are sums over images and pixels (batchnorm.h), and
 * that of the input needs neither, dx = dy * scale * inv_std. */
#include "workloads/shared/batchnorm.h"
#include "workloads/shared/references.h"

static void rows_finish(const struct norm *norm)
{
#pragma omp for
    for (int64_t row = 0; row < norm->rows; row++) {
        const float *dy = norm->dy + row * norm->channels;
        float *dx = norm->dx + row * norm->channels;

#pragma omp simd
        for (int64_t c = 0; c < norm->channels; c++) {
            dx[c] = dy[c] * (norm->scale[c] * norm->inv_std[c]);
        }
    }
}

static void compute_unordered(struct run *run)
{
    norm_compute(run, false, rows_finish, false);
}

static void compute_ordered(struct run *run)
{
    norm_compute(run, true, rows_finish, false);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const float *dy = inputs[NORM_DY].data, *scale = inputs[NORM_SCALE].data;
    const float *inv_std = inputs[NORM_INV_STD].data;
    int64_t channels = inputs[NORM_MEAN].shape[0];
    double gamma = rounding_gamma(run->dtype, 2);

    for (int64_t i = 0; output->rank == 4 && i < tensor_elements(output); i++) {
        ret_expected[i] = (double)dy[i] * scale[i % channels] * inv_std[i % channels];
        ret_bound[i] = gamma * fabs(ret_expected[i]);
    }
    for (int64_t c = 0; output->rank == 1 && c < channels; c++) {
        norm_reference_channel(run, inputs, output, c, ret_expected, ret_bound);
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every term of both sums is added with an atomic add",
      .models =
          "TensorFlow's own freeze-gradient kernel; no solution, raises from TF 2.7 "
          "on when determinism is asked for",
      .algorithm = "atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "64 fixed groups of pixels, joined by a fixed tree",
      .models = "no framework's kernel: an ordered reduction shows that a solution is "
                "possible",
      .algorithm = "64 row slots, fixed tree",
      .compute = compute_ordered },
};

static const struct workload_reference references[] = {
    TENSORFLOW_ISSUE(
        10857,
        "fine-tuning: gradients through batch normalization with is_training=False", NULL,
        NULL),
    TENSORFLOW_PR(50505, "raises when determinism is asked for, since TF 2.7",
                  "merged 2023-07", NULL),
};

static const struct workload batchnorm_freeze_bwd = {
    .name = "batchnorm_freeze_bwd",
    .version = 1,
    .title = "tf.nn.fused_batch_norm backprop with is_training=False",
    .summary = "gradients of batch normalization with frozen statistics",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(norm_sizes),
    .weight_sum = "sum of dx",
    WORKLOAD_REFERENCES(references),
    .setup = norm_setup,
    .reference = reference,
};
WORKLOAD_REGISTER(batchnorm_freeze_bwd);
