#include "workloads/instruments/exact_sum.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/instruments/bits.h"
#include "workloads/workload.h"

static const uint64_t INFINITY_BITS = 0x7ff0000000000000u;
static const uint64_t NAN_BITS = 0x7ff8000000000000u;
static const uint64_t SIGN_BIT = 0x8000000000000000u;

/* The add_ functions below take at most so many values at a time, and leave the limbs to
 * be carried.  Those of floating-point values have for each sign and exponent a bin,
 * which sums fractions and counts values: an addition or two a value, without shifts or
 * branches.  Then each bin's total is deposited.  The count supplies the implicit bits,
 * and tells values with fraction 0 from no values. */
enum { EXACT_SUM_CHUNK = 1 << 18 };

void exact_sum_init(struct exact_sum *sum)
{
    *sum = (struct exact_sum){ 0 };
}

void exact_sum_carry(struct exact_sum *sum)
{
    for (int i = 0; i < EXACT_SUM_LIMBS - 1; i++) {
        sum->limbs[i + 1] += sum->limbs[i] >> 32;
        sum->limbs[i] &= 0xffffffff;
    }
}

void exact_sum_deposit(struct exact_sum *sum, bool negative, uint64_t magnitude,
                       int position)
{
    int64_t *limb = &sum->limbs[position / 32];
    unsigned shift = (unsigned)position % 32;
    uint64_t low = (magnitude & 0xffffffffu) << shift;
    uint64_t high = (magnitude >> 32) << shift;
    int64_t pieces[3] = { (int64_t)(low & 0xffffffffu),
                          (int64_t)((low >> 32) + (high & 0xffffffffu)),
                          (int64_t)(high >> 32) };

    for (int i = 0; i < 3; i++) {
        limb[i] += negative ? -pieces[i] : pieces[i];
    }
}

/* Notes which kinds of values a bin has: those of one sign whose exponent field is
 * IS_FIRST (all zeros), IS_LAST (all ones) or between; FRACTIONS if any fraction was not
 * 0. */
static void note(struct exact_sum *sum, bool negative, bool is_first, bool is_last,
                 bool fractions)
{
    bool is_negative_zero = negative && is_first && !fractions;

    sum->negative_zero |= is_negative_zero;
    sum->other |= !is_negative_zero;
    sum->nan |= is_last && fractions;
    sum->positive_infinity |= is_last && !fractions && !negative;
    sum->negative_infinity |= is_last && !fractions && negative;
}

/* float32 and the 16-bit formats: one 64-bit bin for each sign and exponent.
 *
 * The loops are written once for all formats and are fast only where the format is a
 * constant of the loop. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Neighbours go to different tables: equal exponents in a row do not wait for memory. */
enum { NARROW_TABLES = 4, NARROW_BINS = 512 };

/* A bin: how many values, in the bits from this one up, and the sum of their fractions. A
 * bin takes 2^17 fractions of 23 bits; the first table also gets the last few values. */
enum { NARROW_COUNT_SHIFT = 40 };
_Static_assert(EXACT_SUM_CHUNK / NARROW_TABLES + NARROW_TABLES <=
                   1 << (NARROW_COUNT_SHIFT - 23),
               "bins overflow");

/* A binary format: a sign, then these; a subnormal is a multiple of 2^(POSITION - 1074).
 */
struct narrow {
    unsigned exponent_bits, fraction_bits;
    int position;
};

static const struct narrow FLOAT32 = { 8, 23, 1074 - 149 };
static const struct narrow BFLOAT16 = { 8, 7, 1074 - 133 };
static const struct narrow FLOAT16 = { 5, 10, 1074 - 24 };

typedef uint32_t narrow_load(const unsigned char *data, int64_t i);

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

static ALWAYS_INLINE void narrow_fill(uint64_t *bins, uint32_t bits, struct narrow format)
{
    uint32_t fraction = bits & ((1u << format.fraction_bits) - 1u);

    bins[bits >> format.fraction_bits] += (uint64_t)1 << NARROW_COUNT_SHIFT | fraction;
}

/* Takes over COUNT > 0 values of one sign and exponent whose fractions sum to FRACTIONS.
 */
static void narrow_empty(struct exact_sum *sum, struct narrow format, bool negative,
                         unsigned exponent, uint64_t count, uint64_t fractions)
{
    bool is_last = exponent == (1u << format.exponent_bits) - 1u;

    note(sum, negative, exponent == 0, is_last, fractions != 0);
    if (is_last) {
        return;
    }
    if (exponent == 0) {
        exact_sum_deposit(sum, negative, fractions, format.position);
    } else {
        exact_sum_deposit(sum, negative, fractions + (count << format.fraction_bits),
                          format.position + (int)exponent - 1);
    }
}

static void narrow_empty_all(struct exact_sum *sum,
                             uint64_t bins[NARROW_TABLES][NARROW_BINS],
                             struct narrow format)
{
    unsigned exponents = 1u << format.exponent_bits;
    uint64_t fraction_mask = ((uint64_t)1 << NARROW_COUNT_SHIFT) - 1;

