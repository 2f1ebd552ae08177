#include "daemon/trace/spread.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/trace/difference.h"

/* Its range holds the square of each binary64, and sums of these. */
typedef long double wide;

static double value_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool is_finite(const struct spread_value *value)
{
    return isfinite(value_of(value->bits));
}

static void add(struct spread *s, const struct spread_value *value)
{
    if (!is_finite(value)) {
        s->not_finite += value->runs;
        return;
    }
    if (s->runs == 0 || value_of(value->bits) < value_of(s->least)) {
        s->least = value->bits;
    }
    if (s->runs == 0 || value_of(value->bits) > value_of(s->greatest)) {
        s->greatest = value->bits;
    }
    s->runs += value->runs;
    s->distinct++;
}

/* From the least value, so that nothing is lost where all are large and close. */
static wide mean_of(const struct spread_value *values, int count, const struct spread *s)
{
    wide sum = 0;

    for (int i = 0; i < count; i++) {
        if (is_finite(&values[i])) {
            sum += (wide)values[i].runs *
                   ((wide)value_of(values[i].bits) - value_of(s->least));
        }
    }
    return value_of(s->least) + sum / (wide)s->runs;
}

static double deviation_of(const struct spread_value *values, int count,
                           const struct spread *s)
{
    wide mean, squares = 0;

    if (s->runs < 2) {
        return NAN;
    }
    mean = mean_of(values, count, s);
    for (int i = 0; i < count; i++) {
        if (is_finite(&values[i])) {
            wide distance = value_of(values[i].bits) - mean;

            squares += (wide)values[i].runs * distance * distance;
        }
    }
    return (double)sqrtl(squares / (wide)(s->runs - 1));
}

void spread_of(const struct spread_value *values, int count, struct spread *ret_spread)
{
    struct difference d;

    *ret_spread = (struct spread){ .runs = 0 };
    for (int i = 0; i < count; i++) {
        add(ret_spread, &values[i]);
    }
    difference_compute("float64", 1, &ret_spread->least, &ret_spread->greatest, &d);
    ret_spread->ulp = d.max_ulp;
    ret_spread->range = d.max_absolute;
    ret_spread->standard_deviation = deviation_of(values, count, ret_spread);
}
