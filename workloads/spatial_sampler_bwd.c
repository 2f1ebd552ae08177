/* Gradients of the sampler of a spatial transformer: each upstream pixel was interpolated
 * bilinearly between four pixels of the image, at a place that the grid names with x and
 * y in [-1, 1).  The image's gradient adds up wherever samples overlap; the grid's does
 * not. Places are defined in float32: (g + 1) * ((extent - 1) / 2). */
#include "workloads/spatial_sampler_bwd.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

static void sample_scatter(const struct spatial_sampler_bwd *sampler, int64_t sample)
{
    const struct sampler_shape *s = &sampler->shape;
    struct sampler_place place = sampler_place_of(s, sampler->grid, sample);
    const float *dy = sampler->dy + sample * s->channels;

    for (int corner = 0; corner < SAMPLER_CORNERS; corner++) {
        float weight = sampler_corner_weight(&place, corner);
        float *dx =
            sampler->dx + sampler_corner_index(s, sample / s->samples, &place, corner);

        for (int64_t c = 0; c < s->channels; c++) {
            float term = dy[c] * weight;

#pragma omp atomic
            dx[c] += term;
        }
    }
}

/* The grid's gradient: a sum over the channels of one sample, in order. */
static void sample_grid(const struct spatial_sampler_bwd *sampler, int64_t sample)
{
    const struct sampler_shape *s = &sampler->shape;
    struct sampler_place place = sampler_place_of(s, sampler->grid, sample);
    const float *x = sampler->x + sampler_corner_index(s, sample / s->samples, &place, 0);
    const float *below = x + s->width * s->channels;
    const float *dy = sampler->dy + sample * s->channels;
    float along = 0, across = 0;

    for (int64_t c = 0; c < s->channels; c++) {
        float right = x[c + s->channels] - x[c];
        float right_below = below[c + s->channels] - below[c];
        float down = below[c] - x[c];
        float down_right = below[c + s->channels] - x[c + s->channels];

        along += dy[c] * (right * (1 - place.down) + right_below * place.down);
        across += dy[c] * (down * (1 - place.right) + down_right * place.right);
    }
    sampler->dgrid[2 * sample] = along * ((float)(s->width - 1) / 2);
    sampler->dgrid[2 * sample + 1] = across * ((float)(s->height - 1) / 2);
}

/* Tasks of 16 samples: some 10 to 100 us. */
enum { TASK_SAMPLES = 16 };

static void compute_unordered(struct run *run)
{
    const struct spatial_sampler_bwd *sampler = run->state;
    const struct sampler_shape *s = &sampler->shape;
    int64_t samples = s->images * s->samples;
    int64_t rows = s->images * s->height, row_elements = s->width * s->channels;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t row = 0; row < rows; row++) {
            memset(sampler->dx + row * row_elements, 0,
                   (size_t)row_elements * sizeof(float));
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t begin = 0; begin < samples; begin += TASK_SAMPLES) {
            for (int64_t i = begin; i < begin + TASK_SAMPLES && i < samples; i++) {
                sample_scatter(sampler, i);
                sample_grid(sampler, i);
            }
        }
    }
}

/* A stable counting sort of one image's samples by their upper left pixel. */
static void image_sort(const struct spatial_sampler_bwd *sampler, int64_t image)
{
    const struct sampler_shape *s = &sampler->shape;
    int64_t pixels = s->height * s->width;
    int32_t *begins = sampler->begins + image * (pixels + 1);
    int32_t *order = sampler->order + image * s->samples;

    memset(begins, 0, (size_t)(pixels + 1) * sizeof *begins);
    for (int64_t i = 0; i < s->samples; i++) {
        struct sampler_place place =
            sampler_place_of(s, sampler->grid, image * s->samples + i);

        begins[place.row * s->width + place.column + 1]++;
    }
    for (int64_t pixel = 0; pixel < pixels; pixel++) {
        begins[pixel + 1] += begins[pixel];
    }
    for (int64_t i = s->samples - 1; i >= 0; i--) {
        struct sampler_place place =
            sampler_place_of(s, sampler->grid, image * s->samples + i);

        order[--begins[place.row * s->width + place.column + 1]] = (int32_t)i;
    }
}

/* One pixel of dx: the samples of which it is the first corner, then of which it is the
 * second, and so on; each in the order of the grid. */
