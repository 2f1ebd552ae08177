/* What the gradients of batch normalization with and without training share: the twin of
 * workloads/shared/batchnorm.h, which defines the operation. */
#ifndef CUDA_KERNELS_BATCHNORM_H
#define CUDA_KERNELS_BATCHNORM_H

#include "cuda/kernels/channel_sums.h"
#include "workloads/shared/batchnorm_shape.h"

#include <stdlib.h>

static_assert((int)NORM_SLOTS == (int)CHANNEL_SLOTS, "the CPU's order");

struct norm : channel_sums {
    const float *scale;
    float *dx;
};

__global__ static void norm_statistics_kernel(struct norm norm)
{
    KERNEL_FOR(c, norm.channels)
    {
        norm_statistics(norm.x + c, norm.rows, norm.channels, &norm.parts[c],
                        &norm.parts[norm.channels + c]);
    }
}

/* Statistics of x, which is in the memory of the device; parts is free to hold them. */
static inline void norm_make_statistics(struct run *run, struct norm *norm)
{
    size_t bytes = (size_t)norm->channels * sizeof(float);
    float *host = (float *)run_host_alloc(2 * bytes);

    LAUNCH_ITEMS(norm_statistics_kernel, norm->channels, *norm);
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
