#include "workloads/instruments/exact_sum_bins.h"

#include <stdlib.h>

#include "workloads/workload.h"

struct exact_sum_format exact_sum_format_of(int dtype)
{
    switch ((enum dtype)dtype) {
    case DTYPE_FLOAT32:
        return (struct exact_sum_format){ 8, 23, 12 };
    case DTYPE_FLOAT64:
        return (struct exact_sum_format){ 11, 52, 32 };
    case DTYPE_FLOAT16:
        return (struct exact_sum_format){ 5, 10, 12 };
    case DTYPE_BFLOAT16:
        return (struct exact_sum_format){ 8, 7, 12 };
    case DTYPE_INT32:
    case DTYPE_INT64:
    case DTYPE_UINT8:
        return (struct exact_sum_format){ 0 };
    case DTYPE_COUNT:
        break;
    }
    abort(); /* as in exact_sum.c */
}

static void add_integers(struct exact_sum *sum, uint64_t low, uint64_t high)
{
    int64_t above = (int64_t)high;

    exact_sum_deposit(sum, false, low, EXACT_SUM_UNIT);
    exact_sum_deposit(sum, above < 0, above < 0 ? -high : high, EXACT_SUM_UNIT + 32);
}

/* A significand of exponent 0 or 1 is a multiple of the smallest subnormal. */
static void add_bin(struct exact_sum *sum, struct exact_sum_format format, int bin,
                    uint64_t low, uint64_t high)
{
    int last = (1 << format.exponent_bits) - 1, exponent = bin & last;
    int bias = last >> 1;
    int position =
        EXACT_SUM_UNIT + 1 - bias - format.fraction_bits + (exponent ? exponent - 1 : 0);

    exact_sum_deposit(sum, bin > last, low, position);
    exact_sum_deposit(sum, bin > last, high, position + format.split);
}

void exact_sum_add_bins(struct exact_sum *sum, int dtype, const uint64_t *low,
                        const uint64_t *high, uint32_t seen)
{
    struct exact_sum_format format = exact_sum_format_of(dtype);
    int last = (1 << format.exponent_bits) - 1;

    if (format.exponent_bits == 0) {
        add_integers(sum, low[0], high[0]);
    }
    for (int bin = 0; format.exponent_bits && bin <= 2 * last + 1; bin++) {
        if ((bin & last) != last) {
            add_bin(sum, format, bin, low[bin], high[bin]);
        }
    }
    exact_sum_carry(sum);
    sum->negative_zero |= (seen & EXACT_SUM_NEGATIVE_ZERO) != 0;
    sum->other |= (seen & EXACT_SUM_OTHER) != 0;
    sum->nan |= (seen & EXACT_SUM_NAN) != 0;
    sum->positive_infinity |= (seen & EXACT_SUM_POSITIVE_INFINITY) != 0;
    sum->negative_infinity |= (seen & EXACT_SUM_NEGATIVE_INFINITY) != 0;
}
