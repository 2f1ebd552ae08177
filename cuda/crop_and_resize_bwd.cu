/* Gradient of crop_and_resize; workloads/crop_and_resize_bwd.c defines the operation.
 * `ordered` sorts the terms by pixel where the CPU gives each image row an owner; a pixel
 * adds them in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/sort.h"
#include "workloads/crop_and_resize_bwd.h"

/* A term is one corner of one pixel of a crop; it has a value for each channel. */
struct crop_and_resize_bwd_gpu : crop_and_resize_bwd {
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
__device__ static void terms_find(const struct crop_and_resize_bwd_gpu *crop,
                                  int64_t point, int64_t offsets[CROP_CORNERS],
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
__global__ static void scatter_kernel(struct crop_and_resize_bwd_gpu crop)
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
    const struct crop_and_resize_bwd_gpu *crop =
        (const struct crop_and_resize_bwd_gpu *)run->state;
    const struct crop_shape *s = &crop->shape;

    CUDA_TRY(cudaMemsetAsync(
        crop->dimage, 0, (size_t)(s->images * crop_image_elements(s)) * sizeof(float)));
    LAUNCH_ITEMS(scatter_kernel, point_count(s) * s->channels, *crop);
}

__global__ static void term_kernel(struct crop_and_resize_bwd_gpu crop)
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
__global__ static void gather_kernel(struct crop_and_resize_bwd_gpu crop)
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
    struct crop_and_resize_bwd_gpu *crop = (struct crop_and_resize_bwd_gpu *)run->state;

    LAUNCH_ITEMS(term_kernel, point_count(&crop->shape), *crop);
    sort_rows(&crop->sort, crop->pixels);
    LAUNCH_ITEMS(gather_kernel, crop->sort.destinations * crop->shape.channels, *crop);
}

static void setup(struct run *run)
{
    struct crop_and_resize_bwd_gpu *crop =
        (struct crop_and_resize_bwd_gpu *)run_host_alloc(sizeof *crop);
    const struct crop_shape *s = &crop->shape;
    int64_t terms;

    crop_and_resize_bwd_tensors(run, crop);
    terms = point_count(s) * CROP_CORNERS;
    crop->pixels = run_alloc_i32(run, terms);
    crop->weights = run_alloc_f32(run, terms);
    crop->sort.rows = terms;
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
