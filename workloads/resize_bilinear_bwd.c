/* Gradient of bilinear resizing (half-pixel centres, enlarging) with respect to the
 * image: each upstream pixel passes its gradient to the four pixels it was interpolated
 * from. Enlarging by a power of two makes every weight exact. */
#include "workloads/resize_bilinear_bwd.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

static void pixel_scatter(const struct bilinear_shape *s, const float *dy, float *dx,
                          float weight)
{
    for (int64_t c = 0; c < s->channels; c++) {
        float term = dy[c] * weight;

#pragma omp atomic
        dx[c] += term;
    }
}

static void row_scatter(const struct resize_bilinear_bwd *resize, int64_t task)
{
    const struct bilinear_shape *s = &resize->shape;
    int64_t rows = s->height * s->scale, columns = s->width * s->scale;
    struct bilinear_source row = resize->rows[task % rows];
    float *dx = resize->dx + task / rows * s->height * s->width * s->channels;
    float *lower = dx + row.lower * s->width * s->channels;
    float *upper = dx + row.upper * s->width * s->channels;

    for (int64_t i = 0; i < columns; i++) {
        int64_t at = task % 2 ? columns - 1 - i : i;
        struct bilinear_source column = resize->columns[at];
        const float *dy = resize->dy + (task * columns + at) * s->channels;
        int64_t left = column.lower * s->channels, right = column.upper * s->channels;

        pixel_scatter(s, dy, lower + left, (1 - row.lerp) * (1 - column.lerp));
        pixel_scatter(s, dy, lower + right, (1 - row.lerp) * column.lerp);
        pixel_scatter(s, dy, upper + left, row.lerp * (1 - column.lerp));
        pixel_scatter(s, dy, upper + right, row.lerp * column.lerp);
    }
}

static void compute_unordered(struct run *run)
{
    const struct resize_bilinear_bwd *resize = run->state;
    const struct bilinear_shape *s = &resize->shape;
    int64_t rows = s->images * s->height, row_elements = s->width * s->channels;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t row = 0; row < rows; row++) {
            memset(resize->dx + row * row_elements, 0,
                   (size_t)row_elements * sizeof(float));
        }
        /* Neighbouring rows, which share pixels of dx, go in opposite directions: two
         * threads meet somewhere, and nanoseconds decide where. */
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < rows * s->scale; task++) {
            row_scatter(resize, task);
        }
    }
}

