/* Gradients of bilinear sampling; workloads/spatial_sampler_bwd.c defines the operation.
 * `ordered` adds in the CPU's order, so it has the CPU's bits.  cuDNN reads x and dy as
 * (image, channel, …), which setup makes once; every iteration brings dx back. */
#include "cuda/cudnn/gradients.h"
#include "cuda/cudnn/usable.h"
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/layout.h"
#include "cuda/kernels/sort.h"
#include "workloads/spatial_sampler_bwd.h"

struct sampler_gpu : spatial_sampler_bwd {
    int32_t *pixels;      /* the upper left pixel of each sample */
    struct row_sort sort; /* samples by that pixel, in the order of the grid */
    struct cudnn_sampler cudnn;
};

__host__ __device__ static int64_t sample_count(const struct sampler_shape *s)
{
    return s->images * s->samples;
}

__host__ __device__ static int64_t pixel_count(const struct sampler_shape *s)
{
    return s->images * s->height * s->width;
}

/* One thread a channel of a sample. */
__global__ static void scatter_kernel(struct sampler_gpu sampler)
{
    const struct sampler_shape s = sampler.shape;

    KERNEL_FOR(i, sample_count(&s) * s.channels)
    {
        int64_t sample = i / s.channels;
        struct sampler_place place = sampler_place_of(&s, sampler.grid, sample);

        for (int corner = 0; corner < SAMPLER_CORNERS; corner++) {
            atomicAdd(
                &sampler.dx[sampler_corner_index(&s, sample / s.samples, &place, corner) +
                            i % s.channels],
                sampler.dy[i] * sampler_corner_weight(&place, corner));
        }
    }
}

/* The grid's gradient: a sum over the channels of one sample, in order. */
__global__ static void grid_kernel(struct sampler_gpu sampler)
{
    const struct sampler_shape s = sampler.shape;

    KERNEL_FOR(sample, sample_count(&s))
    {
        struct sampler_place place = sampler_place_of(&s, sampler.grid, sample);
        const float *x =
            sampler.x + sampler_corner_index(&s, sample / s.samples, &place, 0);
        const float *below = x + s.width * s.channels;
        const float *dy = sampler.dy + sample * s.channels;
        float along = 0, across = 0;

        for (int64_t c = 0; c < s.channels; c++) {
            float right = x[c + s.channels] - x[c];
            float right_below = below[c + s.channels] - below[c];
            float down = below[c] - x[c];
            float down_right = below[c + s.channels] - x[c + s.channels];

            along += dy[c] * (right * (1 - place.down) + right_below * place.down);
            across += dy[c] * (down * (1 - place.right) + down_right * place.right);
        }
        sampler.dgrid[2 * sample] = along * ((float)(s.width - 1) / 2);
        sampler.dgrid[2 * sample + 1] = across * ((float)(s.height - 1) / 2);
    }
}

static void compute_unordered(struct run *run)
{
    const struct sampler_gpu *sampler = (const struct sampler_gpu *)run->state;
    const struct sampler_shape *s = &sampler->shape;

    CUDA_TRY(cudaMemsetAsync(sampler->dx, 0,
                             (size_t)(pixel_count(s) * s->channels) * sizeof(float)));
    LAUNCH_ITEMS(scatter_kernel, sample_count(s) * s->channels, *sampler);
    LAUNCH_ITEMS(grid_kernel, sample_count(s), *sampler);
}

__global__ static void pixel_kernel(struct sampler_gpu sampler)
{
    const struct sampler_shape s = sampler.shape;

    KERNEL_FOR(sample, sample_count(&s))
    {
        struct sampler_place place = sampler_place_of(&s, sampler.grid, sample);

        sampler.pixels[sample] =
            (int32_t)((sample / s.samples * s.height + place.row) * s.width +
                      place.column);
    }
}

/* One thread a channel of a pixel: the samples of which it is the first corner, then of
 * which it is the second, and so on; each in the order of the grid. */
