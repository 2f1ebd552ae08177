/* float64: a pair of bins for each sign and exponent, as a fraction and a count do not
 * fit 64 bits. */
#include <string.h>

#include "workloads/instruments/exact_sum_limbs.h"

enum { EXPONENTS = 2048 };

/* Neighbours go to different tables: equal exponents in a row do not wait for memory. */
enum { TABLES = 2 };

/* The values of one sign and exponent: LOW sums the fractions' lower 32 bits; HIGH their
 * upper 20 bits and, from bit 40 up, how many values there are. */
struct bin {
    uint64_t low, high;
};

enum { COUNT_SHIFT = 40 };
_Static_assert(EXACT_SUM_CHUNK <= 1 << (COUNT_SHIFT - 20), "bins overflow");

static inline void fill_bin(struct bin *bins, const unsigned char *value)
{
    uint64_t bits;

    memcpy(&bits, value, sizeof bits);
    struct bin *bin = &bins[bits >> 52];
    bin->low += (uint32_t)bits;
    bin->high += (uint64_t)1 << COUNT_SHIFT | (bits >> 32 & 0xfffffu);
}

/* Takes over the values in BIN, which is not empty. */
static void empty_bin(struct exact_sum *sum, bool negative, int exponent, struct bin bin)
{
    uint64_t count = bin.high >> COUNT_SHIFT;
    uint64_t high = bin.high & (((uint64_t)1 << COUNT_SHIFT) - 1);
    bool fractions = bin.low || high;

    exact_sum_note(sum, negative, exponent == 0, exponent == EXPONENTS - 1, fractions);
    if (exponent == EXPONENTS - 1)
        return;
    int position = exponent ? exponent - 1 : 0;
    if (exponent)
        high += count << 20;
    exact_sum_deposit(sum, negative, bin.low, position);
    exact_sum_deposit(sum, negative, high, position + 32);
}

void exact_sum_add_float64(struct exact_sum *sum, const void *data, int64_t n)
{
    struct bin bins[TABLES][2 * EXPONENTS];
    const unsigned char *at = data;

    memset(bins, 0, sizeof bins);
    for (int64_t i = 0; i + 1 < n; i += 2) {
        fill_bin(bins[0], at + 8 * i);
        fill_bin(bins[1], at + 8 * i + 8);
    }
    if (n % 2)
        fill_bin(bins[0], at + 8 * (n - 1));
    for (int i = 0; i < 2 * EXPONENTS; i++) {
        struct bin bin = { bins[0][i].low + bins[1][i].low,
                           bins[0][i].high + bins[1][i].high };

        if (bin.high)
            empty_bin(sum, i >= EXPONENTS, i % EXPONENTS, bin);
    }
}
