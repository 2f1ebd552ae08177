/* Exact sums.  The accumulator is one fixed-point integer wide enough for any sum of any
 * number (below 2^62) of values of any dtype, so nothing is rounded until the end and the
 * result depends on the values alone, never on their order, on chunks or on threads.
 * Method: Neal, "Fast exact summation using small and large superaccumulators", 2015;
 * narrow formats are first summed in one integer bin for each sign and exponent.
 *
 * The caller owns the storage; fields are private to exact_sum*.c.  One accumulator
 * serves one thread; threads have their own and merge. */
#ifndef WORKLOADS_INSTRUMENTS_EXACT_SUM_H
#define WORKLOADS_INSTRUMENTS_EXACT_SUM_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { EXACT_SUM_LIMBS = 68 };

struct exact_sum {
    /* The sum of limbs[i] * 2^(32 i - 1074), the smallest subnormal being 2^-1074.  Limbs
     * are in [0, 2^32) except the last, which carries the sign. */
    int64_t limbs[EXACT_SUM_LIMBS];
    bool nan, positive_infinity, negative_infinity; /* seen among the values */
    bool negative_zero, other;                      /* seen: -0, anything else */
};

/* The empty sum. */
void exact_sum_init(struct exact_sum *sum);

/* Adds N values of DTYPE (an enum dtype) at DATA, any alignment.  N may be 0. */
void exact_sum_add(struct exact_sum *sum, int dtype, const void *data, int64_t n);

/* Adds what FROM holds to INTO, which may not be FROM. */
void exact_sum_merge(struct exact_sum *into, const struct exact_sum *from);

/* The sum, correctly rounded to binary64, ties to even:
 *   a NaN among the values, or +Inf and -Inf: the quiet NaN 0x7ff8000000000000;
 *   infinities of one sign: that infinity;
 *   a finite sum whose rounding overflows: an infinity of its sign (sums that pass beyond
 *   the range on the way and come back are finite);
 *   values that are all -0, at least one: -0; any other zero sum, and the empty one: +0.
 */
double exact_sum_round(const struct exact_sum *sum);

/* For exact_sum_bins.c.  Positions count bits above 2^-1074; this is that of the unit. */
enum { EXACT_SUM_UNIT = 1074 };

#pragma GCC visibility push(hidden)

/* Adds MAGNITUDE * 2^(POSITION - 1074), negated if NEGATIVE, where POSITION is less than
 * 2112.  At most 2^20 calls between two carries. */
void exact_sum_deposit(struct exact_sum *sum, bool negative, uint64_t magnitude,
                       int position);

/* Brings the limbs back into their ranges.  Shifting a negative integer right is
 * arithmetic with the compilers served (gcc, clang), and used. */
void exact_sum_carry(struct exact_sum *sum);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
