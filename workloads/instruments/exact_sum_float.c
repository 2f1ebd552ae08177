/* float32 and the 16-bit formats: one 64-bit bin for each sign and exponent. */
#include <string.h>

#include "workloads/instruments/exact_sum_limbs.h"

/* The loops below are written once for all formats and are fast only where the format is
 * a constant of the loop. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Neighbours go to different tables: equal exponents in a row do not wait for memory. */
enum { TABLES = 4, BINS_MAX = 512 };

/* A bin: how many values, in the bits from this one up, and the sum of their fractions. A
 * bin takes 2^17 fractions of 23 bits; the first table also gets the last few values. */
enum { BIN_COUNT_SHIFT = 40 };
_Static_assert(EXACT_SUM_CHUNK / TABLES + TABLES <= 1 << (BIN_COUNT_SHIFT - 23),
               "bins overflow");

/* A binary format: a sign, then these; a subnormal is a multiple of 2^(POSITION - 1074).
 */
struct format {
    unsigned exponent_bits, fraction_bits;
    int position;
};

static const struct format FLOAT32 = { 8, 23, 1074 - 149 };
static const struct format BFLOAT16 = { 8, 7, 1074 - 133 };
static const struct format FLOAT16 = { 5, 10, 1074 - 24 };

typedef uint32_t load_fn(const unsigned char *data, int64_t i);

static ALWAYS_INLINE uint32_t load_32(const unsigned char *data, int64_t i)
{
    uint32_t bits;

    memcpy(&bits, data + 4 * i, sizeof bits);
    return bits;
}

static ALWAYS_INLINE uint32_t load_16(const unsigned char *data, int64_t i)
{
    uint16_t bits;

    memcpy(&bits, data + 2 * i, sizeof bits);
    return bits;
}

static ALWAYS_INLINE void fill_bin(uint64_t *bins, uint32_t bits, struct format format)
{
    uint32_t fraction = bits & ((1u << format.fraction_bits) - 1u);

    bins[bits >> format.fraction_bits] += (uint64_t)1 << BIN_COUNT_SHIFT | fraction;
}

/* Takes over COUNT > 0 values of one sign and exponent whose fractions sum to FRACTIONS.
 */
static void empty_bin(struct exact_sum *sum, struct format format, bool negative,
                      unsigned exponent, uint64_t count, uint64_t fractions)
{
    bool is_last = exponent == (1u << format.exponent_bits) - 1u;

    exact_sum_note(sum, negative, exponent == 0, is_last, fractions != 0);
    if (is_last)
        return;
    if (exponent == 0)
        exact_sum_deposit(sum, negative, fractions, format.position);
    else
        exact_sum_deposit(sum, negative, fractions + (count << format.fraction_bits),
                          format.position + (int)exponent - 1);
}

static void empty_bins(struct exact_sum *sum, uint64_t bins[TABLES][BINS_MAX],
                       struct format format)
{
    unsigned exponents = 1u << format.exponent_bits;
    uint64_t fraction_mask = ((uint64_t)1 << BIN_COUNT_SHIFT) - 1;

    for (unsigned bin = 0; bin < 2 * exponents; bin++) {
        uint64_t count = 0, fractions = 0;

        for (int table = 0; table < TABLES; table++) {
            count += bins[table][bin] >> BIN_COUNT_SHIFT;
            fractions += bins[table][bin] & fraction_mask;
        }
        if (count)
            empty_bin(sum, format, bin >= exponents, bin % exponents, count, fractions);
    }
}

static ALWAYS_INLINE void add_bins(struct exact_sum *sum, const unsigned char *data,
                                   int64_t n, struct format format, load_fn *load)
{
    uint64_t bins[TABLES][BINS_MAX] = { { 0 } };
    int64_t i = 0;

    for (; i + TABLES <= n; i += TABLES) {
        fill_bin(bins[0], load(data, i), format);
        fill_bin(bins[1], load(data, i + 1), format);
        fill_bin(bins[2], load(data, i + 2), format);
        fill_bin(bins[3], load(data, i + 3), format);
    }
    for (; i < n; i++)
        fill_bin(bins[0], load(data, i), format);
    empty_bins(sum, bins, format);
}

void exact_sum_add_float32(struct exact_sum *sum, const void *data, int64_t n)
{
    add_bins(sum, data, n, FLOAT32, load_32);
}

void exact_sum_add_bfloat16(struct exact_sum *sum, const void *data, int64_t n)
{
    add_bins(sum, data, n, BFLOAT16, load_16);
}

void exact_sum_add_float16(struct exact_sum *sum, const void *data, int64_t n)
{
    add_bins(sum, data, n, FLOAT16, load_16);
}
