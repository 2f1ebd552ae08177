/* A small recurrent network, trained with the CTC loss by SGD with momentum.
 *
 *   h[t] = tanh(x[t] * input + h[t-1] * recurrent + bias),  logits[t] = h[t] * output
 *
 * The frames of a sequence say which label is spoken: each is the pattern of its label,
 * plus noise, so there is something to learn.  What adds up is each sequence's share of
 * the gradients.  The words of CTC (position, alpha, beta, occupancy) are in ctc_loss.h.
 *
 * Correctness: the bound of the float64 reference is measured, as of the other trainings
 * (train/monte_carlo.h). */
#include "workloads/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/ctc_loss.h"
#include "workloads/shared/exp_log.h"
#include "workloads/shared/references.h"
#include "workloads/shared/tree.h"
#include "workloads/train/monte_carlo.h"
#include "workloads/train/rnn.h"
#include "workloads/train/rnn_probe.h"

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
    VARIABLES = RNN_VARIABLES,
    CHUNK = 64
};

struct rnn {
    const struct rnn_shape *shape;
    const float *patterns, *noises, *initial;
    const int32_t *labels; /* [steps][batch][LABELS], less one */
    float *variables, *velocity, *gradient;
    float *before, *velocity_before; /* variables and velocity before the update */
    float *applied;                  /* the gradient that it used */
    float *parts;                    /* [batch][VARIABLES] */
    float *losses;                   /* [batch] */
    float (*x)[TIME][FEATURES], (*hidden)[TIME + 1][HIDDEN]; /* [batch], as the next */
    float (*log_probs)[TIME][SYMBOLS], (*d_logits)[TIME][SYMBOLS];
};

/* One sequence, for one thread; its arrays are parts of the batch's. */
struct sequence {
    float (*x)[FEATURES], (*hidden)[HIDDEN]; /* hidden[0] is zero */
    float (*log_probs)[SYMBOLS], (*d_logits)[SYMBOLS];
    float log_paths[TIME][POSITIONS];
    const int32_t *labels;
};

static void forward(const float *v, struct sequence *s)
{
    memset(s->hidden[0], 0, HIDDEN * sizeof(float));
    for (int t = 0; t < TIME; t++) {
        float sums[HIDDEN], logits[SYMBOLS] = { 0 }, most = -INFINITY, sum = 0;

        memcpy(sums, v + BIAS, sizeof sums);
        for (int f = 0; f < FEATURES; f++) {
            for (int i = 0; i < HIDDEN; i++) {
                sums[i] += s->x[t][f] * v[INPUT + f * HIDDEN + i];
            }
        }
        for (int j = 0; j < HIDDEN; j++) {
            for (int i = 0; i < HIDDEN; i++) {
                sums[i] += s->hidden[t][j] * v[RECURRENT + j * HIDDEN + i];
            }
        }
        for (int i = 0; i < HIDDEN; i++) {
            s->hidden[t + 1][i] = rnn_tanh(sums[i]);
            for (int k = 0; k < SYMBOLS; k++) {
                logits[k] += s->hidden[t + 1][i] * v[OUTPUT + i * SYMBOLS + k];
            }
        }
        for (int k = 0; k < SYMBOLS; k++) {
            most = logits[k] > most ? logits[k] : most;
        }
        for (int k = 0; k < SYMBOLS; k++) {
            sum += exp_f32(logits[k] - most);
        }
        for (int k = 0; k < SYMBOLS; k++) {
            s->log_probs[t][k] = logits[k] - most - log_f32(sum);
        }
    }
}

/* Leaves alpha + beta in log_paths; returns log p. */
static float paths(struct sequence *s)
{
    float beta[POSITIONS], onward[POSITIONS], log_p;

    for (int t = 0; t < TIME; t++) {
        for (int64_t i = 0; i < POSITIONS; i++) {
            float before = i < 2 ? 0 : -INFINITY;

            if (t > 0) {
                before = rnn_log_add_three(s->log_paths[t - 1], i, -1, i >= 1,
                                           ctc_may_skip(s->labels, i));
            }
            s->log_paths[t][i] = before + s->log_probs[t][ctc_symbol_at(s->labels, i)];
        }
    }
    log_p = rnn_log_add(s->log_paths[TIME - 1][POSITIONS - 1],
                        s->log_paths[TIME - 1][POSITIONS - 2]);
    for (int t = TIME - 1; t >= 0; t--) {
        for (int64_t i = 0; i < POSITIONS; i++) {
            bool skip = i + 2 < POSITIONS && ctc_may_skip(s->labels, i + 2);

            beta[i] = i >= POSITIONS - 2 ? 0 : -INFINITY;
            if (t < TIME - 1) {
                beta[i] = rnn_log_add_three(onward, i, 1, i + 1 < POSITIONS, skip);
            }
        }
        for (int64_t i = 0; i < POSITIONS; i++) {
            onward[i] = beta[i] + s->log_probs[t][ctc_symbol_at(s->labels, i)];
            s->log_paths[t][i] += beta[i];
        }
    }
    return log_p;
}

