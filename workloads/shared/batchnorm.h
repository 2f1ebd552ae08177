/* What the gradients of batch normalization with and without training share: shapes,
 * inputs, and the two sums over images and pixels,
 *   doffset[c] = sum of dy[n,h,w,c]
 *   dscale[c]  = sum of dy[n,h,w,c] * xhat[n,h,w,c],  xhat = (x - mean[c]) * inv_std[c].
 * "Row" is one pixel of one image: all its channels. */
#ifndef WORKLOADS_SHARED_BATCHNORM_H
#define WORKLOADS_SHARED_BATCHNORM_H

#include "workloads/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/shared/batchnorm_shape.h"
#include "workloads/shared/probing.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/tree.h"

enum { NORM_TASK_ROWS = 4 };

struct norm {
    int64_t rows, channels;
    const float *x, *dy, *scale, *mean, *inv_std;
    float *dx;
    float *sums;  /* doffset, then dscale; the outputs get a copy */
    float *parts; /* `sums` for each slot */
    float *doffset, *dscale;
};

enum { NORM_X, NORM_DY, NORM_SCALE, NORM_MEAN, NORM_INV_STD }; /* order of inputs */

static inline float norm_xhat(const struct norm *norm, int64_t row, int64_t c)
{
    return (norm->x[row * norm->channels + c] - norm->mean[c]) * norm->inv_std[c];
}

/* Adds rows [BEGIN, END) to SUMS. */
static inline void norm_rows_add(const struct norm *norm, int64_t begin, int64_t end,
                                 float *sums)
{
    for (int64_t row = begin; row < end; row++) {
        const float *dy = norm->dy + row * norm->channels;

#pragma omp simd
        for (int64_t c = 0; c < norm->channels; c++) {
            sums[c] += dy[c];
            sums[norm->channels + c] += dy[c] * norm_xhat(norm, row, c);
        }
    }
}

/* Every term by an atomic add; inside a parallel region.  Neighbouring tasks go in
 * opposite directions: two threads meet somewhere, and nanoseconds decide where. */
static inline void norm_sums_unordered(const struct norm *norm)
{
    int64_t tasks = (norm->rows + NORM_TASK_ROWS - 1) / NORM_TASK_ROWS;

#pragma omp single
    memset(norm->sums, 0, (size_t)(2 * norm->channels) * sizeof(float));
#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < tasks; task++) {
        for (int64_t row = task * NORM_TASK_ROWS;
             row < (task + 1) * NORM_TASK_ROWS && row < norm->rows; row++) {
            for (int64_t i = 0; i < norm->channels; i++) {
                int64_t c = task % 2 ? norm->channels - 1 - i : i;
                float gradient = norm->dy[row * norm->channels + c];
                float product = gradient * norm_xhat(norm, row, c);

#pragma omp atomic
                norm->sums[c] += gradient;
#pragma omp atomic
                norm->sums[norm->channels + c] += product;
            }
        }
    }
}

/* Fixed groups of rows, joined by the fixed tree; inside a parallel region. */
static inline void norm_sums_ordered(const struct norm *norm)
{
    int64_t stride = 2 * norm->channels;

#pragma omp for schedule(dynamic, 1)
    for (int64_t slot = 0; slot < NORM_SLOTS; slot++) {
        float *part = norm->parts + slot * stride;

        memset(part, 0, (size_t)stride * sizeof(float));
        norm_rows_add(norm, slot * norm->rows / NORM_SLOTS,
                      (slot + 1) * norm->rows / NORM_SLOTS, part);
    }
    tree_join(norm->sums, stride, norm->parts, NORM_SLOTS, stride);
}

static inline void norm_sums_store(const struct norm *norm)
{
    size_t bytes = (size_t)norm->channels * sizeof(float);

    memcpy(norm->doffset, norm->sums, bytes);
    memcpy(norm->dscale, norm->sums + norm->channels, bytes);
}

/* After all stages; DX_READS_SUMS: the gradient of the input depends on the sums. */
static inline void norm_probe(struct run *run, bool dx_reads_sums)
{
    enum { X = 1, DY, SCALE, MEAN, INV_STD, DOFFSET, DSCALE, DX, VALUES };
    static const struct place sums[] = {
        { "gradient/offset", { DY }, { DOFFSET } },
        { "gradient/scale", { X, DY, MEAN, INV_STD }, { DSCALE } },
    };
    static const struct place training = {
        "input/backward", { X, DY, SCALE, MEAN, INV_STD, DOFFSET, DSCALE }, { DX }
    };
    static const struct place frozen = { "input/backward",
                                         { DY, SCALE, INV_STD },
                                         { DX } };
    const struct norm *norm = (const struct norm *)run->state;
    int64_t channels = norm->channels, elements = norm->rows * channels;
    const struct probe_value values[VALUES] = {
        [X] = probe_floats("x", norm->x, elements),
        [DY] = probe_floats("dy", norm->dy, elements),
        [SCALE] = probe_floats("scale", norm->scale, channels),
        [MEAN] = probe_floats("mean", norm->mean, channels),
        [INV_STD] = probe_floats("inv_std", norm->inv_std, channels),
        [DOFFSET] = probe_floats("doffset", norm->doffset, channels),
        [DSCALE] = probe_floats("dscale", norm->dscale, channels),
        [DX] = probe_floats("dx", norm->dx, elements),
    };

    if (run_probing(run, 0)) {
        places_probe(run, 0, values, sums, COUNT_OF(sums));
        places_probe(run, 0, values, dx_reads_sums ? &training : &frozen, 1);
    }
}

