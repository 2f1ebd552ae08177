/* The float64 reference of the trainings of cnn.h, and the bound that is measured for it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/train/cnn.h"
#include "workloads/train/monte_carlo.h"

/* A training in float64.  Images are [side][side][channels], without padding. */
struct training {
    const struct cnn_shape *shape;
    struct cnn_layout layout;
    const struct tensor *inputs;
    double *variables, *velocity, *gradient, *magnitude;
    double *x, *active1, *pooled1, *active2, *pooled2, *d_pooled1, *d_sum1, *d_sum2;
    int64_t *winners1, *winners2;
    struct monte_carlo moves;
};

/* A 3x3 convolution, bias and ReLU. */
static void forward_convolution(struct training *t, int64_t side, int64_t in, int64_t out,
                                const double *weights, const double *bias,
                                const double *x, double *y)
{
    for (int64_t i = 0; i < side * side * out; i++) {
        int64_t row = i / out / side, column = i / out % side, k = i % out;
        double sum = bias[k], magnitude = fabs(bias[k]);

        for (int64_t tap = 0; tap < CNN_TAPS; tap++) {
            int64_t h = row + tap / 3 - 1, w = column + tap % 3 - 1;

            if (h < 0 || h >= side || w < 0 || w >= side) {
                continue;
            }
            for (int64_t c = 0; c < in; c++) {
                double term =
                    x[(h * side + w) * in + c] * weights[(tap * in + c) * out + k];

                sum += term;
                magnitude += fabs(term);
            }
        }
        sum = monte_carlo_move(&t->moves, sum, magnitude);
        y[i] = sum > 0 ? sum : 0;
    }
}

/* Adds to the gradients of weights and bias, and to DX unless it is NULL. */
static void backward_convolution(struct training *t, int64_t side, int64_t in,
                                 int64_t out, int64_t weights, int64_t bias,
                                 const double *x, const double *dy, double *dx)
{
    for (int64_t i = 0; i < side * side * out; i++) {
        int64_t row = i / out / side, column = i / out % side, k = i % out;

        t->gradient[bias + k] += dy[i];
        t->magnitude[bias + k] += fabs(dy[i]);
        for (int64_t tap = 0; tap < CNN_TAPS && dy[i] != 0; tap++) {
            int64_t h = row + tap / 3 - 1, w = column + tap % 3 - 1;

            if (h < 0 || h >= side || w < 0 || w >= side) {
                continue;
            }
            for (int64_t c = 0; c < in; c++) {
                int64_t from = (h * side + w) * in + c;
                int64_t at = weights + (tap * in + c) * out + k;

                t->gradient[at] += x[from] * dy[i];
                t->magnitude[at] += fabs(x[from] * dy[i]);
                if (dx) {
                    dx[from] += dy[i] * t->variables[at];
                }
            }
        }
    }
}

static void forward_pooling(int64_t side, int64_t channels, const double *x, double *y,
                            int64_t *winners)
{
    for (int64_t i = 0; i < side / 2 * (side / 2) * channels; i++) {
        int64_t row = i / channels / (side / 2), column = i / channels % (side / 2);

        winners[i] = -1;
        for (int64_t tap = 0; tap < CNN_TAPS; tap++) {
            int64_t h = 2 * row + tap / 3 - 1, w = 2 * column + tap % 3 - 1;
            int64_t from = (h * side + w) * channels + i % channels;

            if (h >= 0 && w >= 0 && (winners[i] < 0 || x[from] > x[winners[i]])) {
                winners[i] = from;
            }
        }
        y[i] = x[winners[i]];
    }
}

