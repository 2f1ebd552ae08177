/* Gradient of crop_and_resize; workloads/crop_and_resize_bwd.c defines the operation.
 * `ordered` sorts the terms by pixel where the CPU gives each image row an owner; a pixel
 * adds them in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/sort.h"
#include "workloads/crop_and_resize_bwd.h"

#include <stdlib.h>

/* A term is one corner of one pixel of a crop; it has a value for each channel. */
struct crop_and_resize_bwd {
    struct crop_shape shape;
    const float *boxes;
    const int32_t *image; /* of each box */
    const float *dy;
    float *dimage;
    int32_t *pixels; /* of each term: where it is added */
    float *weights;  /* of each term */
    struct row_sort sort;
};

/* Pixels of all crops. */
__host__ __device__ static int64_t point_count(const struct crop_shape *s)
{
    return s->boxes * s->crop * s->crop;
}

/* The four terms of pixel POINT of the crops: offsets into dimage, and weights. */
__device__ static void terms_find(const struct crop_and_resize_bwd *crop, int64_t point,
                                  int64_t offsets[CROP_CORNERS],
                                  float weights[CROP_CORNERS])
{
    const struct crop_shape *s = &crop->shape;
    int64_t box = point / (s->crop * s->crop), at = point % (s->crop * s->crop);

    crop_corners_find(s, crop->boxes + 4 * box, at / s->crop, at % s->crop, offsets,
                      weights);
    for (int corner = 0; corner < CROP_CORNERS; corner++) {
        offsets[corner] += crop->image[box] * crop_image_elements(s);
    }
}

/* One thread a channel of a pixel of a crop. */
__global__ static void scatter_kernel(struct crop_and_resize_bwd crop)
{
    int64_t channels = crop.shape.channels;

    KERNEL_FOR(i, point_count(&crop.shape) * channels)
    {
        int64_t offsets[CROP_CORNERS];
        float weights[CROP_CORNERS];

        terms_find(&crop, i / channels, offsets, weights);
        for (int corner = 0; corner < CROP_CORNERS; corner++) {
            atomicAdd(&crop.dimage[offsets[corner] + i % channels],
                      weights[corner] * crop.dy[i]);
        }
    }
}

static void compute_unordered(struct run *run)
{
    const struct crop_and_resize_bwd *crop =
        (const struct crop_and_resize_bwd *)run->state;
    const struct crop_shape *s = &crop->shape;

    CUDA_TRY(cudaMemsetAsync(
        crop->dimage, 0, (size_t)(s->images * crop_image_elements(s)) * sizeof(float)));
    LAUNCH_ITEMS(scatter_kernel, point_count(s) * s->channels, *crop);
}

__global__ static void term_kernel(struct crop_and_resize_bwd crop)
{
    KERNEL_FOR(point, point_count(&crop.shape))
    {
        int64_t offsets[CROP_CORNERS];
        float weights[CROP_CORNERS];

        terms_find(&crop, point, offsets, weights);
        for (int corner = 0; corner < CROP_CORNERS; corner++) {
            int64_t term = point * CROP_CORNERS + corner;

            crop.pixels[term] = (int32_t)(offsets[corner] / crop.shape.channels);
            crop.weights[term] = weights[corner];
        }
    }
}

/* One thread a channel of a pixel of the image: box after box, each from row to row. */
__global__ static void gather_kernel(struct crop_and_resize_bwd crop)
{
    int64_t channels = crop.shape.channels;

    KERNEL_FOR(i, crop.sort.destinations * channels)
    {
        int64_t pixel = i / channels;
        float sum = 0;

        for (int32_t at = crop.sort.starts[pixel]; at < crop.sort.starts[pixel + 1];
             at++) {
            int64_t term = crop.sort.sorted[at];

            sum += crop.weights[term] *
                   crop.dy[term / CROP_CORNERS * channels + i % channels];
        }
        crop.dimage[i] = sum;
    }
}

static void compute_ordered(struct run *run)
{
    struct crop_and_resize_bwd *crop = (struct crop_and_resize_bwd *)run->state;

    LAUNCH_ITEMS(term_kernel, point_count(&crop->shape), *crop);
    sort_rows(&crop->sort, crop->pixels);
    LAUNCH_ITEMS(gather_kernel, crop->sort.destinations * crop->shape.channels, *crop);
}

static void make_inputs(struct run *run, const struct crop_shape *s,
                        struct crop_and_resize_bwd *crop)
{
    int64_t boxes_shape[] = { s->boxes, 4 };
    int64_t dy_shape[] = { s->boxes, s->crop, s->crop, s->channels };
    float *boxes = (float *)run_host_alloc((size_t)(4 * s->boxes) * sizeof *boxes);

    crop_boxes_fill(run, s->boxes, boxes);
    crop->boxes = run_values_f32(run, "boxes", 2, boxes_shape, boxes);
    crop->image = run_input_i32(run, "box_images", 1, boxes_shape, s->images);
    crop->dy = run_input_f32(run, "dy", 4, dy_shape, FILL_WIDE);
    free(boxes);
}

static void setup(struct run *run)
{
    const struct crop_shape *s = (const struct crop_shape *)run->size->params;
    struct crop_and_resize_bwd *crop =
        (struct crop_and_resize_bwd *)run_host_alloc(sizeof *crop);
    int64_t image_shape[] = { s->images, s->height, s->width, s->channels };
    size_t terms = (size_t)(point_count(s) * CROP_CORNERS);

    crop->shape = *s;
    make_inputs(run, s, crop);
    crop->dimage = run_output_f32(run, "dimage", 4, image_shape);
    crop->pixels = (int32_t *)run_alloc(run, terms * sizeof *crop->pixels);
    crop->weights = (float *)run_alloc(run, terms * sizeof *crop->weights);
    crop->sort.rows = (int64_t)terms;
    crop->sort.destinations = s->images * s->height * s->width;
    sort_init(run, &crop->sort);
    run->state = crop;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each crop adds to four pixels of the image with atomicAdd",
      .models = "TensorFlow's CropAndResizeGradImage on GPU: atomicAdd",
      .algorithm = "scatter, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "terms sorted by pixel, stably; each element has one owner",
      .models = "no framework's kernel: TensorFlow raises on GPU from 2.6 on",
      .algorithm = "owner of an image row, boxes in order",
      .compute = compute_ordered },
};

CUDA_TWIN(crop_and_resize_bwd, 1, variants, setup);
