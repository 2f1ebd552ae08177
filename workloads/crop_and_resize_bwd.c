/* Gradient of tf.image.crop_and_resize (bilinear) with respect to the image.  A box cuts
 * a rectangle out of an image and resizes it to crop x crop pixels; each of those hands
 * its gradient to the four pixels of the image around its sample point, weighted by
 * nearness.  Boxes overlap, so many crops meet in one pixel. */
#include "workloads/crop_and_resize_bwd.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

static void box_add_atomically(const struct crop_and_resize_bwd *crop, int64_t box)
{
    const struct crop_shape *s = &crop->shape;
    float *image = crop->dimage + crop->image[box] * crop_image_elements(s);
    int64_t pixels[CROP_CORNERS];
    float weights[CROP_CORNERS];

    for (int64_t i = 0; i < s->crop * s->crop; i++) {
        const float *dy = crop->dy + (box * s->crop * s->crop + i) * s->channels;

        crop_corners_find(s, crop->boxes + 4 * box, i / s->crop, i % s->crop, pixels,
                          weights);
        for (int corner = 0; corner < CROP_CORNERS; corner++) {
            for (int64_t c = 0; c < s->channels; c++) {
#pragma omp atomic
                image[pixels[corner] + c] += weights[corner] * dy[c];
            }
        }
    }
}

static void compute_unordered(struct run *run)
{
    const struct crop_and_resize_bwd *crop = run->state;
    const struct crop_shape *s = &crop->shape;

    memset(crop->dimage, 0, (size_t)(s->images * crop_image_elements(s)) * sizeof(float));
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t box = 0; box < s->boxes; box++) {
        box_add_atomically(crop, box);
    }
}

/* Adds what box BOX contributes to row H of its image. */
static void box_add_to_row(const struct crop_and_resize_bwd *crop, int64_t box, int64_t h,
                           float *image)
{
    const struct crop_shape *s = &crop->shape;
    const float *box_at = crop->boxes + 4 * box;
    int64_t pixels[CROP_CORNERS];
    float weights[CROP_CORNERS];

    for (int64_t row = 0; row < s->crop; row++) {
        struct crop_sample y =
            crop_sample_at(box_at[0], box_at[2], s->height, s->crop, row);

        for (int64_t column = 0; column < s->crop && (y.low == h || y.high == h);
             column++) {
            const float *dy =
                crop->dy + ((box * s->crop + row) * s->crop + column) * s->channels;

            crop_corners_find(s, box_at, row, column, pixels, weights);
            for (int corner = 0; corner < CROP_CORNERS; corner++) {
                if ((corner / 2 ? y.high : y.low) != h) {
                    continue;
                }
#pragma omp simd
                for (int64_t c = 0; c < s->channels; c++) {
                    image[pixels[corner] + c] += weights[corner] * dy[c];
                }
            }
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct crop_and_resize_bwd *crop = run->state;
    const struct crop_shape *s = &crop->shape;

#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t i = 0; i < s->images * s->height; i++) {
        float *image = crop->dimage + i / s->height * crop_image_elements(s);
        int64_t h = i % s->height, row = s->width * s->channels;

        memset(image + h * row, 0, (size_t)row * sizeof(float));
        for (int64_t box = 0; box < s->boxes; box++) {
            if (crop->image[box] == i / s->height) {
                box_add_to_row(crop, box, h, image);
            }
        }
    }
}

static void setup(struct run *run)
{
    struct crop_and_resize_bwd *crop = run_host_alloc(sizeof *crop);

    crop_and_resize_bwd_tensors(run, crop);
    run->state = crop;
}

/* The position of a sample point is part of the definition and computed in float32, like
 * the weights: only products and sums are rounded differently here.  A weight has three
 * roundings of its own. */
static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct crop_shape *s = run->size->params;
    const float *boxes = inputs[0].data, *dy = inputs[2].data;
    const int32_t *images = inputs[1].data;
    int64_t pixels[CROP_CORNERS];
    float weights[CROP_CORNERS];
    struct exact_sums exact = sums_begin_counted(run, output, ret_expected, ret_bound);

    for (int64_t i = 0; i < s->boxes * s->crop * s->crop; i++) {
        int64_t box = i / (s->crop * s->crop), at = i % (s->crop * s->crop);

        crop_corners_find(s, boxes + 4 * box, at / s->crop, at % s->crop, pixels,
                          weights);
        for (int64_t j = 0; j < CROP_CORNERS * s->channels; j++) {
            int64_t to = images[box] * crop_image_elements(s) + pixels[j / s->channels] +
                         j % s->channels;

            sums_add(&exact, to,
                     (double)weights[j / s->channels] *
                         dy[i * s->channels + j % s->channels]);
        }
    }
    sums_finish(&exact, 3);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each crop adds to four pixels of the image with atomic adds",
      .models = "TensorFlow's CropAndResizeGradImage on GPU, and on CPU before TF 2.6",
      .algorithm = "scatter, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary =
          "each row of an image has one owner, who goes through the boxes in order",
      .models = "TensorFlow 2.6 on CPU under TF_DETERMINISTIC_OPS; on GPU it raises",
      .algorithm = "owner of an image row, boxes in order",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "image[2,48,48,32] boxes[256,4] dy[256,8,8,32]",
      &(const struct crop_shape){ 2, 48, 48, 32, 256, 8 } },
    { "medium", "image[8,96,96,64] boxes[512,4] dy[512,14,14,64]",
      &(const struct crop_shape){ 8, 96, 96, 64, 512, 14 } },
    { "large", "image[32,200,200,128] boxes[4096,4] dy[4096,14,14,128]",
      &(const struct crop_shape){ 32, 200, 200, 128, 4096, 14 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_ISSUE(42033, "asks for a deterministic gradient of crop_and_resize",
                     "open 2023-07", NULL),
    TENSORFLOW_PR(48905,
                  "raises on GPU when determinism is asked for; deterministic image "
                  "gradient on CPU",
                  "merged 2023-07", "TF 2.6, on CPU"),
    STATUS_2023("crop_and_resize", "crop-and-resize", "non-deterministic on CPU too",
                NULL),
};

static const struct workload crop_and_resize_bwd = {
    .name = "crop_and_resize_bwd",
    .version = 1,
    .title = "tf.image.crop_and_resize backprop",
    .summary = "image gradient of bilinear crops that overlap",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dimage",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(crop_and_resize_bwd);
