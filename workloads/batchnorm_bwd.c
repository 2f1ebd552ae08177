/* Gradients of batch normalization in training: those of scale and offset are sums over
 * images and pixels (batchnorm.h), and that of the input depends on both,
 * dx = scale * inv_std * (dy - (doffset + xhat * dscale) / rows). */
#include "workloads/shared/batchnorm.h"
#include "workloads/shared/references.h"

static void rows_finish(const struct norm *norm)
{
    float rows = (float)norm->rows;
    const float *doffset = norm->sums, *dscale = norm->sums + norm->channels;

#pragma omp for
    for (int64_t row = 0; row < norm->rows; row++) {
        const float *dy = norm->dy + row * norm->channels;
        float *dx = norm->dx + row * norm->channels;

#pragma omp simd
        for (int64_t c = 0; c < norm->channels; c++) {
            dx[c] = norm->scale[c] * norm->inv_std[c] *
                    (dy[c] - (doffset[c] + norm_xhat(norm, row, c) * dscale[c]) / rows);
        }
    }
}

static void compute_ordered(struct run *run)
{
    norm_compute(run, true, rows_finish, true);
}

static void compute_unordered(struct run *run)
{
    norm_compute(run, false, rows_finish, true);
}

/* In dx the errors of both sums arrive divided by the rows, and eight roundings of its
 * own act on each of its three terms; 1.001 covers products of two errors. */
static void reference_dx(const struct run *run, const struct tensor *inputs, int64_t c,
                         double *ret_expected, double *ret_bound)
{
    const float *dy = inputs[NORM_DY].data, *scale = inputs[NORM_SCALE].data;
    const float *inv_std = inputs[NORM_INV_STD].data;
    int64_t elements = tensor_elements(&inputs[NORM_X]);
    int64_t channels = inputs[NORM_MEAN].shape[0];
    int64_t count = elements / channels;
    double rows = (double)count;
    double factor = (double)scale[c] * inv_std[c], gamma = rounding_gamma(run->dtype, 8);
    struct norm_sums sums = norm_reference_sums(run, inputs, c);

    for (int64_t i = c; i < elements; i += channels) {
        double xhat = norm_reference_xhat(inputs, i);
        double own =
            fabs((double)dy[i]) + (fabs(sums.doffset) + fabs(xhat * sums.dscale)) / rows;
        double inherited = (sums.doffset_bound + fabs(xhat) * sums.dscale_bound) / rows;

        ret_expected[i] = factor * (dy[i] - (sums.doffset + xhat * sums.dscale) / rows);
        ret_bound[i] = 1.001 * fabs(factor) * (gamma * own + inherited);
    }
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    for (int64_t c = 0; c < inputs[NORM_MEAN].shape[0]; c++) {
        if (output->rank == 4) {
            reference_dx(run, inputs, c, ret_expected, ret_bound);
        } else {
            norm_reference_channel(run, inputs, output, c, ret_expected, ret_bound);
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "ordered",
      .summary = "64 fixed groups of pixels, joined by a fixed tree",
      .models = "cudnnBatchNormalizationBackward, CUDNN_BATCHNORM_SPATIAL: documented "
                "to be deterministic",
      .algorithm = "64 row slots, fixed tree",
      .compute = compute_ordered },
    { .name = "unordered",
      .summary = "every term of both sums is added with an atomic add",
      .models = "what slide 32 saw: back-propagation that differed every ten steps",
      .algorithm = "atomic adds",
      .control = true,
      .compute = compute_unordered },
};

static const struct workload_reference references[] = {
    GTC_SLIDES("slides 32-33",
               "fused_batch_norm varied every ten steps, until a driver was updated",
               NULL),
    CUDNN_ODDS_AND_ENDS(
        "batch normalization is not among the non-deterministic routines"),
};

static const struct workload batchnorm_bwd = {
    .name = "batchnorm_bwd",
    .version = 1,
    .title = "tf.nn.fused_batch_norm backprop",
    .summary = "gradients of batch normalization in training",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(norm_sizes),
    .weight_sum = "sum of dx",
    WORKLOAD_REFERENCES(references),
    .setup = norm_setup,
    .reference = reference,
};
WORKLOAD_REGISTER(batchnorm_bwd);
