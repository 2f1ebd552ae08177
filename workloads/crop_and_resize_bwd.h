/* What both backends of crop_and_resize_bwd share: where samples lie, and the boxes,
 * which both make on the host. */
#ifndef WORKLOADS_CROP_AND_RESIZE_BWD_H
#define WORKLOADS_CROP_AND_RESIZE_BWD_H

#include <stdint.h>
#include <stdlib.h>

#include "workloads/instruments/hd.h"
#include "workloads/instruments/philox.h"
#include "workloads/workload.h"

enum { CROP_CORNERS = 4 };

struct crop_shape {
    int64_t images, height, width, channels;
    int64_t boxes, crop;
};

/* A sample point: the pixels around it (top, bottom or left, right) along one axis. */
struct crop_sample {
    int64_t low, high;
    float weight; /* of high; 1 - weight: of low */
};

/* Step STEP of CROP along an axis of EXTENT pixels, in a box from BEGIN to END. */
REPROD_HD struct crop_sample crop_sample_at(float begin, float end, int64_t extent,
                                            int64_t crop, int64_t step)
{
    float scale = (end - begin) * (float)(extent - 1) / (float)(crop - 1);
    float at = begin * (float)(extent - 1) + (float)step * scale;
    struct crop_sample sample = { (int64_t)at, 0, 0 };

    sample.high = sample.low + 1 < extent ? sample.low + 1 : sample.low;
    sample.weight = at - (float)sample.low;
    return sample;
}

/* The four pixels (as offsets into the image's data) under row ROW and column COLUMN of
 * the crop of box BOX, and their weights. */
REPROD_HD void crop_corners_find(const struct crop_shape *shape, const float *box,
                                 int64_t row, int64_t column, int64_t *ret_pixels,
                                 float *ret_weights)
{
    struct crop_sample y =
        crop_sample_at(box[0], box[2], shape->height, shape->crop, row);
    struct crop_sample x =
        crop_sample_at(box[1], box[3], shape->width, shape->crop, column);

    for (int corner = 0; corner < CROP_CORNERS; corner++) {
        int64_t h = corner / 2 ? y.high : y.low, w = corner % 2 ? x.high : x.low;

        ret_pixels[corner] = (h * shape->width + w) * shape->channels;
        ret_weights[corner] = (corner / 2 ? y.weight : 1 - y.weight) *
                              (corner % 2 ? x.weight : 1 - x.weight);
    }
}

REPROD_HD int64_t crop_image_elements(const struct crop_shape *shape)
{
    return shape->height * shape->width * shape->channels;
}

/* Both corners of every box lie within the image, the first above and left of the second:
 * in the first and in the last four tenths. */
static inline void crop_boxes_fill(const struct run *run, int64_t count, float *boxes)
{
    uint64_t stream = philox_stream(run->seed, run->workload->name, "boxes");

    for (int64_t i = 0; i < 4 * count; i++) {
        float uniform = philox_uniform_f32(run->seed, stream, (uint64_t)i);

        boxes[i] = (i % 4 < 2 ? 0.2F : 0.75F) + 0.2F * uniform;
    }
}

/* The state of a run; a GPU has other scratch memory. */
struct crop_and_resize_bwd {
    struct crop_shape shape;
    const float *boxes;   /* [boxes][4]: y1, x1, y2, x2, as fractions of the image */
    const int32_t *image; /* [boxes] */
    const float *dy;      /* [boxes][crop][crop][channels] */
    float *dimage;
};

/* Makes the inputs and outputs. */
static inline void crop_and_resize_bwd_tensors(struct run *run,
                                               struct crop_and_resize_bwd *crop)
{
    const struct crop_shape *s = (const struct crop_shape *)run->size->params;
    int64_t boxes_shape[] = { s->boxes, 4 };
    int64_t dy_shape[] = { s->boxes, s->crop, s->crop, s->channels };
    int64_t image_shape[] = { s->images, s->height, s->width, s->channels };
    float *boxes = (float *)run_host_alloc((size_t)(4 * s->boxes) * sizeof *boxes);

    crop_boxes_fill(run, s->boxes, boxes);
    crop->shape = *s;
    crop->boxes = run_values_f32(run, "boxes", 2, boxes_shape, boxes);
    crop->image = run_input_i32(run, "box_images", 1, boxes_shape, s->images);
    crop->dy = run_input_f32(run, "dy", 4, dy_shape, FILL_WIDE);
    crop->dimage = run_output_f32(run, "dimage", 4, image_shape);
    free(boxes);
}

#endif
