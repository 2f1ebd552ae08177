/* What every implementation of ctc_loss shares: the shape, the extended label row, and
 * the float64 reference with its bound.
 *
 * Source: Graves, Fernandez, Gomez, Schmidhuber, "Connectionist Temporal Classification",
 * ICML 2006.  The label row of an example is extended with blanks (index 0) before,
 * between and after: position 2i+1 holds label i, the even ones are blank.  alpha(t,s) is
 * the probability of all paths that are at position s at time t, the emission at t
 * included; beta(t,s) of all that go on from there, the emission at t excluded.  With
 * occupancy(t,s) = alpha * beta / p, the gradient with respect to the logits is
 *
 *   upstream[b] * (softmax(t,v) - sum over s of occupancy(t,s) where s has symbol v)
 *
 * and 0 from the end of the example on.  Every blank position adds to one element. */
#ifndef WORKLOADS_CTC_LOSS_H
#define WORKLOADS_CTC_LOSS_H

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "workloads/shared/ctc_labels.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

/* Inputs, in order of creation.  Labels are stored less one, lengths as what is missing
 * from the longest. */
enum ctc_input { CTC_LOGITS, CTC_UPSTREAM, CTC_LABELS, CTC_LABEL_DROP, CTC_TIME_DROP };

/* The reference works with probabilities, not logarithms: at each time alpha, beta and
 * then the occupancies are scaled to sum 1. */
struct ctc_paths {
    int64_t time, positions;
    const int32_t *labels;
    const double *softmax; /* [time][symbols] */
    int64_t symbols;
    double *occupancies; /* [time][positions] */
    double log_probability;
};

/* Divides by the sum, and returns it. */
static inline double ctc_row_scale(double *row, int64_t count)
{
    double sum = 0;

    for (int64_t s = 0; s < count; s++) {
        sum += row[s];
    }
    for (int64_t s = 0; s < count; s++) {
        row[s] /= sum;
    }
    return sum;
}

static inline void ctc_reference_alpha(struct ctc_paths *paths)
{
    paths->log_probability = 0;
    for (int64_t t = 0; t < paths->time; t++) {
        double *alpha = paths->occupancies + t * paths->positions;
        const double *before = alpha - paths->positions;

        for (int64_t s = 0; s < paths->positions; s++) {
            double sum = t == 0 ? s < 2 : before[s];

            if (t > 0 && s >= 1) {
                sum += before[s - 1];
            }
            if (t > 0 && ctc_may_skip(paths->labels, s)) {
                sum += before[s - 2];
            }
            alpha[s] =
                sum *
                paths->softmax[t * paths->symbols + ctc_symbol_at(paths->labels, s)];
        }
        paths->log_probability += log(ctc_row_scale(alpha, paths->positions));
        if (t == paths->time - 1) {
            paths->log_probability +=
                log(alpha[paths->positions - 1] + alpha[paths->positions - 2]);
        }
    }
}

static inline void ctc_reference_occupancies(struct ctc_paths *paths)
{
    double *beta = run_host_alloc(2 * (size_t)paths->positions * sizeof(double));
    double *onward = beta + paths->positions;

    ctc_reference_alpha(paths);
    for (int64_t t = paths->time - 1; t >= 0; t--) {
        for (int64_t s = 0; s < paths->positions; s++) {
            if (t == paths->time - 1) {
                beta[s] = s >= paths->positions - 2;
                continue;
            }
            beta[s] = onward[s];
            if (s + 1 < paths->positions) {
                beta[s] += onward[s + 1];
            }
            if (s + 2 < paths->positions && ctc_may_skip(paths->labels, s + 2)) {
                beta[s] += onward[s + 2];
            }
        }
        ctc_row_scale(beta, paths->positions);
        for (int64_t s = 0; s < paths->positions; s++) {
            onward[s] =
                beta[s] *
                paths->softmax[t * paths->symbols + ctc_symbol_at(paths->labels, s)];
            paths->occupancies[t * paths->positions + s] *= beta[s];
        }
        ctc_row_scale(paths->occupancies + t * paths->positions, paths->positions);
    }
    free(beta);
}

/* How far rounding may take an example's values.  U is the unit roundoff; expf and logf
 * are taken to be within 2 ulp.  With m the largest |log softmax|:
 *  - a log softmax is off by at most e = u (symbols + 8 + 8 m): the differences and the
 *    sum of the exponentials, the logarithm, the last subtraction;
 *  - a sum of logarithms is 1-Lipschitz in its largest argument, so one step of alpha or
 *    beta adds at most e + u (2 M + 32), where M = time * m bounds every |alpha|;
 *  - log p is one more such step, and alpha + beta - log p rounds twice, by 2 M u each:
 *    the exponent of an occupancy is off by at most 3 (time + 1) steps. */