static void pixel_gather(const struct spatial_sampler_bwd *sampler, int64_t image,
                         int64_t row, int64_t column)
{
    const struct sampler_shape *s = &sampler->shape;
    int64_t pixels = s->height * s->width;
    const int32_t *begins = sampler->begins + image * (pixels + 1) + 1;
    float *dx = sampler->dx + (image * pixels + row * s->width + column) * s->channels;

    memset(dx, 0, (size_t)s->channels * sizeof(float));
    for (int corner = 0; corner < SAMPLER_CORNERS; corner++) {
        int64_t pixel = (row - corner / 2) * s->width + column - corner % 2;
        int64_t end;

        if (row < corner / 2 || column < corner % 2) {
            continue;
        }
        end = pixel + 1 < pixels ? begins[pixel + 1] : s->samples;
        for (int64_t i = begins[pixel]; i < end; i++) {
            int64_t sample = image * s->samples + sampler->order[image * s->samples + i];
            struct sampler_place place = sampler_place_of(s, sampler->grid, sample);
            float weight = sampler_corner_weight(&place, corner);
            const float *dy = sampler->dy + sample * s->channels;

#pragma omp simd
            for (int64_t c = 0; c < s->channels; c++) {
                dx[c] += dy[c] * weight;
            }
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct spatial_sampler_bwd *sampler = run->state;
    const struct sampler_shape *s = &sampler->shape;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int64_t image = 0; image < s->images; image++) {
            image_sort(sampler, image);
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t row = 0; row < s->images * s->height; row++) {
            for (int64_t column = 0; column < s->width; column++) {
                pixel_gather(sampler, row / s->height, row % s->height, column);
            }
        }
#pragma omp for
        for (int64_t sample = 0; sample < s->images * s->samples; sample++) {
            sample_grid(sampler, sample);
        }
    }
}

static void setup(struct run *run)
{
    const struct sampler_shape *s = run->size->params;
    struct spatial_sampler_bwd *sampler = run_host_alloc(sizeof *sampler);

    spatial_sampler_bwd_tensors(run, sampler);
    sampler->order = run_alloc_i32(run, s->images * s->samples);
    sampler->begins = run_alloc_i32(run, s->images * (s->height * s->width + 1));
    run->state = sampler;
}

/* Splits a place on an axis of EXTENT pixels into a pixel and the weights of it and of
 * the next one. */
static int64_t axis_split(float g, int64_t extent, double ret_weights[2])
{
    float at = (g + 1) * ((float)(extent - 1) / 2);
    int64_t pixel = (int64_t)at < extent - 1 ? (int64_t)at : extent - 2;

    ret_weights[1] = (double)at - (double)pixel;
    ret_weights[0] = 1 - ret_weights[1];
    return pixel;
}

/* A pixel of dx adds up to 4 * samples terms, each of a product with three roundings and
 * of weights with one each; dgrid sums products of channels with five roundings more. */
static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct sampler_shape *s = run->size->params;
    const float *x = inputs[0].data, *grid = inputs[1].data, *dy = inputs[2].data;
    bool image_wanted = output->rank == 4;
    struct exact_sums exact = sums_begin(
        run, image_wanted ? SAMPLER_CORNERS * s->samples + 5 : 2 * s->channels + 8,
        output, ret_expected, ret_bound);

    for (int64_t sample = 0; sample < s->images * s->samples; sample++) {
        double across[2], down[2];
        int64_t column = axis_split(grid[2 * sample], s->width, across);
        int64_t row = axis_split(grid[2 * sample + 1], s->height, down);

        for (int corner = 0; corner < SAMPLER_CORNERS; corner++) {
            int64_t at =
                ((sample / s->samples * s->height + row + corner / 2) * s->width +
                 column + corner % 2) *
                s->channels;

            for (int64_t c = 0; c < s->channels; c++) {
                double g = dy[sample * s->channels + c];
                double pull = g * x[at + c];
                double along = pull * down[corner / 2] * (double)(s->width - 1) / 2;
                double athwart = pull * across[corner % 2] * (double)(s->height - 1) / 2;

                if (image_wanted) {
                    g *= down[corner / 2] * across[corner % 2];
                    sums_add(&exact, at + c, g);
                    continue;
                }
                sums_add(&exact, 2 * sample, corner % 2 ? along : -along);
                sums_add(&exact, 2 * sample + 1, corner / 2 ? athwart : -athwart);
            }
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each sample adds to four pixels with atomic adds",
      .models = "cudnnSpatialTfSamplerBackward, which has no deterministic algorithm",
      .algorithm = "scatter, atomic adds",
      .claim = "non-deterministic",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "samples are sorted by pixel; each pixel collects its own in order",
      .models = "no library's kernel: sorting shows that a solution is possible",
      .algorithm = "stable counting sort, gather",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "x[8,16,16,16] grid[8,4096,2] dy[8,4096,16]",
      &(const struct sampler_shape){ 8, 16, 16, 16, 4096 } },
    { "medium", "x[32,32,32,32] grid[32,16384,2] dy[32,16384,32]",
      &(const struct sampler_shape){ 32, 32, 32, 32, 16384 } },
    { "large", "x[64,64,64,64] grid[64,65536,2] dy[64,65536,64]",
      &(const struct sampler_shape){ 64, 64, 64, 64, 65536 } },
};

static const struct workload_reference references[] = {
    CUDNN_ODDS_AND_ENDS("names cudnnSpatialTfSamplerBackward as non-deterministic"),
    STACK_OVERFLOW("names cudnnSpatialTfSamplerBackward, as of cuDNN 8.0.1"),
};

static const struct workload spatial_sampler_bwd = {
    .name = "spatial_sampler_bwd",
    .version = 1,
    .title = "cudnnSpatialTfSamplerBackward",
    .summary = "gradients of bilinear sampling with respect to image and grid",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dx",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(spatial_sampler_bwd);
