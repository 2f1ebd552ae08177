/* A training in one piece, and one that is saved half-way and resumed by another process.
 *
 * The training is that of checkpoint/halves.h.  `resumed` trains half the steps, saves
 * the state to a file (checkpoint/file.h) and starts the worker again: a fresh process,
 * which gets the case, makes the same inputs from the seed, sets the initial state, takes
 * from the file what is there, trains the other half, and leaves the last state in the
 * file.  Its digest must be that of `ordered`, which trains in one piece.
 *
 * Each `no_...` variant leaves one part of the state out of the file.  It is as
 * repeatable as the others and right in its own way (the reference leaves out the same),
 * but it is another training: its digest must not be that of `ordered`.  Momentum is an
 * output too, since it shows differences that are too small to move a weight.  What must
 * vary, the control, is the resumed training with gradients added in no fixed order.
 * Times include the second process.
 *
 * Bound: softmax regression has no kinks.  A change of all weights by at most d changes a
 * logit by at most X d, X being the largest sum of an example's magnitudes, a probability
 * by at most 2.1 X d (while X d is small), and so a gradient by at most 2.1 x X d, x
 * being the largest magnitude.  Rounding adds, to a gradient, what reference_rounding
 * says.  The reference carries both on through momentum and steps. */
#include "workloads/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/checkpoint/halves.h"
#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"

enum {
    FEATURES = TRAINING_FEATURES,
    CLASSES = TRAINING_CLASSES,
    WEIGHTS = TRAINING_WEIGHTS,
    BATCH = TRAINING_BATCH
};

static double train(struct run *run, int first, int end)
{
    const struct halves *halves = run->state;

    memset(halves->data.gradient, 0, WEIGHTS * sizeof(float));
    for (int step = first; step < end; step++) {
        *halves->before = *halves->now;
        training_step(&halves->data, halves->now, run->threads, run->variant->control);
        if (run_probing(run, step)) {
            halves_probe(run, step, halves->now->weights, halves->now->velocity);
        }
    }
    return training_loss(&halves->data);
}

static void output_write(void *device, const void *host, size_t bytes)
{
    memcpy(device, host, bytes);
}

static void setup(struct run *run)
{
    struct halves_inputs inputs;
    struct halves *halves = halves_init(run, &inputs);
    struct training_data *data = &halves->data;

    data->initial = inputs.initial;
    data->seed = (uint64_t)*inputs.seed;
    data->gradient = run_alloc(run, WEIGHTS * sizeof(float));
    data->applied = run_alloc(run, WEIGHTS * sizeof(float));
    data->parts = run_alloc(run, (size_t)TRAINING_GROUPS * WEIGHTS * sizeof(float));
    data->losses = run_alloc(run, BATCH * sizeof(float));
    data->overflow = run_alloc(run, sizeof *data->overflow);
    halves->train = train;
    halves->write = output_write;
}

/* The state of the reference; scalars as in struct training. */
struct exact {
    double weights[WEIGHTS], velocity[WEIGHTS];
    double weights_error, velocity_error; /* no element is off by more */
    struct training scalars;              /* its arrays are not used */
    double largest_x, largest_sum;        /* x and X of this step */
};

static void reference_example(struct exact *exact, const struct tensor *inputs, int64_t b,
                              double *gradient)
{
    int64_t at = (exact->scalars.position + b) % inputs[2].shape[0];
    int64_t example = ((const int32_t *)inputs[2].data)[at];
    const float *values = (const float *)inputs[0].data + example * FEATURES;
    double x[FEATURES], p[CLASSES] = { 0 }, sum = 0, magnitudes = 0;

    for (int64_t d = 0; d < FEATURES; d++) {
        x[d] =
            (double)values[d] * training_keep(exact->scalars.generator, b * FEATURES + d);
        magnitudes += fabs(x[d]);
        exact->largest_x = fmax(exact->largest_x, fabs(x[d]));
        for (int64_t c = 0; c < CLASSES; c++) {
            p[c] += x[d] * exact->weights[d * CLASSES + c];
        }
    }
    exact->largest_sum = fmax(exact->largest_sum, magnitudes);
    for (int64_t c = 0; c < CLASSES; c++) {
        p[c] = exp(p[c]);
        sum += p[c];
    }
    for (int64_t i = 0; i < WEIGHTS; i++) {
        int64_t c = i % CLASSES;
        bool is_label = c == ((const int32_t *)inputs[1].data)[example];

        gradient[i] += x[i / CLASSES] * (p[c] / sum - is_label) / BATCH;
    }
}

/* How far rounding alone takes an element of the gradient.  W, the largest weight, bounds
 * every logit by X W; exp and log are off by less than 1 ulp, and an argument of exp
 * that is rounded moves its result by up to 2 X W units. */
