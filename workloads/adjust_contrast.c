/* tf.image.adjust_contrast, forward: y = (x - mean) * factor + mean, where the mean is
 * that of the channel over all pixels of its image. */
#include "workloads/adjust_contrast.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/tree.h"
#include "workloads/workload.h"

enum { TASK_ROWS = 4 };

static void pixels_adjust(const struct adjust_contrast *contrast, int64_t image,
                          int64_t begin, int64_t end)
{
    int64_t channels = contrast->shape.channels;
    const float *sums = contrast->sums + image * channels;

    for (int64_t p = begin; p < end; p++) {
        for (int64_t c = 0; c < channels; c++) {
            int64_t i = (image * contrast->pixels + p) * channels + c;

            contrast->y[i] = contrast_adjust(contrast->x[i], sums[c], contrast->pixels);
        }
    }
}

/* Every other task goes backwards: two threads meet somewhere in an image, and where
 * depends on nanoseconds. */
static void rows_add_atomically(const struct adjust_contrast *contrast, int64_t image,
                                int64_t row, bool backwards)
{
    const struct contrast_shape *s = &contrast->shape;
    int64_t elements = TASK_ROWS * s->width * s->channels;
    const float *x =
        contrast->x + (image * contrast->pixels + row * s->width) * s->channels;

    for (int64_t i = 0; i < elements; i++) {
        int64_t at = backwards ? elements - 1 - i : i;

#pragma omp atomic
        contrast->sums[image * s->channels + at % s->channels] += x[at];
    }
}

static void compute_unordered(struct run *run)
{
    const struct adjust_contrast *contrast = run->state;
    const struct contrast_shape *s = &contrast->shape;

    memset(contrast->sums, 0, (size_t)(s->images * s->channels) * sizeof(float));
#pragma omp parallel num_threads(run->threads)
    {
        /* Neighbouring tasks are of one image, or two threads would rarely meet. */
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < s->images * s->height / TASK_ROWS; task++) {
            rows_add_atomically(contrast, task * TASK_ROWS / s->height,
                                task * TASK_ROWS % s->height, task % 2);
        }
#pragma omp for
        for (int64_t row = 0; row < s->images * s->height; row++) {
            pixels_adjust(contrast, row / s->height, row % s->height * s->width,
                          (row % s->height + 1) * s->width);
        }
    }
}

static void slot_sum(const struct adjust_contrast *contrast, int64_t image, int64_t slot)
{
    int64_t channels = contrast->shape.channels;
    float *part = contrast->parts + (image * CONTRAST_SLOTS + slot) * channels;
    const float *x = contrast->x + image * contrast->pixels * channels;

    memset(part, 0, (size_t)channels * sizeof(float));
    for (int64_t p = slot * contrast->pixels / CONTRAST_SLOTS;
         p < (slot + 1) * contrast->pixels / CONTRAST_SLOTS; p++) {
#pragma omp simd
        for (int64_t c = 0; c < channels; c++) {
            part[c] += x[p * channels + c];
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct adjust_contrast *contrast = run->state;
    const struct contrast_shape *s = &contrast->shape;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t i = 0; i < s->images * CONTRAST_SLOTS; i++) {
            slot_sum(contrast, i / CONTRAST_SLOTS, i % CONTRAST_SLOTS);
        }
#pragma omp for
        for (int64_t image = 0; image < s->images; image++) {
            float *parts = contrast->parts + image * CONTRAST_SLOTS * s->channels;

            tree_sum(parts, CONTRAST_SLOTS, s->channels, 0, s->channels);
            memcpy(contrast->sums + image * s->channels, parts,
                   (size_t)s->channels * sizeof(float));
            pixels_adjust(contrast, image, 0, contrast->pixels);
        }
    }
}

static void setup(struct run *run)
{
    const struct contrast_shape *s = run->size->params;
    struct adjust_contrast *contrast = run_host_alloc(sizeof *contrast);
    int64_t shape[] = { s->images, s->height, s->width, s->channels };
    size_t sums = (size_t)(s->images * s->channels) * sizeof(float);

    contrast->shape = *s;
    contrast->pixels = s->height * s->width;
    contrast->x = run_input_f32(run, "x", 4, shape, FILL_UNIFORM);
    contrast->y = run_output_f32(run, "y", 4, shape);
    contrast->sums = run_alloc(run, sums);
    contrast->parts = run_alloc(run, sums * CONTRAST_SLOTS);
    run->state = contrast;
}

static double channel_mean(const struct contrast_shape *s, const float *x, int64_t first,
                           double *ret_magnitude)
{
    int64_t pixels = s->height * s->width;
    double sum = 0, magnitudes = 0;

    for (int64_t p = 0; p < pixels; p++) {
        sum += x[first + p * s->channels];
        magnitudes += fabs((double)x[first + p * s->channels]);
    }
    *ret_magnitude = magnitudes / (double)pixels;
    return sum / (double)pixels;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct contrast_shape *s = run->size->params;
    const float *x = inputs[0].data;
    int64_t pixels = s->height * s->width;
    double unit = rounding_unit(run->dtype);

    (void)output;
    for (int64_t i = 0; i < s->images * s->channels; i++) {
        int64_t first = i / s->channels * pixels * s->channels + i % s->channels;
        double magnitude, mean = channel_mean(s, x, first, &magnitude);
        double mean_error = rounding_gamma(run->dtype, pixels + 1) * magnitude;

        for (int64_t p = 0; p < pixels; p++) {
            int64_t at = first + p * s->channels;
            double distance = fabs(x[at] - mean);

            /* The mean enters with weight 1 - factor; the difference, its product and
             * the sum are rounded once each. */
            ret_expected[at] = (x[at] - mean) * CONTRAST_FACTOR + mean;
            ret_bound[at] = fabs(1 - (double)CONTRAST_FACTOR) * mean_error +
                            1.01 * unit *
                                (2 * CONTRAST_FACTOR * (distance + mean_error) +
                                 fabs(ret_expected[at]) + mean_error);
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every element is added to the sum of its channel with an atomic add",
      .models = "tf.image.adjust_contrast on GPU: the mean is reduced in no fixed order",
      .algorithm = "atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "32 fixed groups of pixels an image, joined by a fixed tree",
      .models = "nothing in the documents: TensorFlow raises an error instead",
      .algorithm = "32 pixel slots, fixed tree",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "x[8,64,64,64] y[8,64,64,64]",
      &(const struct contrast_shape){ 8, 64, 64, 64 } },
    { "medium", "x[16,128,128,64] y[16,128,128,64]",
      &(const struct contrast_shape){ 16, 128, 128, 64 } },
    { "large", "x[128,256,256,64] y[128,256,256,64]",
      &(const struct contrast_shape){ 128, 256, 256, 64 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_PR(51140,
                  "adjust_contrast raises when determinism is asked for, since TF 2.7",
                  "merged 2023-07", NULL),
};

static const struct workload adjust_contrast = {
    .name = "adjust_contrast",
    .version = 1,
    .title = "tf.image.adjust_contrast",
    .summary = "pixels drawn away from the mean of their channel",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of y",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(adjust_contrast);
