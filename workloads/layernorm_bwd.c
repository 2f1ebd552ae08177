/* Gradients of layer normalization.  Each row's input gradient is a matter of that row
 * alone, but those of gain and offset are sums over all rows,
 *   doffset[c] = sum of dy[r,c],  dgain[c] = sum of dy[r,c] * xhat[r,c],
 *   dx[r,c] = inv_std[r] * (g - mean over c of g - xhat * mean over c of g * xhat),
 * with g = dy * gain and xhat = (x - mean[r]) * inv_std[r]. */
#include "workloads/layernorm_bwd.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/tree.h"
#include "workloads/workload.h"

enum { TASK_ROWS = 4 };

struct layernorm_bwd {
    int64_t rows, channels;
    const float *x, *dy, *gain, *mean, *inv_std;
    float *dx, *doffset, *dgain;
    float *parts; /* doffset and dgain for each slot */
};

static float xhat_at(const struct layernorm_bwd *layer, int64_t row, int64_t c)
{
    return (layer->x[row * layer->channels + c] - layer->mean[row]) * layer->inv_std[row];
}

/* Sums over a row in order: fixed, whoever computes it. */
static void row_finish(const struct layernorm_bwd *layer, int64_t row)
{
    const float *dy = layer->dy + row * layer->channels;
    float *dx = layer->dx + row * layer->channels;
    float channels = (float)layer->channels, sum = 0, product = 0;

    for (int64_t c = 0; c < layer->channels; c++) {
        float g = dy[c] * layer->gain[c];

        sum += g;
        product += g * xhat_at(layer, row, c);
    }
    sum /= channels;
    product /= channels;
    for (int64_t c = 0; c < layer->channels; c++) {
        dx[c] = layer->inv_std[row] *
                (dy[c] * layer->gain[c] - sum - xhat_at(layer, row, c) * product);
    }
}

/* Neighbouring tasks go in opposite directions: two threads meet somewhere in the
 * channels, and nanoseconds decide where. */
static void row_add_atomically(const struct layernorm_bwd *layer, int64_t row, bool down)
{
    const float *dy = layer->dy + row * layer->channels;

    for (int64_t i = 0; i < layer->channels; i++) {
        int64_t c = down ? layer->channels - 1 - i : i;
        float product = dy[c] * xhat_at(layer, row, c);

#pragma omp atomic
        layer->doffset[c] += dy[c];
#pragma omp atomic
        layer->dgain[c] += product;
    }
}

static void compute_unordered(struct run *run)
{
    const struct layernorm_bwd *layer = run->state;
    int64_t tasks = (layer->rows + TASK_ROWS - 1) / TASK_ROWS;

    memset(layer->doffset, 0, (size_t)layer->channels * sizeof(float));
    memset(layer->dgain, 0, (size_t)layer->channels * sizeof(float));
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t task = 0; task < tasks; task++) {
        for (int64_t row = task * TASK_ROWS;
             row < (task + 1) * TASK_ROWS && row < layer->rows; row++) {
            row_add_atomically(layer, row, task % 2);
            row_finish(layer, row);
        }
    }
}

static void slot_add(const struct layernorm_bwd *layer, int64_t slot)
{
    float *doffset = layer->parts + slot * 2 * layer->channels;
    float *dgain = doffset + layer->channels;

    memset(doffset, 0, (size_t)(2 * layer->channels) * sizeof(float));
    for (int64_t row = slot * layer->rows / LAYER_SLOTS;
         row < (slot + 1) * layer->rows / LAYER_SLOTS; row++) {
        const float *dy = layer->dy + row * layer->channels;

#pragma omp simd
        for (int64_t c = 0; c < layer->channels; c++) {
            doffset[c] += dy[c];
            dgain[c] += dy[c] * xhat_at(layer, row, c);
        }
        row_finish(layer, row);
    }
}

static void compute_ordered(struct run *run)
{
    const struct layernorm_bwd *layer = run->state;
    int64_t channels = layer->channels;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int64_t slot = 0; slot < LAYER_SLOTS; slot++) {
            slot_add(layer, slot);
        }
        tree_join(layer->doffset, channels, layer->parts, LAYER_SLOTS, 2 * channels);
        tree_join(layer->dgain, channels, layer->parts + channels, LAYER_SLOTS,
                  2 * channels);
    }
}

