/* exp and log whose bits are the same on every backend: basic operations of binary64,
 * which IEEE 754 defines to the last bit, and one rounding to float32.  Those of a C
 * library differ from its next version's, from processor to processor, and from CUDA's.
 * Results are within 0.5001 units in the last place.  C and CUDA. */
#ifndef WORKLOADS_SHARED_EXP_LOG_H
#define WORKLOADS_SHARED_EXP_LOG_H

#include <math.h>
#include <stdint.h>

#include "workloads/instruments/bits.h"
#include "workloads/instruments/hd.h"

#define EXP_LOG_LN2 0x1.62e42fefa39efp-1

/* exp(x) = 2^k exp(r), |r| <= ln(2) / 2, by the series up to r^10. */
REPROD_HD float exp_f32(float x)
{
    double wide = x < -200 ? -200 : x > 200 ? 200 : x, turns, r, sum;
    int64_t k;

    if (x != x) {
        return x;
    }
    turns = wide / EXP_LOG_LN2;
    k = (int64_t)(turns < 0 ? turns - 0.5 : turns + 0.5);
    r = wide - (double)k * EXP_LOG_LN2;
    sum = 1.0 / 362880 + r * (1.0 / 3628800);
    sum = 1.0 / 5040 + r * (1.0 / 40320 + r * sum);
    sum = 1.0 / 120 + r * (1.0 / 720 + r * sum);
    sum = 1.0 / 6 + r * (1.0 / 24 + r * sum);
    sum = 1 + r * (1 + r * (0.5 + r * sum));
    return (float)(sum * f64_from_bits((uint64_t)(k + 1023) << 52));
}

/* The logarithm of X, positive, finite and not subnormal: X = 2^k m, m between sqrt(1/2)
 * and sqrt(2), and log m = 2 artanh s by the series up to s^17. */
REPROD_HD double exp_log_f64(double x)
{
    const uint64_t sqrt_half = 0x3fe6a09e667f3bcd;
    uint64_t above = f64_bits(x) - sqrt_half + (UINT64_C(1024) << 52);
    int64_t k = (int64_t)(above >> 52) - 1024;
    double m = f64_from_bits(f64_bits(x) - ((uint64_t)k << 52));
    double s = (m - 1) / (m + 1), z = s * s, sum;

    sum = 1.0 / 15 + z * (1.0 / 17);
    sum = 1.0 / 11 + z * (1.0 / 13 + z * sum);
    sum = 1.0 / 7 + z * (1.0 / 9 + z * sum);
    sum = 1 + z * (1.0 / 3 + z * (1.0 / 5 + z * sum));
    return (double)k * EXP_LOG_LN2 + 2 * s * sum;
}

REPROD_HD float log_f32(float x)
{
    if (!(x > 0) || x == INFINITY) {
        return x == 0 ? -INFINITY : x > 0 ? x : NAN;
    }
    return (float)exp_log_f64(x);
}

/* log(1 + x). */
REPROD_HD float log1p_f32(float x)
{
    double wide = x;

    if (!(x > -1) || x == INFINITY) {
        return x == -1 ? -INFINITY : x > -1 ? x : NAN;
    }
    if (fabs(wide) < 0x1p-14) {
        return (float)(wide - wide * wide * (0.5 - wide * (1.0 / 3)));
    }
    return (float)exp_log_f64(1 + wide);
}

#endif