/* Dropout, dense layer and loss.  Leaves the gradient in DX. */
static void classify(struct training *t, int64_t label, const int32_t *drops, double *dx)
{
    int64_t features = t->layout.features;
    const double *weights = t->variables + t->layout.weights3;
    double scale = CNN_KEEP_SCALE, sum = 0, p[CNN_CLASSES];

    for (int64_t c = 0; c < CNN_CLASSES; c++) {
        p[c] = t->variables[t->layout.bias3 + c];
        for (int64_t f = 0; f < features; f++) {
            p[c] += drops[f] ? scale * t->pooled2[f] * weights[f * CNN_CLASSES + c] : 0;
        }
        p[c] = exp(monte_carlo_move(&t->moves, p[c], fabs(p[c]) + 1));
        sum += p[c];
    }
    for (int64_t c = 0; c < CNN_CLASSES; c++) {
        p[c] = (p[c] / sum - (c == label)) / (double)t->shape->batch;
        t->gradient[t->layout.bias3 + c] += p[c];
        t->magnitude[t->layout.bias3 + c] += fabs(p[c]);
    }
    for (int64_t f = 0; f < features; f++) {
        dx[f] = 0;
        for (int64_t c = 0; c < CNN_CLASSES && drops[f]; c++) {
            int64_t at = t->layout.weights3 + f * CNN_CLASSES + c;

            dx[f] += scale * p[c] * t->variables[at];
            t->gradient[at] += scale * t->pooled2[f] * p[c];
            t->magnitude[at] += fabs(scale * t->pooled2[f] * p[c]);
        }
    }
}

/* What comes back through pooling and ReLU, to the sum before them. */
static void unpool(int64_t side, int64_t channels, const int64_t *winners,
                   const double *active, const double *dy, double *dx)
{
    memset(dx, 0, (size_t)(side * side * channels) * sizeof *dx);
    for (int64_t i = 0; i < side / 2 * (side / 2) * channels; i++) {
        if (active[winners[i]] > 0) {
            dx[winners[i]] += dy[i];
        }
    }
}

static void train_example(struct training *t, int64_t example, const int32_t *drops)
{
    const struct cnn_shape *s = t->shape;
    const struct cnn_layout *l = &t->layout;
    int64_t pixels = s->side * s->side, half = s->side / 2;
    int64_t label = ((const int32_t *)t->inputs[CNN_LABELS].data)[example];
    const float *pattern = (const float *)t->inputs[CNN_PATTERNS].data + label * pixels;
    const float *noise = (const float *)t->inputs[CNN_NOISES].data + example * pixels;
    double *d_pooled2 = t->d_pooled1; /* is not yet in use */

    for (int64_t i = 0; i < pixels; i++) {
        t->x[i] = pattern[i] + CNN_NOISE * noise[i];
    }
    forward_convolution(t, s->side, 1, s->channels1, t->variables + l->weights1,
                        t->variables + l->bias1, t->x, t->active1);
    forward_pooling(s->side, s->channels1, t->active1, t->pooled1, t->winners1);
    forward_convolution(t, half, s->channels1, s->channels2, t->variables + l->weights2,
                        t->variables + l->bias2, t->pooled1, t->active2);
    forward_pooling(half, s->channels2, t->active2, t->pooled2, t->winners2);
    classify(t, label, drops, d_pooled2);
    unpool(half, s->channels2, t->winners2, t->active2, d_pooled2, t->d_sum2);
    memset(t->d_pooled1, 0, (size_t)(half * half * s->channels1) * sizeof(double));
    backward_convolution(t, half, s->channels1, s->channels2, l->weights2, l->bias2,
                         t->pooled1, t->d_sum2, t->d_pooled1);
    unpool(s->side, s->channels1, t->winners1, t->active1, t->d_pooled1, t->d_sum1);
    backward_convolution(t, s->side, 1, s->channels1, l->weights1, l->bias1, t->x,
                         t->d_sum1, NULL);
}

static double *doubles(int64_t count)
{
    double *memory = run_host_alloc((size_t)count * sizeof *memory);

    memset(memory, 0, (size_t)count * sizeof *memory);
    return memory;
}

static void training_init(struct training *t)
{
    const struct cnn_shape *s = t->shape;
    int64_t whole = s->side * s->side, half = whole / 4, quarter = half / 4;
    int64_t most = s->channels1 > s->channels2 ? s->channels1 : s->channels2;

    t->layout = cnn_layout_of(s);
    t->variables = doubles(t->layout.count);
    t->velocity = doubles(t->layout.count);
    t->gradient = doubles(t->layout.count);
    t->magnitude = doubles(t->layout.count);
    t->x = doubles(whole);
    t->active1 = doubles(whole * s->channels1);
    t->pooled1 = doubles(half * s->channels1);
    t->active2 = doubles(half * s->channels2);
    t->pooled2 = doubles(quarter * s->channels2);
    t->d_pooled1 = doubles(half * most);
    t->d_sum1 = doubles(whole * s->channels1);
    t->d_sum2 = doubles(half * s->channels2);
    t->winners1 = run_host_alloc((size_t)(half * s->channels1) * sizeof(int64_t));
    t->winners2 = run_host_alloc((size_t)(quarter * s->channels2) * sizeof(int64_t));
}

