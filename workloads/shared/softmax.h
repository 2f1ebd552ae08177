/* Softmax cross-entropy, dense and sparse: what both share.
 *
 * For each example (a row of logits) the maximum, S = sum over classes of
 * exp(logit - maximum), its logarithm, and the probabilities exp(logit - maximum) / S.
 * S is summed over panels of classes, either as they arrive, with atomic adds, or by a
 * fixed tree. */
#ifndef WORKLOADS_SHARED_SOFTMAX_H
#define WORKLOADS_SHARED_SOFTMAX_H

#include "workloads/workload.h"

#include <math.h>

#include "workloads/shared/probing.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/softmax_shape.h"
#include "workloads/shared/tree.h"

struct softmax {
    int64_t examples, classes, panels;
    const float *logits;  /* [examples][classes] */
    float *probabilities; /* [examples][classes]: until S is known, not divided by it */
    float *maxima, *sums; /* [examples] */
    float *parts; /* [examples][panels]: one scalar a panel, for the fixed trees */
};

/* Makes the logits and takes the scratch memory. */
static inline void softmax_init(struct run *run, struct softmax *softmax)
{
    const struct xent_shape *size = run->size->params;
    int64_t shape[] = { size->examples, size->classes };

    softmax->examples = size->examples;
    softmax->classes = size->classes;
    softmax->panels = size->classes / SOFTMAX_PANEL;
    softmax->logits = run_input_f32(run, "logits", 2, shape, FILL_UNIFORM);
    softmax->probabilities = run_alloc_f32(run, size->examples * size->classes);
    softmax->maxima = run_alloc_f32(run, size->examples);
    softmax->sums = run_alloc_f32(run, size->examples);
    softmax->parts = run_alloc_f32(run, size->examples * softmax->panels);
}

/* The largest logit of each example: exact, so in any order.  For all threads of a team,
 * as are the next two. */
static inline void softmax_find_maxima(const struct softmax *softmax)
{
#pragma omp for
    for (int64_t b = 0; b < softmax->examples; b++) {
        const float *logits = softmax->logits + b * softmax->classes;
        float maximum = logits[0];

        for (int64_t c = 1; c < softmax->classes; c++) {
            maximum = logits[c] > maximum ? logits[c] : maximum;
        }
        softmax->maxima[b] = maximum;
        softmax->sums[b] = 0;
    }
}

static inline float softmax_panel_sum(const struct softmax *softmax, int64_t b,
                                      int64_t panel)
{
    int64_t begin = b * softmax->classes + panel * SOFTMAX_PANEL;
    float sum = 0;

    for (int64_t i = begin; i < begin + SOFTMAX_PANEL; i++) {
        softmax->probabilities[i] = expf(softmax->logits[i] - softmax->maxima[b]);
        sum += softmax->probabilities[i];
    }
    return sum;
}

/* The example that step I of PANEL handles: neighbouring panels go in opposite
 * directions, so that two threads meet somewhere, and nanoseconds decide where. */
static inline int64_t softmax_example(const struct softmax *softmax, int64_t panel,
                                      int64_t i)
{
    return panel % 2 ? softmax->examples - 1 - i : i;
}

static inline void softmax_sum_atomically(const struct softmax *softmax)
{
#pragma omp for schedule(dynamic, 1)
    for (int64_t panel = 0; panel < softmax->panels; panel++) {
        for (int64_t i = 0; i < softmax->examples; i++) {
            int64_t b = softmax_example(softmax, panel, i);
            float sum = softmax_panel_sum(softmax, b, panel);

#pragma omp atomic
            softmax->sums[b] += sum;
        }
    }
}

/* Joins the parts of example B by the fixed tree. */
static inline float softmax_join(const struct softmax *softmax, int64_t b)
{
    float *parts = softmax->parts + b * softmax->panels;

    tree_sum(parts, softmax->panels, 1, 0, 1);
    return parts[0];
}

/* For one thread: everything about example B. */
static inline void softmax_sum_in_order(const struct softmax *softmax, int64_t b)
{
    for (int64_t panel = 0; panel < softmax->panels; panel++) {
        softmax->parts[b * softmax->panels + panel] =
            softmax_panel_sum(softmax, b, panel);
    }
    softmax->sums[b] = softmax_join(softmax, b);
}