static void setup(struct run *run)
{
    const struct layer_shape *s = run->size->params;
    struct layernorm_bwd *layer = run_host_alloc(sizeof *layer);
    int64_t shape[] = { s->rows, s->channels };
    float *mean = run_host_alloc((size_t)s->rows * sizeof(float));
    float *inv_std = run_host_alloc((size_t)s->rows * sizeof(float));

    layer->rows = s->rows;
    layer->channels = s->channels;
    layer->x = run_input_f32(run, "x", 2, shape, FILL_UNIFORM);
    layer->dy = run_input_f32(run, "dy", 2, shape, FILL_WIDE);
    layer->gain = run_input_f32(run, "gain", 1, &shape[1], FILL_UNIFORM);
    for (int64_t row = 0; row < s->rows; row++) {
        layer_statistics(layer->x + row * s->channels, s->channels, &mean[row],
                         &inv_std[row]);
    }
    layer->mean = run_values_f32(run, "mean", 1, shape, mean);
    layer->inv_std = run_values_f32(run, "inv_std", 1, shape, inv_std);
    free(mean);
    free(inv_std);
    layer->dgain = run_output_f32(run, "dgain", 1, &shape[1]);
    layer->doffset = run_output_f32(run, "doffset", 1, &shape[1]);
    layer->dx = run_output_f32(run, "dx", 2, shape);
    layer->parts = run_alloc_f32(run, LAYER_SLOTS * 2 * s->channels);
    run->state = layer;
}

static double reference_xhat(const struct tensor *inputs, int64_t row, int64_t c)
{
    const float *x = inputs[0].data, *mean = inputs[3].data, *inv_std = inputs[4].data;

    return ((double)x[row * inputs[0].shape[1] + c] - mean[row]) * inv_std[row];
}

/* A term of the first sum has one rounding of its own, one of the second sum four, and
 * what they enter has at most eight more. */
static void reference_row(const struct run *run, const struct tensor *inputs, int64_t row,
                          double *ret_expected, double *ret_bound)
{
    const float *dy = inputs[1].data, *gain = inputs[2].data, *inv_std = inputs[4].data;
    int64_t channels = inputs[0].shape[1];
    double gamma = rounding_gamma(run->dtype, channels + 12);
    double sum = 0, product = 0, sums = 0, products = 0;

    dy += row * channels;
    for (int64_t c = 0; c < channels; c++) {
        double g = (double)dy[c] * gain[c], xhat = reference_xhat(inputs, row, c);

        sum += g / (double)channels;
        product += g * xhat / (double)channels;
        sums += fabs(g) / (double)channels;
        products += fabs(g * xhat) / (double)channels;
    }
    for (int64_t c = 0; c < channels; c++) {
        double g = (double)dy[c] * gain[c], xhat = reference_xhat(inputs, row, c);

        ret_expected[row * channels + c] = inv_std[row] * (g - sum - xhat * product);
        ret_bound[row * channels + c] =
            gamma * fabs((double)inv_std[row]) * (fabs(g) + sums + fabs(xhat) * products);
    }
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const float *dy = inputs[1].data;
    int64_t rows = inputs[0].shape[0], channels = inputs[0].shape[1];
    struct exact_sums exact = sums_begin(run, rows + 3, output, ret_expected, ret_bound);
    bool gain = strcmp(output->name, "dgain") == 0;

    if (output->rank == 2) {
        for (int64_t row = 0; row < rows; row++) {
            reference_row(run, inputs, row, ret_expected, ret_bound);
        }
        return;
    }
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t row = 0; row < rows; row++) {
            sums_add(&exact, c,
                     dy[row * channels + c] *
                         (gain ? reference_xhat(inputs, row, c) : 1));
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each row is added to the gradients of gain and offset atomically",
      .models = "fused layer normalization whose thread-blocks meet in atomicAdd",
      .algorithm = "atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "64 fixed groups of rows, joined by a fixed tree",
      .models = "fused layer normalization in two stages: partial sums, then one column "
                "reduction",
      .algorithm = "64 row slots, fixed tree",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "x[1024,512] dy[1024,512]", &(const struct layer_shape){ 1024, 512 } },
    { "medium", "x[8192,1024] dy[8192,1024]", &(const struct layer_shape){ 8192, 1024 } },
    { "large", "x[65536,2048] dy[65536,2048]",
      &(const struct layer_shape){ 65536, 2048 } },
};

static const struct workload_reference references[] = {
    GTC_SLIDES("slide 46",
               "reductions can be faster and deterministic: trees, not atomics", NULL),
};

static const struct workload layernorm_bwd = {
    .name = "layernorm_bwd",
    .version = 1,
    .title = "Layer normalization backprop",
    .summary = "gradients of layer normalization: input, gain and offset",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dgain",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(layernorm_bwd);
