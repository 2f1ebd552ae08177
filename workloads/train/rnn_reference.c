#include "workloads/train/rnn_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/ctc_loss.h"
#include "workloads/train/monte_carlo.h"
#include "workloads/train/rnn.h"

enum {
    FEATURES = RNN_FEATURES,
    HIDDEN = RNN_HIDDEN,
    SYMBOLS = RNN_SYMBOLS,
    TIME = RNN_TIME,
    LABELS = RNN_LABELS,
    POSITIONS = RNN_POSITIONS,
    INPUT = RNN_INPUT,
    RECURRENT = RNN_RECURRENT,
    BIAS = RNN_BIAS,
    OUTPUT = RNN_OUTPUT,
    VARIABLES = RNN_VARIABLES
};

/* The training in float64. */
struct exact {
    double variables[VARIABLES], velocity[VARIABLES];
    double gradient[VARIABLES], magnitude[VARIABLES];
    double hidden[TIME + 1][HIDDEN], softmax[TIME * SYMBOLS];
    double d_logits[TIME][SYMBOLS], x[TIME][FEATURES];
    struct monte_carlo moves;
};

static void exact_forward(struct exact *e)
{
    const double *v = e->variables;

    for (int t = 0; t < TIME; t++) {
        for (int i = 0; i < HIDDEN; i++) {
            double sum = v[BIAS + i];

            for (int f = 0; f < FEATURES; f++) {
                sum += e->x[t][f] * v[INPUT + f * HIDDEN + i];
            }
            for (int j = 0; j < HIDDEN; j++) {
                sum += e->hidden[t][j] * v[RECURRENT + j * HIDDEN + i];
            }
            e->hidden[t + 1][i] = tanh(monte_carlo_move(&e->moves, sum, fabs(sum) + 1));
        }
        for (int k = 0; k < SYMBOLS; k++) {
            double sum = 0;

            for (int i = 0; i < HIDDEN; i++) {
                sum += e->hidden[t + 1][i] * v[OUTPUT + i * SYMBOLS + k];
            }
            e->softmax[t * SYMBOLS + k] =
                exp(monte_carlo_move(&e->moves, sum, fabs(sum) + 1));
        }
        ctc_row_scale(e->softmax + (ptrdiff_t)t * SYMBOLS, SYMBOLS);
    }
}

static void exact_classify(struct exact *e, const int32_t *labels, int64_t batch)
{
    double occupancies[TIME * POSITIONS];
    struct ctc_paths ctc = { .time = TIME,
                             .positions = POSITIONS,
                             .labels = labels,
                             .softmax = e->softmax,
                             .symbols = SYMBOLS,
                             .occupancies = occupancies };

    ctc_reference_occupancies(&ctc);
    for (int t = 0; t < TIME; t++) {
        for (int k = 0; k < SYMBOLS; k++) {
            e->d_logits[t][k] = e->softmax[t * SYMBOLS + k];
        }
        for (int64_t i = 0; i < POSITIONS; i++) {
            e->d_logits[t][ctc_symbol_at(labels, i)] -= occupancies[t * POSITIONS + i];
        }
        /* A path's logarithm is a sum over all times: it rounds by TIME units and more.
         */
        for (int k = 0; k < SYMBOLS; k++) {
            e->d_logits[t][k] =
                monte_carlo_move(&e->moves, e->d_logits[t][k], TIME) / (double)batch;
        }
    }
}

static void exact_add(struct exact *e, int at, double term)
{
    e->gradient[at] += term;
    e->magnitude[at] += fabs(term);
}

static void exact_backward(struct exact *e)
{
    double onward[HIDDEN] = { 0 };

    for (int t = TIME - 1; t >= 0; t--) {
        double d_sums[HIDDEN];

        for (int i = 0; i < HIDDEN; i++) {
            double hidden = e->hidden[t + 1][i], sum = onward[i];

            for (int k = 0; k < SYMBOLS; k++) {
                sum += e->d_logits[t][k] * e->variables[OUTPUT + i * SYMBOLS + k];
                exact_add(e, OUTPUT + i * SYMBOLS + k, hidden * e->d_logits[t][k]);
            }
            d_sums[i] = sum * (1 - hidden * hidden);
            exact_add(e, BIAS + i, d_sums[i]);
            for (int f = 0; f < FEATURES; f++) {
                exact_add(e, INPUT + f * HIDDEN + i, e->x[t][f] * d_sums[i]);
            }
        }
        for (int j = 0; j < HIDDEN; j++) {
            onward[j] = 0;
            for (int i = 0; i < HIDDEN; i++) {
                int at = RECURRENT + j * HIDDEN + i;

                exact_add(e, at, e->hidden[t][j] * d_sums[i]);
                onward[j] += e->variables[at] * d_sums[i];
            }
        }
    }
}

static void exact_train(struct exact *e, const struct rnn_shape *shape,
                        const struct tensor *inputs)
{
    for (int64_t at = 0; at < shape->steps * shape->batch; at++) {
        const int32_t *labels = (const int32_t *)inputs[RNN_SPOKEN].data + at * LABELS;
        const float *noise =
            (const float *)inputs[RNN_NOISES].data + at % shape->batch * TIME * FEATURES;

        for (int64_t i = 0; i < TIME * FEATURES; i++) {
            e->x[i / FEATURES][i % FEATURES] = rnn_frame(
                inputs[RNN_PATTERNS].data, noise, labels, i / FEATURES, i % FEATURES);
        }
        exact_forward(e);
        exact_classify(e, labels, shape->batch);
        exact_backward(e);
        for (int i = 0; i < VARIABLES && (at + 1) % shape->batch == 0; i++) {
            e->velocity[i] = (double)RNN_MOMENTUM * e->velocity[i] +
                             monte_carlo_move(&e->moves, e->gradient[i], e->magnitude[i]);
            e->variables[i] -= (double)RNN_RATE * e->velocity[i];
            e->variables[i] =
                monte_carlo_move(&e->moves, e->variables[i], fabs(e->variables[i]));
            e->gradient[i] = e->magnitude[i] = 0;
        }
    }
}

void rnn_reference(const struct run *run, const struct tensor *inputs,
                   const struct tensor *output, double *ret_expected, double *ret_bound)
{
    struct exact *e = run_host_alloc(sizeof *e);
    double most = 0;

    (void)output;
    for (int sample = 0; sample <= MONTE_CARLO_SAMPLES; sample++) {
        memset(e, 0, sizeof *e);
        e->moves = monte_carlo_sample(sample, run->dtype);
        for (int i = 0; i < VARIABLES; i++) {
            e->variables[i] = RNN_SPREAD * ((const float *)inputs[RNN_INITIAL].data)[i];
        }
        exact_train(e, run->size->params, inputs);
        if (sample == 0) {
            memcpy(ret_expected, e->variables, sizeof e->variables);
        }
        for (int i = 0; i < VARIABLES; i++) {
            most = fmax(most, fabs(e->variables[i] - ret_expected[i]));
        }
    }
    for (int i = 0; i < VARIABLES; i++) {
        ret_bound[i] = MONTE_CARLO_DISTANCES * most;
    }
    free(e);
}
