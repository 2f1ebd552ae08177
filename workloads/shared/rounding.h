/* Rounding-error bounds for the `reference` hooks.
 *
 * Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1
 * and 4.2.  The computed sum of n products (or of n terms), added in any order and with
 * any grouping, differs from the exact one by at most gamma_n * sum |terms|, where
 * gamma_n = n*u / (1 - n*u) and u is the unit roundoff.  The bound does not depend on the
 * order, so one bound serves every variant. */
#ifndef WORKLOADS_SHARED_ROUNDING_H
#define WORKLOADS_SHARED_ROUNDING_H

#include "workloads/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Half the distance from 1 to the next larger number of DTYPE; 0 for integers. */
static inline double rounding_unit(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_FLOAT32:
        return 0x1p-24;
    case DTYPE_FLOAT64:
        return 0x1p-53;
    case DTYPE_FLOAT16:
        return 0x1p-11;
    case DTYPE_BFLOAT16:
        return 0x1p-8;
    default:
        return 0;
    }
}

/* gamma_n for N terms; INFINITY where the theory says nothing (n*u >= 1).  One term is
 * added for the rounding of the float64 reference itself. */
static inline double rounding_gamma(enum dtype dtype, int64_t n)
{
    double nu = (double)(n + 1) * rounding_unit(dtype);

    return nu < 1 ? nu / (1 - nu) : INFINITY;
}

/* An output each element of which is a sum: the sums in float64, and how far rounding may
 * lead from them. */
struct exact_sums {
    double *sums, *bounds; /* what `reference` returns */
    enum dtype dtype;
    double gamma;    /* of a sum; 1 until its terms are counted */
    int64_t *counts; /* terms of each sum so far; NULL where all have the same number */
    int64_t elements;
};

/* Sums without any term yet, each of which gets TERMS. */
static inline struct exact_sums sums_begin(const struct run *run, int64_t terms,
                                           const struct tensor *output,
                                           double *ret_expected, double *ret_bound)
{
    struct exact_sums exact = { ret_expected, ret_bound,
                                run->dtype,   rounding_gamma(run->dtype, terms),
                                NULL,         tensor_elements(output) };

    for (int64_t i = 0; i < exact.elements; i++) {
        ret_expected[i] = ret_bound[i] = 0;
    }
    return exact;
}

static inline void sums_add(const struct exact_sums *exact, int64_t at, double term)
{
    exact->sums[at] += term;
    exact->bounds[at] += exact->gamma * fabs(term);
    if (exact->counts) {
        exact->counts[at]++;
    }
}

/* Adds FACTOR times each of the COUNT numbers FROM to the sums from AT on. */
static inline void sums_add_scaled(const struct exact_sums *exact, int64_t at,
                                   double factor, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums_add(exact, at + i, factor * from[i]);
    }
}

/* Adds the COUNT products of A and B to one sum. */
static inline void sums_add_products(const struct exact_sums *exact, int64_t at,
                                     const float *a, const float *b, int64_t count)
{
    double sum = exact->sums[at], bound = exact->bounds[at];

    for (int64_t i = 0; i < count; i++) {
        double term = (double)a[i] * b[i];

        sum += term;
        bound += exact->gamma * fabs(term);
    }
    exact->sums[at] = sum;
    exact->bounds[at] = bound;
}

/* The same where the inputs say how many terms a sum gets; sums_finish ends it. */
static inline struct exact_sums sums_begin_counted(const struct run *run,
                                                   const struct tensor *output,
                                                   double *ret_expected,
                                                   double *ret_bound)
{
    struct exact_sums exact = sums_begin(run, 0, output, ret_expected, ret_bound);
    size_t bytes = (size_t)exact.elements * sizeof *exact.counts;

    exact.gamma = 1;
    exact.counts = (int64_t *)run_host_alloc(bytes);
    memset(exact.counts, 0, bytes);
    return exact;
}

/* Each term has been rounded ROUNDINGS times before it was added. */
static inline void sums_finish(struct exact_sums *exact, int64_t roundings)
{
    for (int64_t i = 0; i < exact->elements; i++) {
        exact->bounds[i] *= rounding_gamma(exact->dtype, exact->counts[i] + roundings);
    }
    free(exact->counts);
}

#endif