__global__ static void gather_kernel(struct sampler_gpu sampler)
{
    const struct sampler_shape s = sampler.shape;

    KERNEL_FOR(i, pixel_count(&s) * s.channels)
    {
        int64_t pixel = i / s.channels;
        int64_t row = pixel / s.width % s.height, column = pixel % s.width;
        float sum = 0;

        for (int corner = 0; corner < SAMPLER_CORNERS; corner++) {
            int64_t from = pixel - corner / 2 * s.width - corner % 2;

            if (row < corner / 2 || column < corner % 2) {
                continue;
            }
            for (int32_t at = sampler.sort.starts[from];
                 at < sampler.sort.starts[from + 1]; at++) {
                int64_t sample = sampler.sort.sorted[at];
                struct sampler_place place = sampler_place_of(&s, sampler.grid, sample);

                sum += sampler.dy[sample * s.channels + i % s.channels] *
                       sampler_corner_weight(&place, corner);
            }
        }
        sampler.dx[i] = sum;
    }
}

static void compute_ordered(struct run *run)
{
    struct sampler_gpu *sampler = (struct sampler_gpu *)run->state;
    const struct sampler_shape *s = &sampler->shape;

    LAUNCH_ITEMS(pixel_kernel, sample_count(s), *sampler);
    sort_rows(&sampler->sort, sampler->pixels);
    LAUNCH_ITEMS(gather_kernel, pixel_count(s) * s->channels, *sampler);
    LAUNCH_ITEMS(grid_kernel, sample_count(s), *sampler);
}

static void compute_cudnn(struct run *run)
{
    const struct sampler_gpu *sampler = (const struct sampler_gpu *)run->state;
    const struct sampler_shape *s = &sampler->shape;

    cudnn_sampler_compute(run, &sampler->cudnn);
    layout_transpose(sampler->cudnn.dx, sampler->dx, s->images, s->channels,
                     s->height * s->width);
}

static void cudnn_setup(struct run *run, struct sampler_gpu *sampler)
{
    const struct sampler_shape *s = &sampler->shape;
    struct cudnn_sampler *cudnn = &sampler->cudnn;
    size_t x_bytes = (size_t)(pixel_count(s) * s->channels) * sizeof(float);
    size_t dy_bytes = (size_t)(sample_count(s) * s->channels) * sizeof(float);
    float *x = (float *)run_alloc(run, x_bytes);

    cudnn->images = (int)s->images;
    cudnn->height = (int)s->height;
    cudnn->width = (int)s->width;
    cudnn->channels = (int)s->channels;
    cudnn->samples = (int)s->samples;
    cudnn->x = x;
    cudnn->grid = sampler->grid;
    cudnn->dy = (float *)run_alloc(run, dy_bytes);
    cudnn->dx = (float *)run_alloc(run, x_bytes);
    cudnn->dgrid = sampler->dgrid;
    cudnn_sampler_describe(run, cudnn);
    layout_transpose(sampler->x, x, s->images, s->height * s->width, s->channels);
    layout_transpose(sampler->dy, cudnn->dy, s->images, s->samples, s->channels);
}

static void setup(struct run *run)
{
    struct sampler_gpu *sampler = (struct sampler_gpu *)run_host_alloc(sizeof *sampler);

    spatial_sampler_bwd_tensors(run, sampler);
    run->state = sampler;
    if (run->variant->compute == compute_cudnn) {
        cudnn_setup(run, sampler);
        return;
    }
    sampler->pixels = run_alloc_i32(run, sample_count(&sampler->shape));
    sampler->sort.rows = sample_count(&sampler->shape);
    sampler->sort.destinations = pixel_count(&sampler->shape);
    sort_init(run, &sampler->sort);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each sample adds to four pixels with atomicAdd",
      .models = "cudnnSpatialTfSamplerBackward, which has no deterministic algorithm: "
                "its operation as a kernel of ours",
      .algorithm = "scatter, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "stable counting sort, gather",
      .compute = compute_ordered },
    { .name = "cudnn",
      .summary = "cuDNN's sampler itself, which has one algorithm",
      .models = "cudnnSpatialTfSamplerBackward, listed by cuDNN as not reproducible",
      .algorithm = "cudnnSpatialTfSamplerBackward, NCHW, no workspace",
      .claim = "non-deterministic",
      .compute = compute_cudnn,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
};

CUDA_TWIN(spatial_sampler_bwd, 1, variants, setup);