    for (unsigned bin = 0; bin < 2 * exponents; bin++) {
        uint64_t count = 0, fractions = 0;

        for (int table = 0; table < NARROW_TABLES; table++) {
            count += bins[table][bin] >> NARROW_COUNT_SHIFT;
            fractions += bins[table][bin] & fraction_mask;
        }
        if (count) {
            narrow_empty(sum, format, bin >= exponents, bin % exponents, count,
                         fractions);
        }
    }
}

static ALWAYS_INLINE void narrow_add(struct exact_sum *sum, const unsigned char *data,
                                     int64_t n, struct narrow format, narrow_load *load)
{
    uint64_t bins[NARROW_TABLES][NARROW_BINS] = { { 0 } };
    int64_t i = 0;

    for (; i + NARROW_TABLES <= n; i += NARROW_TABLES) {
        narrow_fill(bins[0], load(data, i), format);
        narrow_fill(bins[1], load(data, i + 1), format);
        narrow_fill(bins[2], load(data, i + 2), format);
        narrow_fill(bins[3], load(data, i + 3), format);
    }
    for (; i < n; i++) {
        narrow_fill(bins[0], load(data, i), format);
    }
    narrow_empty_all(sum, bins, format);
}

static void add_float32(struct exact_sum *sum, const void *data, int64_t n)
{
    narrow_add(sum, data, n, FLOAT32, load_32);
}

static void add_bfloat16(struct exact_sum *sum, const void *data, int64_t n)
{
    narrow_add(sum, data, n, BFLOAT16, load_16);
}

static void add_float16(struct exact_sum *sum, const void *data, int64_t n)
{
    narrow_add(sum, data, n, FLOAT16, load_16);
}

/* float64: a pair of bins for each sign and exponent, as a fraction and a count do not
 * fit 64 bits. */
enum { WIDE_EXPONENTS = 2048 };

/* Neighbours go to different tables: equal exponents in a row do not wait for memory. */
enum { WIDE_TABLES = 2 };

/* The values of one sign and exponent: LOW sums the fractions' lower 32 bits; HIGH their
 * upper 20 bits and, from bit 40 up, how many values there are. */
struct wide {
    uint64_t low, high;
};

enum { WIDE_COUNT_SHIFT = 40 };
_Static_assert(EXACT_SUM_CHUNK <= 1 << (WIDE_COUNT_SHIFT - 20), "bins overflow");

static inline void wide_fill(struct wide *bins, const unsigned char *value)
{
    uint64_t bits;
    struct wide *bin;

    memcpy(&bits, value, sizeof bits);
    bin = &bins[bits >> 52];
    bin->low += (uint32_t)bits;
    bin->high += (uint64_t)1 << WIDE_COUNT_SHIFT | (bits >> 32 & 0xfffffu);
}

/* Takes over the values in BIN, which is not empty. */
static void wide_empty(struct exact_sum *sum, bool negative, int exponent,
                       struct wide bin)
{
    uint64_t count = bin.high >> WIDE_COUNT_SHIFT;
    uint64_t high = bin.high & (((uint64_t)1 << WIDE_COUNT_SHIFT) - 1);
    bool fractions = bin.low || high;
    int position;

    note(sum, negative, exponent == 0, exponent == WIDE_EXPONENTS - 1, fractions);
    if (exponent == WIDE_EXPONENTS - 1) {
        return;
    }
    position = exponent ? exponent - 1 : 0;
    if (exponent) {
        high += count << 20;
    }
    exact_sum_deposit(sum, negative, bin.low, position);
    exact_sum_deposit(sum, negative, high, position + 32);
}

static void add_float64(struct exact_sum *sum, const void *data, int64_t n)
{
    struct wide bins[WIDE_TABLES][2 * WIDE_EXPONENTS];
    const unsigned char *at = data;

    memset(bins, 0, sizeof bins);
    for (int64_t i = 0; i + 1 < n; i += 2) {
        wide_fill(bins[0], at + 8 * i);
        wide_fill(bins[1], at + 8 * i + 8);
    }
    if (n % 2) {
        wide_fill(bins[0], at + 8 * (n - 1));
    }
    for (int i = 0; i < 2 * WIDE_EXPONENTS; i++) {
        struct wide bin = { bins[0][i].low + bins[1][i].low,
                            bins[0][i].high + bins[1][i].high };

        if (bin.high) {
            wide_empty(sum, i >= WIDE_EXPONENTS, i % WIDE_EXPONENTS, bin);
        }
    }
}

static void add_signed(struct exact_sum *sum, int64_t value, int position)
{
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;

    exact_sum_deposit(sum, value < 0, magnitude, EXACT_SUM_UNIT + position);
}

static void add_uint8(struct exact_sum *sum, const unsigned char *data, int64_t n)
{
    int64_t total = 0;

    for (int64_t i = 0; i < n; i++) {
        total += data[i];
    }
    add_signed(sum, total, 0);
}

static void add_int32(struct exact_sum *sum, const unsigned char *data, int64_t n)
{
    int64_t total = 0;

    for (int64_t i = 0; i < n; i++) {
        int32_t value;

        memcpy(&value, data + 4 * i, sizeof value);
        total += value;
    }
    add_signed(sum, total, 0);
}

