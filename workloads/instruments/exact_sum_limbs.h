/* How exact_sum*.c reach the accumulator of exact_sum.h.  Private to them.  Shifting a
 * negative integer right is arithmetic with the compilers served (gcc, clang), and used.
 */
#ifndef WORKLOADS_INSTRUMENTS_EXACT_SUM_LIMBS_H
#define WORKLOADS_INSTRUMENTS_EXACT_SUM_LIMBS_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/instruments/exact_sum.h"

/* Position, in bits above 2^-1074, of the unit 2^0. */
enum { EXACT_SUM_UNIT = 1074 };

#pragma GCC visibility push(hidden)

/* The functions below take at most so many values at a time.  Their method: for each sign
 * and exponent a bin sums fractions and counts values, an addition or two a value without
 * shifts or branches; then each bin's total is deposited.  The count supplies the
 * implicit bits, and tells values with fraction 0 from no values. */
enum { EXACT_SUM_CHUNK = 1 << 18 };

/* Add N values and leave the limbs to be carried. */
void exact_sum_add_float32(struct exact_sum *sum, const void *data, int64_t n);
void exact_sum_add_bfloat16(struct exact_sum *sum, const void *data, int64_t n);
void exact_sum_add_float16(struct exact_sum *sum, const void *data, int64_t n);
void exact_sum_add_float64(struct exact_sum *sum, const void *data, int64_t n);

/* Adds MAGNITUDE * 2^(POSITION - 1074), negated if NEGATIVE, where POSITION is less than
 * 2112.  At most 2^20 calls between two carries. */
void exact_sum_deposit(struct exact_sum *sum, bool negative, uint64_t magnitude,
                       int position);

/* Notes which kinds of values a bin has: those of one sign whose exponent field is
 * IS_FIRST (all zeros), IS_LAST (all ones) or between; FRACTIONS if any fraction was not
 * 0.
 */
void exact_sum_note(struct exact_sum *sum, bool negative, bool is_first, bool is_last,
                    bool fractions);

/* Brings the limbs back into their ranges. */
void exact_sum_carry(struct exact_sum *sum);

#pragma GCC visibility pop

#endif
