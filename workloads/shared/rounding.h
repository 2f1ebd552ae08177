/* Rounding-error bounds for the `reference` hooks.
 *
 * Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1
 * and 4.2.  The computed sum of n products (or of n terms), added in any order and with
 * any grouping, differs from the exact one by at most gamma_n * sum |terms|, where
 * gamma_n = n*u / (1 - n*u) and u is the unit roundoff.  The bound does not depend on the
 * order, so one bound serves every variant. */
#ifndef WORKLOADS_SHARED_ROUNDING_H
#define WORKLOADS_SHARED_ROUNDING_H

#include "workloads/workload.h"

#include <math.h>

/* Half the distance from 1 to the next larger number of DTYPE; 0 for integers. */
static inline double rounding_unit(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_FLOAT32:
        return 0x1p-24;
    case DTYPE_FLOAT64:
        return 0x1p-53;
    case DTYPE_FLOAT16:
        return 0x1p-11;
    case DTYPE_BFLOAT16:
        return 0x1p-8;
    default:
        return 0;
    }
}

/* gamma_n for N terms; INFINITY where the theory says nothing (n*u >= 1).  One term is
 * added for the rounding of the float64 reference itself. */
static inline double rounding_gamma(enum dtype dtype, int64_t n)
{
    double nu = (double)(n + 1) * rounding_unit(dtype);

    return nu < 1 ? nu / (1 - nu) : INFINITY;
}

#endif