static double reference_rounding(const struct exact *exact, enum dtype dtype)
{
    double largest = 0, logit;

    for (int64_t i = 0; i < WEIGHTS; i++) {
        largest = fmax(largest, fabs(exact->weights[i]));
    }
    logit = exact->largest_sum * largest;
    return exact->largest_x *
           (2.1 * logit * (rounding_gamma(dtype, FEATURES) + 2 * rounding_unit(dtype)) +
            rounding_gamma(dtype, CLASSES + BATCH + 16));
}

static void reference_update(struct exact *exact, const double *gradient,
                             enum dtype dtype)
{
    double unit = rounding_unit(dtype), rate = exact->scalars.rate;
    double rounding = reference_rounding(exact, dtype);

    exact->velocity_error =
        (double)TRAINING_MOMENTUM * exact->velocity_error + rounding +
        2.1 * exact->largest_x * exact->largest_sum * exact->weights_error;
    for (int64_t i = 0; i < WEIGHTS; i++) {
        exact->velocity[i] = (double)TRAINING_MOMENTUM * exact->velocity[i] + gradient[i];
        exact->weights[i] -= rate * exact->velocity[i];
    }
    /* Velocities are below 2 x / (1 - TRAINING_MOMENTUM), weights below 1. */
    exact->velocity_error += 2 * unit * 20 * exact->largest_x;
    exact->weights_error += rate * exact->velocity_error + 3 * unit;
}

static void reference_step(struct exact *exact, const struct tensor *inputs,
                           enum dtype dtype)
{
    double *gradient = run_host_alloc(WEIGHTS * sizeof *gradient), largest = 0;
    bool overflow;

    exact->largest_x = exact->largest_sum = 0;
    memset(gradient, 0, WEIGHTS * sizeof *gradient);
    for (int64_t b = 0; b < BATCH; b++) {
        reference_example(exact, inputs, b, gradient);
    }
    for (int64_t i = 0; i < WEIGHTS; i++) {
        largest = fmax(largest, fabs(gradient[i]));
    }
    overflow = largest * exact->scalars.scale > TRAINING_HALF_MAX;
    if (!overflow) {
        reference_update(exact, gradient, dtype);
    }
    training_step_end(&exact->scalars, inputs[2].shape[0], overflow);
    free(gradient);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    struct exact *exact = run_host_alloc(sizeof *exact);
    struct training first = { .rate = TRAINING_FIRST_RATE,
                              .scale = TRAINING_SCALE,
                              .generator = (uint64_t) * (const int64_t *)inputs[4].data };
    enum training_part omitted = halves_omitted(run);
    bool is_weights = strcmp(output->name, "weights") == 0;

    memset(exact, 0, sizeof *exact);
    exact->scalars = first;
    for (int64_t i = 0; i < WEIGHTS; i++) {
        exact->weights[i] = TRAINING_SPREAD * ((const float *)inputs[3].data)[i];
    }
    for (int step = 0; step < HALVES_STEPS; step++) {
        if (step == HALVES_STEPS / 2 && omitted == OPTIMIZER) {
            memset(exact->velocity, 0, sizeof exact->velocity);
        } else if (step == HALVES_STEPS / 2) {
            training_part_copy(&exact->scalars, &first, omitted);
        }
        reference_step(exact, inputs, run->dtype);
    }
    for (int64_t i = 0; i < tensor_elements(output); i++) {
        ret_expected[i] = is_weights ? exact->weights[i] : exact->velocity[i];
        ret_bound[i] = is_weights ? exact->weights_error : exact->velocity_error;
    }
    free(exact);
}

static const struct workload_size sizes[] = {
    { "small", "4 steps of 512 of 2048 examples x[64], weights[64,32]",
      &(const int64_t){ 2048 } },
    { "medium", "4 steps of 512 of 65536 examples x[64], weights[64,32]",
      &(const int64_t){ 65536 } },
};

static const struct workload_reference references[] = {
    PYTORCH_PAGE("Reproducible Checkpointing", "reproducible-checkpointing",
                 "the list of state to save: one variant leaves out each part of it"),
};

static const struct workload checkpoint_resume = {
    .name = "checkpoint_resume",
    .version = 4,
    .title = "Reproducible Checkpointing",
    .summary =
        "a training in one piece, and one that a fresh process resumed from a checkpoint",
    .variants = halves_variants,
    .variant_count = HALVES_VARIANTS,
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the weights after the last step",
    .loss = "mean loss of the last step's batch",
    WORKLOAD_REFERENCES(references),
    .relations = halves_relations,
    .relation_count = HALVES_RELATIONS,
    .setup = setup,
    .reference = reference,
    .resume = halves_resume,
};
WORKLOAD_REGISTER(checkpoint_resume);
