/* Gradient of bilinear resizing; workloads/resize_bilinear_bwd.c defines the operation.
 * `ordered` adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "workloads/resize_bilinear_bwd.h"

__host__ __device__ static int64_t dx_elements(const struct bilinear_shape *s)
{
    return s->images * s->height * s->width * s->channels;
}

/* One thread an upstream element. */
__global__ static void scatter_kernel(struct resize_bilinear_bwd resize)
{
    const struct bilinear_shape s = resize.shape;
    int64_t rows = s.height * s.scale, columns = s.width * s.scale;

    KERNEL_FOR(i, dx_elements(&s) * s.scale * s.scale)
    {
        int64_t at = i / s.channels, image = at / columns / rows;
        struct bilinear_source row =
            bilinear_source_of(at / columns % rows, s.scale, s.height);
        struct bilinear_source column =
            bilinear_source_of(at % columns, s.scale, s.width);
        float *dx = resize.dx + image * s.height * s.width * s.channels + i % s.channels;
        float *lower = dx + row.lower * s.width * s.channels;
        float *upper = dx + row.upper * s.width * s.channels;
        int64_t left = column.lower * s.channels, right = column.upper * s.channels;
        float dy = resize.dy[i];

        atomicAdd(lower + left, dy * ((1 - row.lerp) * (1 - column.lerp)));
        atomicAdd(lower + right, dy * ((1 - row.lerp) * column.lerp));
        atomicAdd(upper + left, dy * (row.lerp * (1 - column.lerp)));
        atomicAdd(upper + right, dy * (row.lerp * column.lerp));
    }
}

static void compute_unordered(struct run *run)
{
    const struct resize_bilinear_bwd *resize =
        (const struct resize_bilinear_bwd *)run->state;
    const struct bilinear_shape *s = &resize->shape;

    CUDA_TRY(cudaMemsetAsync(resize->dx, 0, (size_t)dx_elements(s) * sizeof(float)));
    LAUNCH_ITEMS(scatter_kernel, dx_elements(s) * s->scale * s->scale, *resize);
}

/* One thread an element of dx: the upstream pixels that touch it, in row-major order. */
__global__ static void gather_kernel(struct resize_bilinear_bwd resize)
{
    const struct bilinear_shape s = resize.shape;
    int64_t columns = s.width * s.scale;

    KERNEL_FOR(i, dx_elements(&s))
    {
        int64_t pixel = i / s.channels, w = pixel % s.width;
        int64_t h = pixel / s.width % s.height, image = pixel / s.width / s.height;
        int64_t end_row = bilinear_touch_end(h, s.scale, s.height);
        int64_t end_column = bilinear_touch_end(w, s.scale, s.width);
        const float *dy = resize.dy + i % s.channels +
                          image * s.height * s.scale * columns * s.channels;
        float sum = 0;

        for (int64_t row = bilinear_touch_first(h, s.scale); row < end_row; row++) {
            struct bilinear_source down = bilinear_source_of(row, s.scale, s.height);
            float row_share = bilinear_share(&down, h);

            for (int64_t column = bilinear_touch_first(w, s.scale); column < end_column;
                 column++) {
                struct bilinear_source right =
                    bilinear_source_of(column, s.scale, s.width);

                sum += dy[(row * columns + column) * s.channels] *
                       (row_share * bilinear_share(&right, w));
            }
        }
        resize.dx[i] = sum;
    }
}

static void compute_ordered(struct run *run)
{
    const struct resize_bilinear_bwd *resize =
        (const struct resize_bilinear_bwd *)run->state;

    LAUNCH_ITEMS(gather_kernel, dx_elements(&resize->shape), *resize);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each upstream pixel adds to four pixels with atomicAdd",
      .algorithm = "scatter, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered", .algorithm = "gather, row-major", .compute = compute_ordered },
};

CUDA_TWIN(resize_bilinear_bwd, 1, variants, NULL);