/* One iteration.  ROWS_FINISH computes dx, for all threads of a team, when the sums are
 * there. */
static inline void norm_compute(struct run *run, bool ordered,
                                void (*rows_finish)(const struct norm *norm),
                                bool dx_reads_sums)
{
    const struct norm *norm = (const struct norm *)run->state;

#pragma omp parallel num_threads(run->threads)
    {
        if (ordered) {
            norm_sums_ordered(norm);
        } else {
            norm_sums_unordered(norm);
        }
        rows_finish(norm);
    }
    norm_sums_store(norm);
    norm_probe(run, dx_reads_sums);
}

static inline void norm_setup(struct run *run)
{
    const struct norm_shape *s = run->size->params;
    struct norm *norm = run_host_alloc(sizeof *norm);
    int64_t shape[] = { s->images, s->height, s->width, s->channels };
    const int64_t *channels = &shape[3];
    size_t bytes = (size_t)s->channels * sizeof(float);
    float *mean = run_host_alloc(bytes), *inv_std = run_host_alloc(bytes);

    norm->rows = s->images * s->height * s->width;
    norm->channels = s->channels;
    norm->x = run_input_f32(run, "x", 4, shape, FILL_UNIFORM);
    norm->dy = run_input_f32(run, "dy", 4, shape, FILL_WIDE);
    norm->scale = run_input_f32(run, "scale", 1, channels, FILL_UNIFORM);
    for (int64_t c = 0; c < norm->channels; c++) {
        norm_statistics(norm->x + c, norm->rows, norm->channels, &mean[c], &inv_std[c]);
    }
    norm->mean = run_values_f32(run, "mean", 1, channels, mean);
    norm->inv_std = run_values_f32(run, "inv_std", 1, channels, inv_std);
    free(mean);
    free(inv_std);
    norm->dx = run_output_f32(run, "dx", 4, shape);
    norm->doffset = run_output_f32(run, "doffset", 1, channels);
    norm->dscale = run_output_f32(run, "dscale", 1, channels);
    norm->sums = run_alloc(run, 2 * bytes);
    norm->parts = run_alloc(run, NORM_SLOTS * 2 * bytes);
    run->state = norm;
}

/* The sums of channel C, and how far rounding may take them: for doffset n - 1 additions,
 * for dscale three more roundings a term. */
struct norm_sums {
    double doffset, dscale, doffset_bound, dscale_bound;
};

static inline double norm_reference_xhat(const struct tensor *inputs, int64_t i)
{
    const float *x = inputs[NORM_X].data, *mean = inputs[NORM_MEAN].data;
    const float *inv_std = inputs[NORM_INV_STD].data;
    int64_t c = i % inputs[NORM_MEAN].shape[0];

    return ((double)x[i] - mean[c]) * inv_std[c];
}

static inline struct norm_sums norm_reference_sums(const struct run *run,
                                                   const struct tensor *inputs, int64_t c)
{
    const float *dy = inputs[NORM_DY].data;
    int64_t elements = tensor_elements(&inputs[NORM_X]);
    int64_t channels = inputs[NORM_MEAN].shape[0];
    struct norm_sums sums = { 0, 0, 0, 0 };

    for (int64_t i = c; i < elements; i += channels) {
        double product = dy[i] * norm_reference_xhat(inputs, i);

        sums.doffset += dy[i];
        sums.dscale += product;
        sums.doffset_bound += fabs((double)dy[i]);
        sums.dscale_bound += fabs(product);
    }
    sums.doffset_bound *= rounding_gamma(run->dtype, elements / channels);
    sums.dscale_bound *= rounding_gamma(run->dtype, elements / channels + 3);
    return sums;
}

/* For `reference` hooks: channel C of doffset or dscale, whichever OUTPUT is. */
static inline void norm_reference_channel(const struct run *run,
                                          const struct tensor *inputs,
                                          const struct tensor *output, int64_t c,
                                          double *ret_expected, double *ret_bound)
{
    struct norm_sums sums = norm_reference_sums(run, inputs, c);
    bool offset = strcmp(output->name, "doffset") == 0;

    ret_expected[c] = offset ? sums.doffset : sums.dscale;
    ret_bound[c] = offset ? sums.doffset_bound : sums.dscale_bound;
}

static const struct workload_size norm_sizes[] = {
    { "small", "x[12,14,14,256] dy[12,14,14,256]",
      &(const struct norm_shape){ 12, 14, 14, 256 } },
    { "medium", "x[64,28,28,256] dy[64,28,28,256]",
      &(const struct norm_shape){ 64, 28, 28, 256 } },
    { "large", "x[128,56,56,256] dy[128,56,56,256]",
      &(const struct norm_shape){ 128, 56, 56, 256 } },
};

#endif
