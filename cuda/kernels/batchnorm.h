/* What the gradients of batch normalization with and without training share: the twin of
 * workloads/shared/batchnorm.h, which defines the operation. */
#ifndef CUDA_KERNELS_BATCHNORM_H
#define CUDA_KERNELS_BATCHNORM_H

#include "cuda/kernels/channel_sums.h"
#include "cuda/kernels/column_sum.h"
#include "workloads/shared/batchnorm_shape.h"

#include <stdlib.h>

static_assert((int)NORM_SLOTS == (int)CHANNEL_SLOTS, "the CPU's order");

struct norm : channel_sums {
    const float *scale;
    float *dx;
};

/* norm_statistics of a warp of channels for each block: it reads the next tile of rows
 * while one warp adds the values of the last and another their squares. */
__global__ static void __launch_bounds__(WARP_LANES *COLUMN_LINES)
    norm_statistics_kernel(struct norm norm)
{
    __shared__ float tile[COLUMN_TILE][WARP_LANES];
    __shared__ double squares[WARP_LANES];
    struct column_sum rows = { norm.rows, norm.channels, norm.x, NULL, NULL };
    int64_t c = (int64_t)blockIdx.x * WARP_LANES + threadIdx.x;
    float share[COLUMN_SHARE];
    double sum = 0;

    column_read(&rows, c, 0, share);
    for (int64_t begin = 0; begin < norm.rows; begin += COLUMN_TILE) {
        column_write(tile, share);
        __syncthreads();
        column_read(&rows, c, begin + COLUMN_TILE, share);
        for (int i = 0; threadIdx.y < 2 && i < COLUMN_TILE; i++) {
            double value = tile[i][threadIdx.x];

            sum += threadIdx.y ? value * value : value;
        }
        __syncthreads();
    }
    if (threadIdx.y == 1) {
        squares[threadIdx.x] = sum;
    }
    __syncthreads();
    if (threadIdx.y == 0 && c < norm.channels) {
        norm_statistics_of(sum, squares[threadIdx.x], norm.rows, &norm.parts[c],
                           &norm.parts[norm.channels + c]);
    }
}

/* Statistics of x, which is in the memory of the device; parts is free to hold them. */
static inline void norm_make_statistics(struct run *run, struct norm *norm)
{
    size_t bytes = (size_t)norm->channels * sizeof(float);
    float *host = (float *)run_host_alloc(2 * bytes);

    LAUNCH(norm_statistics_kernel, (unsigned)ceil_div(norm->channels, WARP_LANES),
           dim3(WARP_LANES, COLUMN_LINES), 0, 0, *norm);
    CUDA_TRY(cudaMemcpy(host, norm->parts, 2 * bytes, cudaMemcpyDeviceToHost));
    norm->mean = run_values_f32(run, "mean", 1, &norm->channels, host);
    norm->inv_std =
        run_values_f32(run, "inv_std", 1, &norm->channels, host + norm->channels);
    free(host);
}

static inline void norm_setup(struct run *run)
{
    const struct norm_shape *s = (const struct norm_shape *)run->size->params;
    struct norm *norm = (struct norm *)run_host_alloc(sizeof *norm);
    int64_t shape[] = { s->images, s->height, s->width, s->channels };
    const int64_t *channels = &shape[3];

    norm->rows = s->images * s->height * s->width;
    norm->channels = s->channels;
    norm->x = run_input_f32(run, "x", 4, shape, FILL_UNIFORM);
    norm->dy = run_input_f32(run, "dy", 4, shape, FILL_WIDE);
    norm->scale = run_input_f32(run, "scale", 1, channels, FILL_UNIFORM);
    norm->parts = run_alloc_f32(run, NORM_SLOTS * 2 * s->channels);
    norm_make_statistics(run, norm);
    norm->dx = run_output_f32(run, "dx", 4, shape);
    norm->doffset = run_output_f32(run, "doffset", 1, channels);
    norm->dscale = run_output_f32(run, "dscale", 1, channels);
    run->state = norm;
}

#endif
