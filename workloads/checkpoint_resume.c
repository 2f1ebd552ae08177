/* A training in one piece, and one that is saved half-way and resumed.
 *
 * Softmax regression with dropout, by SGD with momentum, on a shuffled data set.  Its
 * state is what the PyTorch document lists: the model, the optimizer (momentum), the
 * learning rate schedule, the step counter, the data loader and the random number
 * generator. `resumed` trains half the steps, writes all of it to a checkpoint,
 * overwrites everything with garbage, begins anew as a fresh process would, and reads the
 * checkpoint: its digest must be that of `ordered`, which trains in one piece.
 *
 * Each `no_...` variant leaves one part out, which so begins anew.  It is as repeatable
 * as the others and right in its own way (the reference leaves out the same), but it is
 * another training: its digest must not be that of `ordered`.  Momentum is an output too,
 * since it shows differences that are too small to move a weight.  What must vary, the
 * control, is the resumed training with gradients added in no fixed order.
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

#include "workloads/instruments/bits.h"
#include "workloads/rounding.h"
#include "workloads/tree.h"

enum { FEATURES = 64, CLASSES = 32, WEIGHTS = FEATURES * CLASSES };
enum { BATCH = 1024, GROUP = 4, GROUPS = BATCH / GROUP, STEPS = 4, HALF = STEPS / 2 };
enum { DECAY_STEPS = 3, CHUNK = 64 };

static const float FIRST_RATE = 0x1p-9F, DECAY = 0.5F, MOMENTUM = 0.9F, SPREAD = 0.25F;

/* The increment of SplitMix64. */
static const uint64_t increment = 0x9e3779b97f4a7c15;

enum part { MODEL, OPTIMIZER, SCHEDULE, STEP, LOADER, GENERATOR, NOTHING };

struct training {
    float weights[WEIGHTS];
    float velocity[WEIGHTS];
    float rate;         /* the schedule: multiplied by DECAY after steps 1, 4, 7 … */
    int64_t step;       /* counts steps, for the schedule */
    int64_t position;   /* of the loader, in the shuffled examples */
    uint64_t generator; /* of dropout masks */
};

struct resume {
    int64_t examples;
    const float *x, *initial;
    const int32_t *labels, *order;
    const int64_t *seed;
    float *weights, *velocity; /* outputs */
    struct training *now, *checkpoint;
    float *gradient;
    float *parts; /* [GROUPS][WEIGHTS] */
    float losses[BATCH];
};

/* 0 or 2: element I of the batch is dropped or kept. */
static float keep(uint64_t generator, int64_t i)
{
    return (mix64(generator + increment * (uint64_t)(i + 1)) & 1) ? 2 : 0;
}

static void part_copy(struct training *to, const struct training *from, enum part part)
{
    switch (part) {
    case MODEL:
        memcpy(to->weights, from->weights, sizeof(to->weights));
        break;
    case OPTIMIZER:
        memcpy(to->velocity, from->velocity, sizeof(to->velocity));
        break;
    case SCHEDULE:
        to->rate = from->rate;
        break;
    case STEP:
        to->step = from->step;
        break;
    case LOADER:
        to->position = from->position;
        break;
    case GENERATOR:
        to->generator = from->generator;
        break;
    case NOTHING:
        break;
    }
}

static void training_begin(const struct resume *resume, struct training *training)
{
    memset(training, 0, sizeof(*training));
    for (int64_t i = 0; i < WEIGHTS; i++)
        training->weights[i] = SPREAD * resume->initial[i];
    training->rate = FIRST_RATE;
    training->generator = (uint64_t)*resume->seed;
}

static void training_interrupt(const struct resume *resume, enum part omitted)
{
    struct training *now = resume->now, *checkpoint = resume->checkpoint;

    memcpy(checkpoint, now, sizeof(*checkpoint));
    memset(now, 0xa5, sizeof(*now));
    training_begin(resume, now);
    for (enum part part = MODEL; part < NOTHING; part++)
        if (part != omitted)
            part_copy(now, checkpoint, part);
}

