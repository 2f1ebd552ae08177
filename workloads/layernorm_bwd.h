/* What both backends of layernorm_bwd share. */
#ifndef WORKLOADS_LAYERNORM_BWD_H
#define WORKLOADS_LAYERNORM_BWD_H

#include <math.h>
#include <stdint.h>

#include "workloads/instruments/hd.h"

/* `ordered`: so many groups of rows. */
enum { LAYER_SLOTS = 64 };

struct layer_shape {
    int64_t rows, channels;
};

/* Mean and inverse standard deviation of a row of CHANNELS, as the forward pass saves
 * them: in float64 and then rounded, since they are inputs. */
REPROD_HD void layer_statistics(const float *row, int64_t channels, float *ret_mean,
                                float *ret_inv_std)
{
    double sum = 0, squares = 0;

    for (int64_t c = 0; c < channels; c++) {
        double x = row[c];

        sum += x;
        squares += x * x;
    }
    sum /= (double)channels;
    squares = squares / (double)channels - sum * sum;
    *ret_mean = (float)sum;
    *ret_inv_std = (float)(1 / sqrt(squares + 1e-5));
}

#endif
