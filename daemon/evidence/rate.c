#include "daemon/evidence/rate.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/cell.h"

enum { STEPS = 200, FRACTION_STEPS = 1000000 };

/* The continued fraction of the incomplete beta function (DLMF 8.17.22), evaluated from
 * the front by Lentz's method.  It converges fast for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), value = d;

    /* never false: some sqrt(a + b) steps do */
    for (int m = 1; m < FRACTION_STEPS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double step;

        d = 1 / (1 + even * d);
        c = 1 + even / c;
        value *= c * d;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        step = c * d;
        value *= step;
        if (fabs(step - 1) < 4 * DBL_EPSILON) {
            break;
        }
    }
    return value;
}

static double log_gamma(double x)
{
    int sign;

    return lgamma_r(x, &sign); /* lgamma writes a global */
}

/* The regularised incomplete beta function I_x(a, b), for a, b > 0 and 0 < x < 1.
 * LOG_BETA is that of B(a, b). */
static double beta_below(double a, double b, double log_beta, double x)
{
    double front = exp(a * log(x) + b * log1p(-x) - log_beta);

    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* The x at which I_x(a, b), which grows with x, is SHARE: by Newton's method, or by
 * halving what is left where that would leave it. */
static double beta_quantile(double a, double b, double share)
{
    double log_beta = log_gamma(a) + log_gamma(b) - log_gamma(a + b);
    double low = 0, high = 1, x = a / (a + b), before = -1;

    /* never false: halving alone ends after some 60 steps */
    for (int i = 0; i < STEPS && fabs(x - before) > 1e-11 * x; i++) {
        double above = beta_below(a, b, log_beta, x) - share;
        double slope = exp((a - 1) * log(x) + (b - 1) * log1p(-x) - log_beta);

        if (above < 0) {
            low = x;
        } else {
            high = x;
        }
        before = x;
        x -= above / slope;
        if (!(x > low && x < high)) {
            x = (low + high) / 2;
        }
    }
    return x;
}

struct rate rate_of(int64_t k, int64_t n)
{
    struct rate rate = { k, n, 0, 1 };
    double happened = (double)k, not_happened = (double)(n - k);

    /* The probability of K or more is I_p(k, n - k + 1); of K or fewer,
     * 1 - I_p(k + 1, n - k). */
    if (k > 0) {
        rate.lower = beta_quantile(happened, not_happened + 1, 0.025);
    }
    if (k < n) {
        rate.upper = beta_quantile(happened + 1, not_happened, 0.975);
    }
    return rate;
}

bool departures_of(const struct cell *cell, struct departures *ret_departures)
{
    const struct evidence *e = &cell->evidence;
    const struct digest_counts *own = &cell->digest_counts;
    int64_t runs = e->runs[OUTCOME_COMPLETED], later = e->iterations - runs;
    int64_t own_later = own->iterations - own->first_runs;

    /* Past states and damaged files lack counts, or have some that contradict. */
    if (!e->varied || own->runs == 0 || own->only_runs > runs || own->only_runs < 0 ||
        own_later < 0 || own_later > later) {
        return false;
    }
    ret_departures->runs = rate_of(runs - own->only_runs, runs);
    /* Below a half another digest may be the most frequent of the later iterations,
     * unless no digest came twice. */
    if (own_later * 2 <= later && e->distinct_digests < e->iterations) {
        own_later = later = 0;
    }
    ret_departures->iterations = rate_of(later - own_later, later);
    return true;
}

/* Decimal places that show two digits of PERCENT. */
static int places_of(double percent)
{
    int places = percent > 0 ? 1 - (int)floor(log10(percent)) : 0;

    return places > 0 ? places : 0;
}

const char *rate_interval_text(const struct rate *rate, char ret_text[TEXT_NUMBER_SIZE])
{
    int low = places_of(100 * rate->lower), high = places_of(100 * rate->upper);

    snprintf(ret_text, TEXT_NUMBER_SIZE, "%.*f-%.*f %%", low,
             floor(100 * rate->lower * pow(10, low)) / pow(10, low), high,
             ceil(100 * rate->upper * pow(10, high)) / pow(10, high));
    return ret_text;
}

/* "12 of 50 runs (13-39 %". */
static void rate_text(const struct rate *rate, const char *what, struct buf *out)
{
    char number[TEXT_NUMBER_SIZE];

    buf_printf(out, "%s of ", text_number(rate->k, number));
    buf_printf(out, "%s %s (", text_number(rate->n, number), what);
    buf_puts(out, rate_interval_text(rate, number));
}

void departures_text(const struct departures *departures,
                     char ret_text[DEPARTURES_TEXT_SIZE])
{
    struct buf text = BUF_INIT;

    buf_puts(&text, "another digest than the most frequent one in ");
    rate_text(&departures->runs, "runs", &text);
    buf_puts(&text, ")");
    if (departures->iterations.n > 0) {
        buf_puts(&text, " and in ");
        rate_text(&departures->iterations, "iterations after a run's first", &text);
        buf_puts(&text, " if independent)");
    }
    copy_text(ret_text, DEPARTURES_TEXT_SIZE, text.data);
    buf_release(&text);
}