static void add_int64(struct exact_sum *sum, const unsigned char *data, int64_t n)
{
    int64_t low = 0, high = 0;

    for (int64_t i = 0; i < n; i++) {
        int64_t value;

        memcpy(&value, data + 8 * i, sizeof value);
        low += value & 0xffffffff;
        high += value >> 32;
    }
    add_signed(sum, low, 0);
    add_signed(sum, high, 32);
}

/* Returns the size of one value. */
static size_t add_chunk(struct exact_sum *sum, int dtype, const unsigned char *data,
                        int64_t n)
{
    switch ((enum dtype)dtype) {
    case DTYPE_FLOAT32:
        add_float32(sum, data, n);
        return 4;
    case DTYPE_FLOAT64:
        add_float64(sum, data, n);
        return 8;
    case DTYPE_FLOAT16:
        add_float16(sum, data, n);
        return 2;
    case DTYPE_BFLOAT16:
        add_bfloat16(sum, data, n);
        return 2;
    case DTYPE_INT32:
        sum->other = true;
        add_int32(sum, data, n);
        return 4;
    case DTYPE_INT64:
        sum->other = true;
        add_int64(sum, data, n);
        return 8;
    case DTYPE_UINT8:
        sum->other = true;
        add_uint8(sum, data, n);
        return 1;
    case DTYPE_COUNT:
        break;
    }
    abort(); /* a dtype that this program does not have: any sum would be a lie */
}

void exact_sum_add(struct exact_sum *sum, int dtype, const void *data, int64_t n)
{
    const unsigned char *at = data;

    while (n > 0) {
        int64_t count = n < EXACT_SUM_CHUNK ? n : EXACT_SUM_CHUNK;

        at += (size_t)count * add_chunk(sum, dtype, at, count);
        exact_sum_carry(sum);
        n -= count;
    }
}

void exact_sum_merge(struct exact_sum *into, const struct exact_sum *from)
{
    for (int i = 0; i < EXACT_SUM_LIMBS; i++) {
        into->limbs[i] += from->limbs[i];
    }
    exact_sum_carry(into);
    into->nan |= from->nan;
    into->positive_infinity |= from->positive_infinity;
    into->negative_infinity |= from->negative_infinity;
    into->negative_zero |= from->negative_zero;
    into->other |= from->other;
}

/* Position of the highest set bit of non-negative LIMBS, -1 if there is none. */
static int highest_bit(const int64_t *limbs)
{
    for (int i = EXACT_SUM_LIMBS - 1; i >= 0; i--) {
        if (limbs[i]) {
            return 32 * i + 63 - __builtin_clzll((unsigned long long)limbs[i]);
        }
    }
    return -1;
}

static unsigned bit_at(const int64_t *limbs, int position)
{
    return (unsigned)(limbs[position / 32] >> (position % 32)) & 1u;
}

static bool any_bit_below(const int64_t *limbs, int position)
{
    for (int i = 0; i < position / 32; i++) {
        if (limbs[i]) {
            return true;
        }
    }
    return (limbs[position / 32] & (((int64_t)1 << (position % 32)) - 1)) != 0;
}

/* The bits of the binary64 nearest to LIMBS, not negative, highest set bit HIGHEST. */
static uint64_t round_magnitude(const int64_t *limbs, int highest)
{
    int lowest = highest > 52 ? highest - 52 : 0;
    uint64_t significand = 0;
    uint64_t bits;

    for (int position = highest; position >= lowest; position--) {
        significand = significand << 1 | bit_at(limbs, position);
    }
    if (lowest > 0 && bit_at(limbs, lowest - 1)) {
        significand += (significand & 1u) || any_bit_below(limbs, lowest - 1);
    }
    /* The implicit bit, where there is one, adds 1 to the exponent LOWEST; so does a
     * significand that rounding made 2^53. */
    bits = ((uint64_t)lowest << 52) + significand;
    return bits < INFINITY_BITS ? bits : INFINITY_BITS;
}

double exact_sum_round(const struct exact_sum *sum)
{
    struct exact_sum magnitude;
    bool negative;
    int highest;

    if (sum->nan || (sum->positive_infinity && sum->negative_infinity)) {
        return f64_from_bits(NAN_BITS);
    }
    if (sum->positive_infinity) {
        return f64_from_bits(INFINITY_BITS);
    }
    if (sum->negative_infinity) {
        return f64_from_bits(SIGN_BIT | INFINITY_BITS);
    }

    magnitude = *sum;
    negative = sum->limbs[EXACT_SUM_LIMBS - 1] < 0;
    if (negative) {
        for (int i = 0; i < EXACT_SUM_LIMBS; i++) {
            magnitude.limbs[i] = -sum->limbs[i];
        }
        exact_sum_carry(&magnitude);
    }
    highest = highest_bit(magnitude.limbs);
    if (highest < 0) {
        return f64_from_bits(sum->negative_zero && !sum->other ? SIGN_BIT : 0);
    }
    return f64_from_bits((negative ? SIGN_BIT : 0) |
                         round_magnitude(magnitude.limbs, highest));
}