/* One pixel of dx: the upstream pixels that touch it, in row-major order. */
static void pixel_gather(const struct resize_bilinear_bwd *resize, const float *image,
                         int64_t h, int64_t w, float *dx)
{
    const struct bilinear_shape *s = &resize->shape;
    int64_t end_row = bilinear_touch_end(h, s->scale, s->height);
    int64_t end_column = bilinear_touch_end(w, s->scale, s->width);

    memset(dx, 0, (size_t)s->channels * sizeof(float));
    for (int64_t row = bilinear_touch_first(h, s->scale); row < end_row; row++) {
        for (int64_t column = bilinear_touch_first(w, s->scale); column < end_column;
             column++) {
            float weight = bilinear_share(&resize->rows[row], h) *
                           bilinear_share(&resize->columns[column], w);
            const float *dy = image + (row * s->width * s->scale + column) * s->channels;

#pragma omp simd
            for (int64_t c = 0; c < s->channels; c++) {
                dx[c] += dy[c] * weight;
            }
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct resize_bilinear_bwd *resize = run->state;
    const struct bilinear_shape *s = &resize->shape;
    int64_t image_elements = s->height * s->scale * s->width * s->scale * s->channels;

#pragma omp parallel for num_threads(run->threads)
    for (int64_t row = 0; row < s->images * s->height; row++) {
        for (int64_t w = 0; w < s->width; w++) {
            pixel_gather(resize, resize->dy + row / s->height * image_elements,
                         row % s->height, w,
                         resize->dx + (row * s->width + w) * s->channels);
        }
    }
}

static struct bilinear_source *sources_make(int64_t scale, int64_t extent)
{
    struct bilinear_source *sources =
        run_host_alloc((size_t)(scale * extent) * sizeof *sources);

    for (int64_t at = 0; at < scale * extent; at++) {
        sources[at] = bilinear_source_of(at, scale, extent);
    }
    return sources;
}

static void setup(struct run *run)
{
    const struct bilinear_shape *s = run->size->params;
    struct resize_bilinear_bwd *resize = run_host_alloc(sizeof *resize);
    int64_t dy_shape[] = { s->images, s->height * s->scale, s->width * s->scale,
                           s->channels };
    int64_t dx_shape[] = { s->images, s->height, s->width, s->channels };

    resize->shape = *s;
    resize->dy = run_input_f32(run, "dy", 4, dy_shape, FILL_WIDE);
    resize->dx = run_output_f32(run, "dx", 4, dx_shape);
    resize->rows = sources_make(s->scale, s->height);
    resize->columns = sources_make(s->scale, s->width);
    run->state = resize;
}

/* The two places between which AT lies, and how far it is from the first of them. */
static double between(int64_t at, int64_t scale, int64_t extent, int64_t ret_places[2])
{
    double place = ((double)at + 0.5) / (double)scale - 0.5;

    for (int i = 0; i < 2; i++) {
        ret_places[i] = (int64_t)floor(place) + i;
        if (ret_places[i] < 0) {
            ret_places[i] = 0;
        }
        if (ret_places[i] > extent - 1) {
            ret_places[i] = extent - 1;
        }
    }
    return place - floor(place);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct bilinear_shape *s = run->size->params;
    const float *dy = inputs[0].data;
    int64_t rows = s->height * s->scale, columns = s->width * s->scale;
    struct exact_sums exact =
        sums_begin(run, 4 * 4 * s->scale * s->scale, output, ret_expected, ret_bound);

    for (int64_t at = 0; at < s->images * rows * columns; at++) {
        int64_t h[2], w[2];
        double down = between(at / columns % rows, s->scale, s->height, h);
        double right = between(at % columns, s->scale, s->width, w);

        for (int corner = 0; corner < 4; corner++) {
            int64_t to = (at / columns / rows * s->height + h[corner / 2]) * s->width +
                         w[corner % 2];
            double weight =
                (corner / 2 ? down : 1 - down) * (corner % 2 ? right : 1 - right);

            for (int64_t c = 0; c < s->channels; c++) {
                sums_add(&exact, to * s->channels + c, dy[at * s->channels + c] * weight);
            }
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each upstream pixel adds to four pixels with atomic adds",
      .models = "TensorFlow ResizeBilinearGrad: four atomicAdds for each upstream pixel",
      .algorithm = "scatter, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "each pixel collects from the upstream pixels that touch it, in order",
      .models = "TensorFlow ResizeBilinearGrad under TF_DETERMINISTIC_OPS: one thread a "
                "pixel loops over the upstream pixels",
      .algorithm = "gather, row-major",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "dy[8,64,64,16] dx[8,8,8,16]",
      &(const struct bilinear_shape){ 8, 8, 8, 16, 8 } },
    { "medium", "dy[32,128,128,16] dx[32,32,32,16]",
      &(const struct bilinear_shape){ 32, 32, 32, 16, 4 } },
    { "large", "dy[64,256,256,64] dx[64,128,128,64]",
      &(const struct bilinear_shape){ 64, 128, 128, 64, 2 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_PR(39243, "deterministic gradient of bilinear resizing",
                  "open 2020-06, merged 2023-07", "TF 2.4, NGC 20.03"),
    TENSORFLOW_NOTE(44717, "release note about it", "merged 2023-07", "TF 2.4"),
    README_2020(
        "Confirmed Current GPU-Specific Sources",
        "confirmed-current-gpu-specific-sources-of-non-determinism-with-solutions",
        "TF 2.3 with a question mark: the change had to be merged in time, and was not",
        NULL),
};

static const struct workload resize_bilinear_bwd = {
    .name = "resize_bilinear_bwd",
    .version = 1,
    .title = "tf.image.resize_bilinear backprop",
    .summary = "image gradient of bilinear enlarging",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dx",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(resize_bilinear_bwd);
