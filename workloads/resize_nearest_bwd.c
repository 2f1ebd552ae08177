/* Gradient of nearest-neighbour resizing (enlarging by a whole number) with respect to
 * the image: each pixel gets the sum over the block of upstream pixels that were copied
 * from it. */
#include "workloads/resize_nearest_bwd.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

static void row_scatter(const struct resize_nearest_bwd *resize, int64_t task)
{
    const struct nearest_shape *s = &resize->shape;
    int64_t columns = s->width * s->scale;
    float *dx = resize->dx + task / s->scale * s->width * s->channels;

    for (int64_t i = 0; i < columns; i++) {
        int64_t at = task % 2 ? columns - 1 - i : i;
        const float *dy = resize->dy + (task * columns + at) * s->channels;
        float *to = dx + at / s->scale * s->channels;

        for (int64_t c = 0; c < s->channels; c++) {
#pragma omp atomic
            to[c] += dy[c];
        }
    }
}

static void compute_unordered(struct run *run)
{
    const struct resize_nearest_bwd *resize = run->state;
    const struct nearest_shape *s = &resize->shape;
    int64_t rows = s->images * s->height, row_elements = s->width * s->channels;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t row = 0; row < rows; row++) {
            memset(resize->dx + row * row_elements, 0,
                   (size_t)row_elements * sizeof(float));
        }
        /* Neighbouring rows, which share a row of dx, go in opposite directions: two
         * threads meet somewhere, and nanoseconds decide where. */
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < rows * s->scale; task++) {
            row_scatter(resize, task);
        }
    }
}

/* One row of dx: the upstream pixels of each pixel in row-major order. */
static void row_gather(const struct resize_nearest_bwd *resize, int64_t row)
{
    const struct nearest_shape *s = &resize->shape;
    int64_t columns = s->width * s->scale;
    float *dx = resize->dx + row * s->width * s->channels;

    memset(dx, 0, (size_t)(s->width * s->channels) * sizeof(float));
    for (int64_t down = 0; down < s->scale; down++) {
        for (int64_t at = 0; at < columns; at++) {
            const float *dy =
                resize->dy + ((row * s->scale + down) * columns + at) * s->channels;
            float *to = dx + at / s->scale * s->channels;

#pragma omp simd
            for (int64_t c = 0; c < s->channels; c++) {
                to[c] += dy[c];
            }
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct resize_nearest_bwd *resize = run->state;

#pragma omp parallel for num_threads(run->threads)
    for (int64_t row = 0; row < resize->shape.images * resize->shape.height; row++) {
        row_gather(resize, row);
    }
}

static void setup(struct run *run)
{
    const struct nearest_shape *s = run->size->params;
    struct resize_nearest_bwd *resize = run_host_alloc(sizeof *resize);
    int64_t dy_shape[] = { s->images, s->height * s->scale, s->width * s->scale,
                           s->channels };
    int64_t dx_shape[] = { s->images, s->height, s->width, s->channels };

    resize->shape = *s;
    resize->dy = run_input_f32(run, "dy", 4, dy_shape, FILL_WIDE);
    resize->dx = run_output_f32(run, "dx", 4, dx_shape);
    run->state = resize;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct nearest_shape *s = run->size->params;
    const float *dy = inputs[0].data;
    int64_t rows = s->height * s->scale, columns = s->width * s->scale;
    struct exact_sums exact =
        sums_begin(run, s->scale * s->scale, output, ret_expected, ret_bound);

    for (int64_t at = 0; at < s->images * rows * columns; at++) {
        int64_t h = at / columns % rows / s->scale, w = at % columns / s->scale;
        int64_t to = (at / columns / rows * s->height + h) * s->width + w;

        for (int64_t c = 0; c < s->channels; c++) {
            sums_add(&exact, to * s->channels + c, dy[at * s->channels + c]);
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each upstream pixel adds to its pixel with an atomic add",
      .models =
          "TensorFlow ResizeNearestNeighborGrad: one atomicAdd for each upstream value; "
          "no solution, raises from TF 2.7 on when determinism is asked for",
      .algorithm = "scatter, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "each pixel collects its block of upstream pixels in row-major order",
      .models = "no framework's kernel: a gather shows that a solution is possible",
      .algorithm = "gather, row-major",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "dy[24,64,64,16] dx[24,8,8,16]",
      &(const struct nearest_shape){ 24, 8, 8, 16, 8 } },
    { "medium", "dy[32,128,128,32] dx[32,32,32,32]",
      &(const struct nearest_shape){ 32, 32, 32, 32, 4 } },
    { "large", "dy[64,256,256,64] dx[64,64,64,64]",
      &(const struct nearest_shape){ 64, 64, 64, 64, 4 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_PR(51023, "an exception where determinism is asked for", "merged 2023-07",
                  NULL),
    GITHUB_ISSUE("framework-reproducibility", "NVIDIA/framework-reproducibility", 12,
                 "up-sampling layers that vary", NULL, NULL),
    GITHUB_ISSUE("framework-reproducibility", "NVIDIA/framework-reproducibility", 24,
                 "a transposed convolution as work-around", NULL, NULL),
};

static const struct workload resize_nearest_bwd = {
    .name = "resize_nearest_bwd",
    .version = 1,
    .title = "tf.image.resize with nearest-neighbor backprop",
    .summary = "image gradient of nearest-neighbour enlarging",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dx",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(resize_nearest_bwd);
