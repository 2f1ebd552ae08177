#include "workloads/instruments/exact_sum.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/instruments/bits.h"
#include "workloads/instruments/exact_sum_limbs.h"
#include "workloads/workload.h"

static const uint64_t INFINITY_BITS = 0x7ff0000000000000u;
static const uint64_t NAN_BITS = 0x7ff8000000000000u;
static const uint64_t SIGN_BIT = 0x8000000000000000u;

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

    for (int i = 0; i < 3; i++)
        limb[i] += negative ? -pieces[i] : pieces[i];
}

void exact_sum_note(struct exact_sum *sum, bool negative, bool is_first, bool is_last,
                    bool fractions)
{
    bool is_negative_zero = negative && is_first && !fractions;

    sum->negative_zero |= is_negative_zero;
    sum->other |= !is_negative_zero;
    sum->nan |= is_last && fractions;
    sum->positive_infinity |= is_last && !fractions && !negative;
    sum->negative_infinity |= is_last && !fractions && negative;
}

static void add_signed(struct exact_sum *sum, int64_t value, int position)
{
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;

    exact_sum_deposit(sum, value < 0, magnitude, EXACT_SUM_UNIT + position);
}

static void add_uint8(struct exact_sum *sum, const unsigned char *data, int64_t n)
{
    int64_t total = 0;

    for (int64_t i = 0; i < n; i++)
        total += data[i];
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
        exact_sum_add_float32(sum, data, n);
        return 4;
    case DTYPE_FLOAT64:
        exact_sum_add_float64(sum, data, n);
        return 8;
    case DTYPE_FLOAT16:
        exact_sum_add_float16(sum, data, n);
        return 2;
    case DTYPE_BFLOAT16:
        exact_sum_add_bfloat16(sum, data, n);
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
    for (int i = 0; i < EXACT_SUM_LIMBS; i++)
        into->limbs[i] += from->limbs[i];
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
    for (int i = EXACT_SUM_LIMBS - 1; i >= 0; i--)
        if (limbs[i])
            return 32 * i + 63 - __builtin_clzll((unsigned long long)limbs[i]);
    return -1;
}

static unsigned bit_at(const int64_t *limbs, int position)
{
    return (unsigned)(limbs[position / 32] >> (position % 32)) & 1u;
}

static bool any_bit_below(const int64_t *limbs, int position)
{
    for (int i = 0; i < position / 32; i++)
        if (limbs[i])
            return true;
    return (limbs[position / 32] & (((int64_t)1 << (position % 32)) - 1)) != 0;
}

/* The bits of the binary64 nearest to LIMBS, not negative, highest set bit HIGHEST. */
static uint64_t round_magnitude(const int64_t *limbs, int highest)
{
    int lowest = highest > 52 ? highest - 52 : 0;
    uint64_t significand = 0;

    for (int position = highest; position >= lowest; position--)
        significand = significand << 1 | bit_at(limbs, position);
    if (lowest > 0 && bit_at(limbs, lowest - 1))
        significand += (significand & 1u) || any_bit_below(limbs, lowest - 1);
    /* The implicit bit, where there is one, adds 1 to the exponent LOWEST; so does a
     * significand that rounding made 2^53. */
    uint64_t bits = ((uint64_t)lowest << 52) + significand;
    return bits < INFINITY_BITS ? bits : INFINITY_BITS;
}

double exact_sum_round(const struct exact_sum *sum)
{
    if (sum->nan || (sum->positive_infinity && sum->negative_infinity))
        return f64_from_bits(NAN_BITS);
    if (sum->positive_infinity)
        return f64_from_bits(INFINITY_BITS);
    if (sum->negative_infinity)
        return f64_from_bits(SIGN_BIT | INFINITY_BITS);

    struct exact_sum magnitude = *sum;
    bool negative = sum->limbs[EXACT_SUM_LIMBS - 1] < 0;
    if (negative) {
        for (int i = 0; i < EXACT_SUM_LIMBS; i++)
            magnitude.limbs[i] = -sum->limbs[i];
        exact_sum_carry(&magnitude);
    }
    int highest = highest_bit(magnitude.limbs);
    if (highest < 0)
        return f64_from_bits(sum->negative_zero && !sum->other ? SIGN_BIT : 0);
    return f64_from_bits((negative ? SIGN_BIT : 0) |
                         round_magnitude(magnitude.limbs, highest));
}
