/* Gradient of nearest-neighbour resizing; workloads/resize_nearest_bwd.c defines the
 * operation.  `ordered` adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "workloads/resize_nearest_bwd.h"

__host__ __device__ static int64_t dx_elements(const struct nearest_shape *s)
{
    return s->images * s->height * s->width * s->channels;
}

/* One thread an upstream element. */
__global__ static void scatter_kernel(struct resize_nearest_bwd resize)
{
    const struct nearest_shape s = resize.shape;
    int64_t columns = s.width * s.scale;

    KERNEL_FOR(i, dx_elements(&s) * s.scale * s.scale)
    {
        int64_t at = i / s.channels, row = at / columns / s.scale;
        int64_t to = row * s.width + at % columns / s.scale;

        atomicAdd(&resize.dx[to * s.channels + i % s.channels], resize.dy[i]);
    }
}

static void compute_unordered(struct run *run)
{
    const struct resize_nearest_bwd *resize =
        (const struct resize_nearest_bwd *)run->state;
    const struct nearest_shape *s = &resize->shape;

    CUDA_TRY(cudaMemsetAsync(resize->dx, 0, (size_t)dx_elements(s) * sizeof(float)));
    LAUNCH_ITEMS(scatter_kernel, dx_elements(s) * s->scale * s->scale, *resize);
}

/* One thread an element of dx: its block of upstream pixels in row-major order. */
__global__ static void gather_kernel(struct resize_nearest_bwd resize)
{
    const struct nearest_shape s = resize.shape;

    KERNEL_FOR(i, dx_elements(&s))
    {
        int64_t pixel = i / s.channels, row = pixel / s.width, w = pixel % s.width;
        const float *dy = resize.dy + i % s.channels;
        float sum = 0;

        for (int64_t down = 0; down < s.scale; down++) {
            for (int64_t right = 0; right < s.scale; right++) {
                sum += dy[((row * s.scale + down) * s.width * s.scale + w * s.scale +
                           right) *
                          s.channels];
            }
        }
        resize.dx[i] = sum;
    }
}

static void compute_ordered(struct run *run)
{
    const struct resize_nearest_bwd *resize =
        (const struct resize_nearest_bwd *)run->state;

    LAUNCH_ITEMS(gather_kernel, dx_elements(&resize->shape), *resize);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each upstream pixel adds to its pixel with atomicAdd",
      .algorithm = "scatter, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered", .algorithm = "gather, row-major", .compute = compute_ordered },
};

CUDA_TWIN(resize_nearest_bwd, 1, variants, NULL);
