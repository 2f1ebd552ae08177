#include "daemon/trace/difference.h"

#include <math.h>
#include <string.h>

#include "daemon/base/array.h"

/* How the bits of an element are read: sign, then exponent, then fraction. */
struct format {
    const char *name;
    int bits;
    int fraction_bits; /* of a float; 0: an integer */
    bool is_signed;    /* of an integer */
};

static const struct format formats[] = {
    { "float32", 32, 23, true }, { "float64", 64, 52, true }, { "float16", 16, 10, true },
    { "bfloat16", 16, 7, true }, { "int32", 32, 0, true },    { "int64", 64, 0, true },
    { "uint8", 8, 0, false },
};

static const struct format *format_find(const char *dtype)
{
    for (int i = 0; i < COUNT_OF(formats); i++) {
        if (strcmp(formats[i].name, dtype) == 0) {
            return &formats[i];
        }
    }
    return NULL;
}

size_t difference_dtype_bytes(const char *dtype)
{
    const struct format *format = format_find(dtype);

    return format ? (size_t)format->bits / 8 : 0;
}

bool difference_dtype_is_float(const char *dtype)
{
    const struct format *format = format_find(dtype);

    return format && format->fraction_bits;
}

static uint64_t sign_of(const struct format *f)
{
    return UINT64_C(1) << (f->bits - 1);
}

/* The bits of the magnitude of an infinity; greater ones are NaNs. */
static uint64_t infinity_of(const struct format *f)
{
    return (sign_of(f) - 1) & ~((UINT64_C(1) << f->fraction_bits) - 1);
}

static uint64_t magnitude_of(const struct format *f, uint64_t bits)
{
    return bits & (sign_of(f) - 1);
}

static uint64_t load(const struct format *f, const void *data, int64_t index)
{
    size_t bytes = (size_t)f->bits / 8;
    uint64_t bits = 0;

    memcpy(&bits, (const char *)data + (size_t)index * bytes, bytes);
    return bits;
}

static double float_value(const struct format *f, uint64_t bits)
{
    uint64_t magnitude = magnitude_of(f, bits);
    int exponent_bits = f->bits - 1 - f->fraction_bits;
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(magnitude >> f->fraction_bits);
    uint64_t fraction = magnitude & ((UINT64_C(1) << f->fraction_bits) - 1);
    double value;

    if (exponent) {
        fraction |= UINT64_C(1) << f->fraction_bits;
    }
    value = ldexp((double)fraction, (exponent ? exponent : 1) - bias - f->fraction_bits);
    return bits & sign_of(f) ? -value : value;
}

static double integer_value(const struct format *f, uint64_t bits)
{
    if (f->is_signed && bits & sign_of(f)) {
        return -(double)(sign_of(f) - magnitude_of(f, bits));
    }
    return (double)bits;
}

/* Representable values from A to B; neither is NaN. */
static uint64_t ulp_distance(const struct format *f, uint64_t a, uint64_t b)
{
    uint64_t x = magnitude_of(f, a);
    uint64_t y = magnitude_of(f, b);

    if ((a ^ b) & sign_of(f)) {
        return x + y;
    }
    return x > y ? x - y : y - x;
}

static void count_special(const struct format *f, uint64_t bits, int which,
                          struct difference *d)
{
    uint64_t magnitude = magnitude_of(f, bits);

    d->nan[which] += magnitude > infinity_of(f);
    d->infinite[which] += magnitude == infinity_of(f);
}

static void measure(const struct format *f, uint64_t a, uint64_t b, struct difference *d)
{
    double distance = 0;

    if (!f->fraction_bits) {
        distance = fabs(integer_value(f, a) - integer_value(f, b));
    } else if (magnitude_of(f, a) <= infinity_of(f) &&
               magnitude_of(f, b) <= infinity_of(f)) {
        uint64_t ulp = ulp_distance(f, a, b);

        d->max_ulp = ulp > d->max_ulp ? ulp : d->max_ulp;
        d->zero_signs += ulp == 0;
        if (magnitude_of(f, a) < infinity_of(f) && magnitude_of(f, b) < infinity_of(f)) {
            distance = fabs(float_value(f, a) - float_value(f, b));
        }
    }
    d->max_absolute = distance > d->max_absolute ? distance : d->max_absolute;
}

static void count_bits(uint64_t difference, struct difference *d)
{
    while (difference) {
        d->bits[__builtin_ctzll(difference)]++;
        difference &= difference - 1;
    }
}

/* What the search for a period needs of the differing indices. */
struct indices {
    int64_t gap; /* greatest common divisor of their distances; 0: fewer than two */
    bool residue[DIFFERENCE_PERIOD_MAX]; /* taken, modulo that */
};

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The logarithm of the probability that COUNT indices drawn at random take only RESIDUES
 * values modulo PERIOD, from above: there are (period over residues) choices of values,
 * and each index hits a chosen one with probability residues / period. */
static double log_chance(int64_t period, int64_t residues, int64_t count)
{
    double p = (double)period;
    double r = (double)residues;
    double choices = lgamma(p + 1) - lgamma(r + 1) - lgamma(p - r + 1);

    return choices + (double)count * log(r / p);
}

static void try_residues(const bool *taken, int64_t period, double *best,
                         struct difference *d)
{
    int64_t residues = 0;
    int64_t phase = -1;
    double chance;

    for (int64_t i = 0; i < period; i++) {
        bool any = false;

        for (int64_t at = i; at < DIFFERENCE_PERIOD_MAX && !any; at += period) {
            any = taken[at];
        }
        residues += any;
        phase = any && phase < 0 ? i : phase;
    }
    chance = log_chance(period, residues, d->differ);
    if (2 * residues <= period && chance < *best) {
        *best = chance;
        d->period = period;
        d->residues = residues;
        d->phase = phase;
    }
}

/* The period that is least likely to be chance: their common divisor, or a power of two,
 * as lanes and tiles have it. */
static void find_period(const struct indices *indices, struct difference *d)
{
    double best = log(1e-6);
    double chance;

    for (int64_t period = 2; period <= DIFFERENCE_PERIOD_MAX && d->differ; period *= 2) {
        try_residues(indices->residue, period, &best, d);
    }
    if (indices->gap > 1) {
        /* One index less: whatever the distances are, they have a divisor. */
        chance = log_chance(indices->gap, 1, d->differ - 1);
        if (chance < best) {
            d->period = indices->gap;
            d->residues = 1;
            d->phase = d->first % indices->gap;
        }
    }
}

void difference_compute(const char *dtype, int64_t elements, const void *a, const void *b,
                        struct difference *ret_difference)
{
    const struct format *f = format_find(dtype);
    struct difference *d = ret_difference;
    struct indices indices = { .gap = 0 };

    *d = (struct difference){
        .elements = elements, .first = -1, .last = -1, .bit_count = f->bits
    };
    for (int64_t i = 0; i < elements; i++) {
        uint64_t x = load(f, a, i);
        uint64_t y = load(f, b, i);

        if (f->fraction_bits) {
            count_special(f, x, 0, d);
            count_special(f, y, 1, d);
        }
        if (x == y) {
            continue;
        }
        indices.gap = d->differ++ ? common_divisor(i - d->last, indices.gap) : 0;
        indices.residue[i % DIFFERENCE_PERIOD_MAX] = true;
        d->first = d->first < 0 ? i : d->first;
        d->last = i;
        count_bits(x ^ y, d);
        measure(f, x, y, d);
    }
    find_period(&indices, d);
}