/* What a workload adds to the stages of the softmax. */
struct softmax_ends {
    struct probe_value labels, upstream; /* upstream: NULL data where there is none */
    const float *losses, *dlogits;
};

static inline void softmax_probe(struct run *run, const struct softmax *softmax,
                                 const struct softmax_ends *ends)
{
    enum { LOGITS = 1, MAXIMA, EXPONENTIALS, SUMS, LABELS, LOSSES, DLOGITS, UPSTREAM };
    static const struct place places[] = {
        { "softmax/maxima", { LOGITS }, { MAXIMA } },
        { "softmax/exponentials", { LOGITS, MAXIMA }, { EXPONENTIALS } },
        { "softmax/sums", { EXPONENTIALS }, { SUMS } },
        { "loss", { LOGITS, MAXIMA, SUMS, LABELS }, { LOSSES } },
    };
    static const struct place backward = { "loss/backward",
                                           { EXPONENTIALS, SUMS, LABELS, UPSTREAM },
                                           { DLOGITS } };
    static const struct place unscaled = { "loss/backward",
                                           { EXPONENTIALS, SUMS, LABELS },
                                           { DLOGITS } };
    int64_t examples = softmax->examples, elements = examples * softmax->classes;
    const struct probe_value values[UPSTREAM + 1] = {
        [LOGITS] = probe_floats("logits", softmax->logits, elements),
        [MAXIMA] = probe_floats("maxima", softmax->maxima, examples),
        [EXPONENTIALS] = probe_floats("exponentials", softmax->probabilities, elements),
        [SUMS] = probe_floats("sums", softmax->sums, examples),
        [LABELS] = ends->labels,
        [LOSSES] = probe_floats("losses", ends->losses, examples),
        [DLOGITS] = probe_floats("dlogits", ends->dlogits, elements),
        [UPSTREAM] = ends->upstream,
    };

    if (run_probing(run, 0)) {
        places_probe(run, 0, values, places, COUNT_OF(places));
        places_probe(run, 0, values, ends->upstream.data ? &backward : &unscaled, 1);
    }
}

/* What `reference` hooks know of one example. */
struct softmax_exact {
    double maximum, log_sum;
    double sum_error;     /* relative, of S */
    double log_sum_error; /* absolute, of log S */
};

/* Bounds: expf and logf are off by less than 1 ulp (2 units roundoff, relative); a
 * rounded argument t of exp moves its result by |t| units, relative; S is a sum of
 * positive terms. */
static inline struct softmax_exact softmax_exact(const float *logits, int64_t classes)
{
    struct softmax_exact exact = { .maximum = logits[0] };
    double unit = rounding_unit(DTYPE_FLOAT32), range = 0, sum = 0;

    for (int64_t c = 1; c < classes; c++) {
        exact.maximum = fmax(exact.maximum, logits[c]);
    }
    for (int64_t c = 0; c < classes; c++) {
        range = fmax(range, exact.maximum - logits[c]);
        sum += exp(logits[c] - exact.maximum);
    }
    exact.log_sum = log(sum);
    exact.sum_error = rounding_gamma(DTYPE_FLOAT32, classes + 3 + (int64_t)ceil(range));
    exact.log_sum_error =
        exact.sum_error / (1 - exact.sum_error) + 2 * unit * fabs(exact.log_sum);
    return exact;
}

/* The largest error of a computed log probability of LOGIT. */
static inline double softmax_log_error(const struct softmax_exact *exact, double logit)
{
    double distance = exact->maximum - logit;

    return 1.01 * (exact->log_sum_error +
                   rounding_unit(DTYPE_FLOAT32) * (2 * distance + exact->log_sum));
}

/* The largest error of a computed probability, relative. */
static inline double softmax_relative_error(const struct softmax_exact *exact,
                                            double logit)
{
    double distance = exact->maximum - logit;

    return 1.01 * (exact->sum_error + rounding_unit(DTYPE_FLOAT32) * (distance + 4));
}

#endif