static void training_release(struct training *t)
{
    double *all[] = { t->variables, t->velocity, t->gradient,  t->magnitude,
                      t->x,         t->active1,  t->pooled1,   t->active2,
                      t->pooled2,   t->d_sum1,   t->d_pooled1, t->d_sum2 };

    for (int i = 0; i < COUNT_OF(all); i++) {
        free(all[i]);
    }
    free(t->winners1);
    free(t->winners2);
}

static void train(struct training *t)
{
    const struct cnn_shape *s = t->shape;
    const int32_t *order = t->inputs[CNN_ORDER].data;
    const int32_t *drops = t->inputs[CNN_DROPS].data;
    const float *initial = t->inputs[CNN_INITIAL].data;

    training_init(t);
    for (int64_t i = 0; i < t->layout.count; i++) {
        t->variables[i] = cnn_initial(s, &t->layout, i, initial[i]);
    }
    for (int64_t at = 0; at < s->steps * s->batch; at++) {
        train_example(t, order[at], drops + at * t->layout.features);
        for (int64_t i = 0; i < t->layout.count && (at + 1) % s->batch == 0; i++) {
            t->velocity[i] = (double)CNN_MOMENTUM * t->velocity[i] +
                             monte_carlo_move(&t->moves, t->gradient[i], t->magnitude[i]);
            t->variables[i] -= (double)CNN_LEARNING_RATE * t->velocity[i];
            t->variables[i] =
                monte_carlo_move(&t->moves, t->variables[i], fabs(t->variables[i]));
            t->gradient[i] = t->magnitude[i] = 0;
        }
    }
}

/* The bound of a variable's elements [BEGIN, END) covers MONTE_CARLO_DISTANCES times the
 * largest distance between DEVIATED and what is expected. */
static void bound_widen(const double *expected, const double *deviated, int64_t begin,
                        int64_t end, double *bound)
{
    double most = 0;

    for (int64_t i = begin; i < end; i++) {
        most = fmax(most, fabs(expected[i] - deviated[i]));
    }
    for (int64_t i = begin; i < end; i++) {
        bound[i] = fmax(bound[i], MONTE_CARLO_DISTANCES * most);
    }
}

void cnn_reference(const struct run *run, const struct tensor *inputs,
                   const struct tensor *output, double *ret_expected, double *ret_bound)
{
    struct training samples[MONTE_CARLO_SAMPLES + 1];
    size_t bytes = (size_t)tensor_elements(output) * sizeof(double);

    memset(ret_bound, 0, bytes);
#pragma omp parallel for schedule(dynamic, 1)
    for (int sample = 0; sample <= MONTE_CARLO_SAMPLES; sample++) {
        samples[sample] = (struct training){
            .shape = run->size->params,
            .inputs = inputs,
            .moves = monte_carlo_sample(sample, run->dtype),
        };
        train(&samples[sample]);
    }
    memcpy(ret_expected, samples[0].variables, bytes);
    for (int sample = 0; sample <= MONTE_CARLO_SAMPLES; sample++) {
        const double *variables = samples[sample].variables;
        const struct cnn_layout *l = &samples[sample].layout;

        bound_widen(ret_expected, variables, 0, l->bias1, ret_bound);
        bound_widen(ret_expected, variables, l->bias1, l->weights2, ret_bound);
        bound_widen(ret_expected, variables, l->weights2, l->bias2, ret_bound);
        bound_widen(ret_expected, variables, l->bias2, l->weights3, ret_bound);
        bound_widen(ret_expected, variables, l->weights3, l->bias3, ret_bound);
        bound_widen(ret_expected, variables, l->bias3, l->count, ret_bound);
        training_release(&samples[sample]);
    }
}