static float classify(struct sequence *s, int64_t batch)
{
    float log_p = paths(s);

    for (int t = 0; t < TIME; t++) {
        for (int k = 0; k < SYMBOLS; k++) {
            s->d_logits[t][k] = exp_f32(s->log_probs[t][k]);
        }
        for (int64_t i = 0; i < POSITIONS; i++) {
            s->d_logits[t][ctc_symbol_at(s->labels, i)] -=
                exp_f32(s->log_paths[t][i] - log_p);
        }
        for (int k = 0; k < SYMBOLS; k++) {
            s->d_logits[t][k] /= (float)batch;
        }
    }
    return -log_p;
}

/* Back through time: writes the sequence's share of all gradients to PART. */
static void backward(const float *v, const struct sequence *s, float *part)
{
    float onward[HIDDEN] = { 0 }; /* gradient of hidden[t + 1] from the time after */

    memset(part, 0, VARIABLES * sizeof(float));
    for (int t = TIME - 1; t >= 0; t--) {
        float d_sums[HIDDEN];

        for (int i = 0; i < HIDDEN; i++) {
            float hidden = s->hidden[t + 1][i], sum = onward[i];

            for (int k = 0; k < SYMBOLS; k++) {
                sum += s->d_logits[t][k] * v[OUTPUT + i * SYMBOLS + k];
                part[OUTPUT + i * SYMBOLS + k] += hidden * s->d_logits[t][k];
            }
            d_sums[i] = sum * (1 - hidden * hidden);
            part[BIAS + i] += d_sums[i];
        }
        for (int f = 0; f < FEATURES; f++) {
            for (int i = 0; i < HIDDEN; i++) {
                part[INPUT + f * HIDDEN + i] += s->x[t][f] * d_sums[i];
            }
        }
        for (int j = 0; j < HIDDEN; j++) {
            onward[j] = 0;
            for (int i = 0; i < HIDDEN; i++) {
                part[RECURRENT + j * HIDDEN + i] += s->hidden[t][j] * d_sums[i];
                onward[j] += v[RECURRENT + j * HIDDEN + i] * d_sums[i];
            }
        }
    }
}

/* For all threads of the team, as is the next. */
static void gradients_compute(const struct rnn *rnn, int64_t step, bool racing)
{
    int64_t batch = rnn->shape->batch;

#pragma omp for schedule(dynamic, 1)
    for (int64_t b = 0; b < batch; b++) {
        float *part = rnn->parts + b * VARIABLES;
        struct sequence s = { .x = rnn->x[b],
                              .hidden = rnn->hidden[b],
                              .log_probs = rnn->log_probs[b],
                              .d_logits = rnn->d_logits[b],
                              .labels = rnn->labels + (step * batch + b) * LABELS };
        const float *noise = rnn->noises + b * TIME * FEATURES;

        for (int64_t i = 0; i < TIME * FEATURES; i++) {
            s.x[i / FEATURES][i % FEATURES] =
                rnn_frame(rnn->patterns, noise, s.labels, i / FEATURES, i % FEATURES);
        }
        forward(rnn->variables, &s);
        rnn->losses[b] = classify(&s, batch);
        backward(rnn->variables, &s, part);
        for (int64_t i = 0; i < VARIABLES && racing; i++) {
            int64_t at = b % 2 ? VARIABLES - 1 - i : i;

#pragma omp atomic
            rnn->gradient[at] += part[at];
        }
    }
}

static void variables_update(const struct rnn *rnn, bool racing)
{
#pragma omp for
    for (int64_t begin = 0; begin < VARIABLES; begin += CHUNK) {
        int64_t end = begin + CHUNK < VARIABLES ? begin + CHUNK : VARIABLES;

        if (!racing) {
            tree_sum(rnn->parts, rnn->shape->batch, VARIABLES, begin, end);
        }
        for (int64_t i = begin; i < end; i++) {
            rnn->applied[i] = racing ? rnn->gradient[i] : rnn->parts[i];
            rnn->before[i] = rnn->variables[i];
            rnn->velocity_before[i] = rnn->velocity[i];
            rnn->velocity[i] = RNN_MOMENTUM * rnn->velocity[i] + rnn->applied[i];
            rnn->variables[i] -= RNN_RATE * rnn->velocity[i];
            rnn->gradient[i] = 0;
        }
    }
}

static void step_probe(struct run *run, int64_t step)
{
    const struct rnn *rnn = run->state;
    int64_t batch = rnn->shape->batch;

    rnn_probe(
        run, step,
        &(struct rnn_records){ .batch = batch,
                               .labels = rnn->labels + step * batch * LABELS,
                               .x = rnn->x[0][0],
                               .hidden = rnn->hidden[0][0],
                               .log_probs = rnn->log_probs[0][0],
                               .d_logits = rnn->d_logits[0][0],
                               .losses = rnn->losses,
                               .momentum = { .before = rnn->before,
                                             .variables = rnn->variables,
                                             .velocity_before = rnn->velocity_before,
                                             .velocity = rnn->velocity,
                                             .gradient = rnn->applied } });
}