struct ctc_error {
    double softmax;     /* relative */
    double occupancy;   /* relative */
    double probability; /* of log p, absolute */
};

static inline struct ctc_error ctc_error(double u, int64_t time, int64_t symbols,
                                         double m)
{
    double e = u * ((double)symbols + 8 + 8 * m);
    double step = e + u * (2 * (double)time * m + 32);

    return (struct ctc_error){
        .softmax = expm1(e) + 8 * u,
        .occupancy = expm1(3 * (double)(time + 1) * step) + 8 * u,
        .probability = (double)(time + 1) * step,
    };
}

/* Float64 softmax of the logits of example B; returns the largest |log softmax|. */
static inline double ctc_reference_softmax(const struct ctc_shape *shape,
                                           const float *logits, int64_t b, int64_t time,
                                           double *ret_softmax)
{
    double least = 1;

    for (int64_t t = 0; t < time; t++) {
        for (int64_t v = 0; v < shape->symbols; v++) {
            ret_softmax[t * shape->symbols + v] =
                exp((double)logits[(t * shape->batch + b) * shape->symbols + v]);
        }
        ctc_row_scale(ret_softmax + t * shape->symbols, shape->symbols);
        for (int64_t v = 0; v < shape->symbols; v++) {
            least = fmin(least, ret_softmax[t * shape->symbols + v]);
        }
    }
    return -log(least);
}

/* Expected gradient and bound of one example at one time.  Results below FLT_MIN lose
 * their precision, hence the last term. */
static inline void ctc_reference_gradient(const struct ctc_paths *paths, int64_t t,
                                          double upstream, const struct ctc_error *error,
                                          double *ret_expected, double *ret_bound)
{
    double gamma = rounding_gamma(DTYPE_FLOAT32, paths->positions + 1);

    for (int64_t v = 0; v < paths->symbols; v++) {
        double y = paths->softmax[t * paths->symbols + v], occupied = 0;

        for (int64_t s = 0; s < paths->positions; s++) {
            if (ctc_symbol_at(paths->labels, s) == v) {
                occupied += paths->occupancies[t * paths->positions + s];
            }
        }
        ret_expected[v] = upstream * (y - occupied);
        ret_bound[v] =
            fabs(upstream) * (y * error->softmax + occupied * error->occupancy +
                              gamma * (y + occupied) * (1 + error->occupancy)) +
            (double)(paths->positions + 1) * (fabs(upstream) + 1) * FLT_MIN;
    }
}

/* Expected values and bounds of example B: its loss, and its rows of the gradient. */
static inline void ctc_reference_example(const struct ctc_shape *shape,
                                         const struct tensor *inputs, int64_t b,
                                         bool losses, double *ret_expected,
                                         double *ret_bound)
{
    int64_t labels = shape->labels - ((const int32_t *)inputs[CTC_LABEL_DROP].data)[b];
    int64_t time = shape->time - ((const int32_t *)inputs[CTC_TIME_DROP].data)[b];
    double *softmax = run_host_alloc((size_t)(time * shape->symbols) * sizeof(double));
    double m = ctc_reference_softmax(shape, inputs[CTC_LOGITS].data, b, time, softmax);
    struct ctc_paths paths = {
        .time = time,
        .positions = 2 * labels + 1,
        .labels = (const int32_t *)inputs[CTC_LABELS].data + b * shape->labels,
        .softmax = softmax,
        .symbols = shape->symbols,
    };
    struct ctc_error error =
        ctc_error(rounding_unit(DTYPE_FLOAT32), time, paths.symbols, m);

    paths.occupancies = run_host_alloc((size_t)(time * paths.positions) * sizeof(double));
    ctc_reference_occupancies(&paths);
    if (losses) {
        ret_expected[b] = -paths.log_probability;
        ret_bound[b] = error.probability;
    } else {
        for (int64_t t = 0; t < time; t++) {
            int64_t row = (t * shape->batch + b) * shape->symbols;

            ctc_reference_gradient(&paths, t,
                                   ((const float *)inputs[CTC_UPSTREAM].data)[b], &error,
                                   ret_expected + row, ret_bound + row);
        }
    }
    free(paths.occupancies);
    free(softmax);
}

#endif
