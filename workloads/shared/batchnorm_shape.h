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

/* Mean and inverse standard deviation of a channel, X and every CHANNELS-th value after
 * it, as the forward pass saves them: in float64 and then rounded, since they are
 * inputs. */
REPROD_HD void norm_statistics(const float *x, int64_t rows, int64_t channels,
                               float *ret_mean, float *ret_inv_std)
{
    double sum = 0, squares = 0;

    for (int64_t row = 0; row < rows; row++) {
        double value = x[row * channels];

        sum += value;
        squares += value * value;
    }
    sum /= (double)rows;
    squares = squares / (double)rows - sum * sum;
    *ret_mean = (float)sum;
    *ret_inv_std = (float)(1 / sqrt(squares + NORM_EPSILON));
}

#endif