static void train(struct run *run, bool racing)
{
    const struct rnn *rnn = run->state;
    double loss = 0;

    for (int64_t i = 0; i < VARIABLES; i++) {
        rnn->variables[i] = RNN_SPREAD * rnn->initial[i];
        rnn->velocity[i] = rnn->gradient[i] = 0;
    }
    for (int64_t step = 0; step < rnn->shape->steps; step++) {
#pragma omp parallel num_threads(run->threads)
        {
            gradients_compute(rnn, step, racing);
            variables_update(rnn, racing);
        }
        if (run_probing(run, step)) {
            step_probe(run, step);
        }
    }
    for (int64_t b = 0; b < rnn->shape->batch; b++) {
        loss += rnn->losses[b];
    }
    run->loss = loss / (double)rnn->shape->batch;
}

static void compute_unordered(struct run *run)
{
    train(run, true);
}

static void compute_ordered(struct run *run)
{
    train(run, false);
}

static void setup(struct run *run)
{
    const struct rnn_shape *shape = run->size->params;
    struct rnn *rnn = run_host_alloc(sizeof *rnn);
    int64_t patterns[] = { SYMBOLS - 1, FEATURES }, variables = VARIABLES;
    int64_t noises[] = { shape->batch, TIME, FEATURES };
    int64_t labels[] = { shape->steps, shape->batch, LABELS };

    rnn->shape = shape;
    rnn->patterns = run_input_f32(run, "patterns", 2, patterns, FILL_UNIFORM);
    rnn->noises = run_input_f32(run, "noises", 3, noises, FILL_UNIFORM);
    rnn->labels = run_input_i32(run, "labels_less_one", 3, labels, SYMBOLS - 1);
    rnn->initial = run_input_f32(run, "initial", 1, &variables, FILL_UNIFORM);
    rnn->variables = run_output_f32(run, "variables", 1, &variables);
    rnn->velocity = run_alloc(run, VARIABLES * sizeof(float));
    rnn->gradient = run_alloc(run, VARIABLES * sizeof(float));
    rnn->before = run_alloc(run, VARIABLES * sizeof(float));
    rnn->velocity_before = run_alloc(run, VARIABLES * sizeof(float));
    rnn->applied = run_alloc(run, VARIABLES * sizeof(float));
    rnn->parts = run_alloc_f32(run, shape->batch * VARIABLES);
    rnn->losses = run_alloc_f32(run, shape->batch);
    rnn->x = run_alloc(run, (size_t)shape->batch * sizeof *rnn->x);
    rnn->hidden = run_alloc(run, (size_t)shape->batch * sizeof *rnn->hidden);
    rnn->log_probs = run_alloc(run, (size_t)shape->batch * sizeof *rnn->log_probs);
    rnn->d_logits = run_alloc(run, (size_t)shape->batch * sizeof *rnn->d_logits);
    run->state = rnn;
}

/* Inputs, in order of creation. */
enum rnn_input { RNN_PATTERNS, RNN_NOISES, RNN_SPOKEN, RNN_INITIAL };

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

static void rnn_reference(const struct run *run, const struct tensor *inputs,
                          const struct tensor *output, double *ret_expected,
                          double *ret_bound)
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

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each sequence adds its gradients with atomic adds",
      .models = "training without fixes",
      .algorithm = "log-domain CTC, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "the gradients of the sequences are joined by a fixed tree",
      .models = "training with all fixes, TF_DETERMINISTIC_OPS in TF 2.6",
      .algorithm = "log-domain CTC, fixed tree",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "4 steps of 96 sequences of 20 frames, 24 hidden units",
      &(const struct rnn_shape){ 96, 4 } },
    { "medium", "32 steps of 256 sequences of 20 frames, 24 hidden units",
      &(const struct rnn_shape){ 256, 32 } },
    { "large", "256 steps of 1024 sequences of 20 frames, 24 hidden units",
      &(const struct rnn_shape){ 1024, 256 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_COMMIT(
        9e096deb, c4a0909deb69970f38bee7b77e5e5f7d,
        "selects cuDNN's deterministic CTC loss, in TF 2.3; a bug kept it from working",
        "merged 2020-06", "TF 2.6"),
    TENSORFLOW_PR(52227, "tests the deterministic cuDNN CTC loss", "merged 2023-07",
                  "TF 2.7"),
};

static const struct workload train_rnn_ctc = {
    .name = "train_rnn_ctc",
    .version = 2,
    .title = "Training of a small recurrent network with CTC loss",
    .summary = "tanh network, CTC loss, SGD with momentum",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of all variables after the last step",
    .loss = "mean loss of the last step's sequences",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = rnn_reference,
};
WORKLOAD_REGISTER(train_rnn_ctc);