/* Adds the gradient of example B of the batch to PART. */
static float example_gradient(const struct resume *resume, int64_t b, float *part)
{
    const struct training *now = resume->now;
    int64_t example = resume->order[(now->position + b) % resume->examples];
    int32_t label = resume->labels[example];
    float x[FEATURES], p[CLASSES] = { 0 }, most = -INFINITY, sum = 0, loss;

    for (int64_t d = 0; d < FEATURES; d++) {
        x[d] = resume->x[example * FEATURES + d] * keep(now->generator, b * FEATURES + d);
        for (int64_t c = 0; c < CLASSES; c++)
            p[c] += x[d] * now->weights[d * CLASSES + c];
    }
    for (int64_t c = 0; c < CLASSES; c++)
        most = p[c] > most ? p[c] : most;
    loss = most - p[label];
    for (int64_t c = 0; c < CLASSES; c++) {
        p[c] = expf(p[c] - most);
        sum += p[c];
    }
    for (int64_t c = 0; c < CLASSES; c++)
        p[c] = (p[c] / sum - (c == label ? 1.0F : 0.0F)) / BATCH;
    for (int64_t d = 0; d < FEATURES; d++)
        for (int64_t c = 0; c < CLASSES; c++)
            part[d * CLASSES + c] += x[d] * p[c];
    return loss + logf(sum);
}

/* For all threads of the team, as are the next two. */
static void gradients_compute(struct resume *resume, bool racing)
{
#pragma omp for schedule(dynamic, 1)
    for (int64_t group = 0; group < GROUPS; group++) {
        float *part = resume->parts + group * WEIGHTS;

        memset(part, 0, WEIGHTS * sizeof(float));
        for (int64_t b = group * GROUP; b < (group + 1) * GROUP; b++)
            resume->losses[b] = example_gradient(resume, b, part);
        for (int64_t step = 0; step < WEIGHTS && racing; step++) {
            int64_t i = group % 2 ? WEIGHTS - 1 - step : step;

#pragma omp atomic
            resume->gradient[i] += part[i];
        }
    }
}

static void weights_update(const struct resume *resume, bool racing)
{
    struct training *now = resume->now;

#pragma omp for
    for (int64_t begin = 0; begin < WEIGHTS; begin += CHUNK) {
        if (!racing)
            tree_sum(resume->parts, GROUPS, WEIGHTS, begin, begin + CHUNK);
        for (int64_t i = begin; i < begin + CHUNK; i++) {
            now->velocity[i] = MOMENTUM * now->velocity[i] +
                               (racing ? resume->gradient[i] : resume->parts[i]);
            now->weights[i] -= now->rate * now->velocity[i];
            resume->gradient[i] = 0;
        }
    }
}

static void step_end(struct training *now, int64_t examples)
{
    now->step++;
    if (now->step % DECAY_STEPS == 1)
        now->rate *= DECAY;
    now->position = (now->position + BATCH) % examples;
    now->generator += increment * BATCH * FEATURES;
}

static void train(struct run *run, bool interrupted, enum part omitted, bool racing)
{
    struct resume *resume = run->state;
    double loss = 0;

    training_begin(resume, resume->now);
    memset(resume->gradient, 0, WEIGHTS * sizeof(float));
#pragma omp parallel num_threads(run->threads)
    for (int step = 0; step < STEPS; step++) {
        if (interrupted && step == HALF) {
#pragma omp single
            training_interrupt(resume, omitted);
        }
        gradients_compute(resume, racing);
        weights_update(resume, racing);
#pragma omp single
        step_end(resume->now, resume->examples);
    }
    memcpy(resume->weights, resume->now->weights, WEIGHTS * sizeof(float));
    memcpy(resume->velocity, resume->now->velocity, WEIGHTS * sizeof(float));
    for (int64_t b = 0; b < BATCH; b++)
        loss += resume->losses[b];
    run->loss = loss / BATCH;
}

static enum part omitted_part(const struct run *run)
{
    static const char *const names[] = {
        [OPTIMIZER] = "no_optimizer", [SCHEDULE] = "no_schedule", [STEP] = "no_step",
        [LOADER] = "no_data_loader",  [GENERATOR] = "no_rng",
    };

    for (int part = OPTIMIZER; part < NOTHING; part++)
        if (strcmp(run->variant->name, names[part]) == 0)
            return (enum part)part;
    return NOTHING;
}

static void compute_unordered(struct run *run)
{
    train(run, true, NOTHING, true);
}

