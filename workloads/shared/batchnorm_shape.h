/* What both backends of batchnorm_bwd and batchnorm_freeze_bwd share. */
#ifndef WORKLOADS_SHARED_BATCHNORM_SHAPE_H
#define WORKLOADS_SHARED_BATCHNORM_SHAPE_H

#include <math.h>
#include <stdint.h>

#include "workloads/instruments/hd.h"

/* `ordered`: so many groups of rows. */
enum { NORM_SLOTS = 64 };

/* Added to the variance. */
#define NORM_EPSILON 1e-3

struct norm_shape {
    int64_t images, height, width, channels;
};

/* Mean and inverse standard deviation of ROWS values with this SUM and these SQUARES, as
 * the forward pass saves them: in float64 and then rounded, since they are inputs. */
REPROD_HD void norm_statistics_of(double sum, double squares, int64_t rows,
                                  float *ret_mean, float *ret_inv_std)
{
    double mean = sum / (double)rows;
    double variance = squares / (double)rows - mean * mean;

    *ret_mean = (float)mean;
    *ret_inv_std = (float)(1 / sqrt(variance + NORM_EPSILON));
}

/* Those of a channel, X and every CHANNELS-th value after it.  Both sums are added in
 * order of rows, on every backend: a serial chain, of which each channel has its own. */
REPROD_HD void norm_statistics(const float *x, int64_t rows, int64_t channels,
                               float *ret_mean, float *ret_inv_std)
{
    double sum = 0, squares = 0;

    for (int64_t row = 0; row < rows; row++) {
        double value = x[row * channels];

        sum += value;
        squares += value * value;
    }
    norm_statistics_of(sum, squares, rows, ret_mean, ret_inv_std);
}

#endif
