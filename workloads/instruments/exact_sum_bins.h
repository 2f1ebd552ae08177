/* Exact sums in two steps, for devices whose threads share memory but no accumulator: on
 * the device, integer bins that any thread adds to in any order; then exact_sum_add_bins.
 *
 * A floating-point value is sign, exponent and significand; a bin for each sign and
 * exponent sums significands, as two parts that each fit an unsigned 32-bit addition for
 * the narrow formats and a 64-bit one for float64.  Integers use bin 0, which sums their
 * low 32 bits and what is above them.  C and CUDA. */
#ifndef WORKLOADS_INSTRUMENTS_EXACT_SUM_BINS_H
#define WORKLOADS_INSTRUMENTS_EXACT_SUM_BINS_H

#include <stdint.h>

#include "workloads/instruments/exact_sum.h"
#include "workloads/instruments/hd.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { EXACT_SUM_BINS_MAX = 4096 };

/* A binary format: a sign, then these. */
struct exact_sum_format {
    int exponent_bits, fraction_bits;
    int split; /* bits of a significand in the low part */
};

/* Which kinds of values were seen, or-ed together. */
enum {
    EXACT_SUM_NEGATIVE_ZERO = 1,
    EXACT_SUM_OTHER = 2, /* anything that is not -0 */
    EXACT_SUM_NAN = 4,
    EXACT_SUM_POSITIVE_INFINITY = 8,
    EXACT_SUM_NEGATIVE_INFINITY = 16
};

/* One value, taken apart. */
struct exact_sum_parts {
    uint32_t bin; /* its sign and exponent */
    uint64_t low, high;
    uint32_t seen;
};

/* BITS is the value, of FORMAT, in the lowest bits. */
REPROD_HD struct exact_sum_parts exact_sum_take_apart(struct exact_sum_format format,
                                                      uint64_t bits)
{
    uint64_t fraction = bits & (((uint64_t)1 << format.fraction_bits) - 1u);
    uint32_t bin = (uint32_t)(bits >> format.fraction_bits);
    uint32_t last = (1u << format.exponent_bits) - 1u;
    uint32_t exponent = bin & last;
    uint64_t significand =
        exponent ? fraction | (uint64_t)1 << format.fraction_bits : fraction;
    struct exact_sum_parts parts = { bin, 0, 0, EXACT_SUM_OTHER };
    if (exponent == last) {
        parts.seen |= fraction      ? EXACT_SUM_NAN
                      : bin == last ? EXACT_SUM_POSITIVE_INFINITY
                                    : EXACT_SUM_NEGATIVE_INFINITY;
        return parts;
    }
    if (bin == last + 1u && fraction == 0) {
        parts.seen = EXACT_SUM_NEGATIVE_ZERO;
    }
    parts.low = significand & (((uint64_t)1 << format.split) - 1u);
    parts.high = significand >> format.split;
    return parts;
}

/* The format of DTYPE, an enum dtype; exponent_bits is 0 for integers. */
struct exact_sum_format exact_sum_format_of(int dtype);

/* Adds what bins of DTYPE hold: LOW and HIGH have one element for each sign and exponent
 * (one for integers, HIGH as two's complement), SEEN is the union over all values. */
void exact_sum_add_bins(struct exact_sum *sum, int dtype, const uint64_t *low,
                        const uint64_t *high, uint32_t seen);

#ifdef __cplusplus
}
#endif

#endif