static void compute_straight(struct run *run)
{
    train(run, false, NOTHING, false);
}

static void compute_resumed(struct run *run)
{
    train(run, true, omitted_part(run), false);
}

/* The examples, shuffled. */
static int32_t *order_make(const struct run *run, int64_t examples)
{
    int32_t *order = run_host_alloc((size_t)examples * sizeof(*order));

    for (int64_t i = 0; i < examples; i++) {
        int64_t j =
            (int64_t)(mix64(run->seed + increment * (uint64_t)i) % (uint64_t)(i + 1));

        order[i] = order[j];
        order[j] = (int32_t)i;
    }
    return order;
}

static void setup(struct run *run)
{
    struct resume *resume = run_host_alloc(sizeof(*resume));
    int64_t examples = *(const int64_t *)run->size->params, one = 1;
    int64_t x[] = { examples, FEATURES }, weights[] = { FEATURES, CLASSES };
    int32_t *order;

    resume->examples = examples;
    resume->x = run_input(run, "x", run->dtype, 2, x, FILL_UNIFORM, 0)->data;
    resume->labels =
        run_input(run, "labels", DTYPE_INT32, 1, &examples, FILL_INDEX, CLASSES)->data;
    order = order_make(run, examples);
    resume->order =
        run_input_values(run, "order", DTYPE_INT32, 1, &examples, order)->data;
    free(order);
    resume->initial =
        run_input(run, "initial", run->dtype, 2, weights, FILL_UNIFORM, 0)->data;
    resume->seed = run_input(run, "generator_seed", DTYPE_INT64, 1, &one, FILL_INDEX,
                             INT64_C(1) << 40)
                       ->data;
    resume->weights = run_output(run, "weights", run->dtype, 2, weights)->data;
    resume->velocity = run_output(run, "velocity", run->dtype, 2, weights)->data;
    resume->now = run_alloc(run, sizeof(*resume->now));
    resume->checkpoint = run_alloc(run, sizeof(*resume->checkpoint));
    resume->gradient = run_alloc(run, WEIGHTS * sizeof(float));
    resume->parts = run_alloc(run, (size_t)GROUPS * WEIGHTS * sizeof(float));
    run->state = resume;
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
        x[d] = (double)values[d] * keep(exact->scalars.generator, b * FEATURES + d);
        magnitudes += fabs(x[d]);
        exact->largest_x = fmax(exact->largest_x, fabs(x[d]));
        for (int64_t c = 0; c < CLASSES; c++)
            p[c] += x[d] * exact->weights[d * CLASSES + c];
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
 * every logit by X W; expf and logf are off by less than 1 ulp, and an argument of expf
 * that is rounded moves its result by up to 2 X W units. */
static double reference_rounding(const struct exact *exact, enum dtype dtype)
{
    double largest = 0, logit;

    for (int64_t i = 0; i < WEIGHTS; i++)
        largest = fmax(largest, fabs(exact->weights[i]));
    logit = exact->largest_sum * largest;
    return exact->largest_x *
           (2.1 * logit * (rounding_gamma(dtype, FEATURES) + 2 * rounding_unit(dtype)) +
            rounding_gamma(dtype, CLASSES + BATCH + 16));
}

static void reference_step(struct exact *exact, const struct tensor *inputs,
                           enum dtype dtype)
{
    double *gradient = run_host_alloc(WEIGHTS * sizeof(*gradient));
    double unit = rounding_unit(dtype), rate = exact->scalars.rate, rounding;

    exact->largest_x = exact->largest_sum = 0;
    memset(gradient, 0, WEIGHTS * sizeof(*gradient));
    for (int64_t b = 0; b < BATCH; b++)
        reference_example(exact, inputs, b, gradient);
    rounding = reference_rounding(exact, dtype);
    exact->velocity_error =
        (double)MOMENTUM * exact->velocity_error + rounding +
        2.1 * exact->largest_x * exact->largest_sum * exact->weights_error;
    for (int64_t i = 0; i < WEIGHTS; i++) {
        exact->velocity[i] = (double)MOMENTUM * exact->velocity[i] + gradient[i];
        exact->weights[i] -= rate * exact->velocity[i];
    }
    /* Velocities are below 2 x / (1 - MOMENTUM), weights below 1. */
    exact->velocity_error += 2 * unit * 20 * exact->largest_x;
    exact->weights_error += rate * exact->velocity_error + 3 * unit;
    step_end(&exact->scalars, inputs[2].shape[0]);
    free(gradient);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    struct exact *exact = run_host_alloc(sizeof(*exact));
    struct training first = { .rate = FIRST_RATE,
                              .generator = (uint64_t) * (const int64_t *)inputs[4].data };
    enum part omitted = omitted_part(run);
    bool is_weights = strcmp(output->name, "weights") == 0;

    memset(exact, 0, sizeof(*exact));
    exact->scalars = first;
    for (int64_t i = 0; i < WEIGHTS; i++)
        exact->weights[i] = SPREAD * ((const float *)inputs[3].data)[i];
    for (int step = 0; step < STEPS; step++) {
        if (step == HALF && omitted == OPTIMIZER)
            memset(exact->velocity, 0, sizeof(exact->velocity));
        else if (step == HALF)
            part_copy(&exact->scalars, &first, omitted);
        reference_step(exact, inputs, run->dtype);
    }
    for (int64_t i = 0; i < tensor_elements(output); i++) {
        ret_expected[i] = is_weights ? exact->weights[i] : exact->velocity[i];
        ret_bound[i] = is_weights ? exact->weights_error : exact->velocity_error;
    }
    free(exact);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "saved and resumed, with gradients added in no fixed order",
      .models = "resuming a training that is not deterministic to begin with",
      .algorithm = "atomic adds, resumed from everything",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "in one piece",
      .models = "a training that is not interrupted",
      .algorithm = "fixed tree, not interrupted",
      .compute = compute_straight },
    { .name = "resumed",
      .summary = "saved half-way with everything; must have the digest of ordered",
      .models = "the complete list of state of the PyTorch document",
      .algorithm = "fixed tree, resumed from everything",
      .compute = compute_resumed },
    { .name = "no_data_loader",
      .summary = "resumed, the data loader begins anew; must differ from ordered",
      .models = "a checkpoint without the data loader's state",
      .algorithm = "fixed tree, resumed without data loader",
      .compute = compute_resumed },
    { .name = "no_optimizer",
      .summary = "resumed, momentum begins anew; must differ from ordered",
      .models = "a checkpoint without optimizer.state_dict()",
      .algorithm = "fixed tree, resumed without optimizer",
      .compute = compute_resumed },
    { .name = "no_schedule",
      .summary = "resumed, the learning rate begins anew; must differ from ordered",
      .models = "a checkpoint without the learning rate scheduler's state",
      .algorithm = "fixed tree, resumed without schedule",
      .compute = compute_resumed },
    { .name = "no_rng",
      .summary = "resumed, dropout's generator begins anew; must differ from ordered",
      .models = "a checkpoint without torch.get_rng_state()",
      .algorithm = "fixed tree, resumed without generator",
      .compute = compute_resumed },
    { .name = "no_step",
      .summary = "resumed, the step counter begins anew; must differ from ordered",
      .models = "a checkpoint without the iteration counter",
      .algorithm = "fixed tree, resumed without step counter",
      .compute = compute_resumed },
};

static const struct workload_size sizes[] = {
    { "small", "4 steps of 1024 of 4096 examples x[64], weights[64,32]",
      &(const int64_t){ 4096 } },
    { "medium", "4 steps of 1024 of 65536 examples x[64], weights[64,32]",
      &(const int64_t){ 65536 } },
};

static const struct workload_reference references[] = {
    { "pytorch.md", "reproducible checkpointing: the state to save", NULL },
};

static const struct workload checkpoint_resume = {
    .name = "checkpoint_resume",
    .version = 1,
    .backend = "cpu",
    .title = "Reproducible Checkpointing",
    .summary = "a training in one piece, and one resumed from a checkpoint",
    .variants = variants,
    .variant_count = COUNT_OF(variants),
    .sizes = sizes,
    .size_count = COUNT_OF(sizes),
    .dtypes = { DTYPE_FLOAT32 },
    .dtype_count = 1,
    .weight_sum = "sum of the weights after the last step",
    .loss = "mean loss of the last step's batch",
    .references = references,
    .reference_count = COUNT_OF(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(checkpoint_resume);
