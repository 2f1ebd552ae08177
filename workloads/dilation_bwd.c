/* Gradients of a grey-scale dilation by a 3x3 filter (stride 1, padding 1):
 * y[n,h,w,c] = max over taps of x[n,h+kh-1,w+kw-1,c] + filter[kh,kw,c], computed in
 * float32; of several equal maxima the first in row-major order counts.  Each window
 * passes its upstream gradient to the position of its maximum: to that pixel of dx, and
 * to that tap of dfilter. */
#include "workloads/dilation_bwd.h"

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/tree.h"
#include "workloads/shared/window_max.h"
#include "workloads/workload.h"

struct dilation_bwd {
    struct window_max max;
    int64_t taps;    /* elements of the filter */
    float *dfilter;  /* [3][3][channels] */
    float *partials; /* [slots][3][3][channels] */
};

static void window_filter_scatter(const struct dilation_bwd *dilation, int64_t window)
{
    const struct window_max *max = &dilation->max;
    int64_t channels = max->shape.channels;

    for (int64_t c = 0; c < channels; c++) {
        float *to =
            dilation->dfilter + max->winners[window * channels + c] * channels + c;

#pragma omp atomic
        *to += max->dy[window * channels + c];
    }
}

static void compute_unordered(struct run *run)
{
    const struct dilation_bwd *dilation = run->state;
    const struct window_max *max = &dilation->max;
    int64_t rows = max->shape.images * max->shape.height, width = max->shape.width;

    memset(dilation->dfilter, 0, (size_t)dilation->taps * sizeof(float));
#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t row = 0; row < rows; row++) {
            row_clear(max, row);
        }
        /* Neighbouring rows go in opposite directions, so that two threads meet. */
#pragma omp for schedule(dynamic, 1)
        for (int64_t row = 0; row < rows; row++) {
            row_winners(max, row);
            for (int64_t i = 0; i < width; i++) {
                int64_t column = row % 2 ? width - 1 - i : i;

                window_scatter(max, row, column);
                window_filter_scatter(dilation, row * width + column);
            }
        }
    }
}

/* The windows of a slot in row-major order, each a term or a zero. */
static void slot_sum(const struct dilation_bwd *dilation, int64_t slot)
{
    const struct window_max *max = &dilation->max;
    const struct pool_shape *shape = &max->shape;
    int64_t rows = shape->images * shape->height, channels = shape->channels;
    int64_t begin = slot * rows / DILATION_SLOTS * shape->width;
    int64_t end = (slot + 1) * rows / DILATION_SLOTS * shape->width;
    float *sums = dilation->partials + slot * dilation->taps;

    memset(sums, 0, (size_t)dilation->taps * sizeof *sums);
    for (int64_t window = begin; window < end; window++) {
        const float *dy = max->dy + window * channels;
        const int32_t *winners = max->winners + window * channels;

        for (int32_t tap = 0; tap < POOL_WINDOW; tap++) {
            float *sum = sums + tap * channels;

#pragma omp simd
            for (int64_t c = 0; c < channels; c++) {
                float term = dy[c];

                sum[c] += winners[c] == tap ? term : 0.0F;
            }
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct dilation_bwd *dilation = run->state;
    int64_t rows = dilation->max.shape.images * dilation->max.shape.height;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t row = 0; row < rows; row++) {
            row_winners(&dilation->max, row);
        }
#pragma omp for nowait
        for (int64_t row = 0; row < rows; row++) {
            row_gather(&dilation->max, row);
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t slot = 0; slot < DILATION_SLOTS; slot++) {
            slot_sum(dilation, slot);
        }
        tree_join(dilation->dfilter, dilation->taps, dilation->partials, DILATION_SLOTS,
                  dilation->taps);
    }
}

static void setup(struct run *run)
{
    struct dilation_bwd *dilation = run_host_alloc(sizeof *dilation);
    int64_t filter[] = { POOL_TAPS, POOL_TAPS, 0 };

    window_max_setup(run, &dilation->max);
    filter[2] = dilation->max.shape.channels;
    dilation->taps = POOL_WINDOW * filter[2];
    dilation->max.filter = run_input_f32(run, "filter", 3, filter, FILL_UNIFORM);
    dilation->dfilter = run_output_f32(run, "dfilter", 3, filter);
    dilation->partials = run_alloc_f32(run, DILATION_SLOTS * dilation->taps);
    run->state = dilation;
}

/* The tap of the maximum of the window at PIXEL of IMAGE. */
static int64_t winner_of(const struct pool_shape *s, const float *x, const float *filter,
                         int64_t image, int64_t pixel, int64_t c)
{
    int64_t plane = image * s->height * s->width, winner = -1;
    float best = 0;

    for (int64_t tap = 0; tap < POOL_WINDOW; tap++) {
        int64_t at = pool_tap_pixel(s, pixel / s->width, pixel % s->width, tap);
        float value;

        if (at < 0) {
            continue;
        }
        value = x[(plane + at) * s->channels + c] + filter[tap * s->channels + c];
        if (winner < 0 || value > best) {
            winner = tap;
            best = value;
        }
    }
    return winner;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct pool_shape *s = run->size->params;
    const float *x = inputs[0].data, *dy = inputs[1].data, *filter = inputs[2].data;
    struct exact_sums exact = sums_begin_counted(run, output, ret_expected, ret_bound);
    int64_t pixels = s->height * s->width;

    for (int64_t i = 0; i < pool_elements(s); i++) {
        int64_t c = i % s->channels, pixel = i / s->channels % pixels;
        int64_t image = i / s->channels / pixels;
        int64_t tap = winner_of(s, x, filter, image, pixel, c);
        int64_t at =
            image * pixels + pool_tap_pixel(s, pixel / s->width, pixel % s->width, tap);

        sums_add(&exact, (output->rank == 3 ? tap : at) * s->channels + c, dy[i]);
    }
    sums_finish(&exact, 0);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each window adds its gradient to its maximum with atomic adds",
      .models = "tf.nn.dilation2d on GPU: both gradients scatter with atomicAdd",
      .algorithm = "scatter, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "each pixel collects from its nine windows; a tree joins sums of rows",
      .models = "a gather in row-major order, as no framework has it for this gradient",
      .algorithm = "gather, row-major windows; filter: tree of 32 sums of rows",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "x[4,28,28,64] dy[4,28,28,64] filter[3,3,64]",
      &(const struct pool_shape){ 4, 28, 28, 64 } },
    { "medium", "x[32,28,28,192] dy[32,28,28,192] filter[3,3,192]",
      &(const struct pool_shape){ 32, 28, 28, 192 } },
    { "large", "x[256,28,28,192] dy[256,28,28,192] filter[3,3,192]",
      &(const struct pool_shape){ 256, 28, 28, 192 } },
};

static const struct workload_reference references[] = {
    CANDIDATE_2023("dilation_ops; from TF 2.8 on deterministic, or it raises"),
    TENSORFLOW_SOURCE("2.3.0", "core/kernels/dilation_ops_gpu.cu.cc",
                      "both gradients scatter to the arg-max with atomic adds"),
    TENSORFLOW_SOURCE("2.11.0", "python/kernel_tests/nn_ops/morphological_ops_test.py",
                      "both gradients raise on GPU when determinism is asked for"),
};

static const struct workload dilation_bwd = {
    .name = "dilation_bwd",
    .version = 1,
    .title = "Dilation (morphology) backprop",
    .summary = "gradients of a 3x3 grey-scale dilation to its input and to its filter",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dx",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(dilation_bwd);
