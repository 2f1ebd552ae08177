#include "workloads/checkpoint/halves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workloads/checkpoint/file.h"
#include "workloads/instruments/bits.h"
#include "workloads/shared/exp_log.h"
#include "workloads/shared/tree.h"

enum {
    FEATURES = TRAINING_FEATURES,
    CLASSES = TRAINING_CLASSES,
    WEIGHTS = TRAINING_WEIGHTS
};
enum { DECAY_STEPS = 3, CHUNK = 64 };

static void training_begin(const struct training_data *data, struct training *training)
{
    memset(training, 0, sizeof *training);
    for (int64_t i = 0; i < WEIGHTS; i++) {
        training->weights[i] = TRAINING_SPREAD * data->initial[i];
    }
    training->rate = TRAINING_FIRST_RATE;
    training->generator = data->seed;
    training->scale = TRAINING_SCALE;
}

void training_part_copy(struct training *to, const struct training *from,
                        enum training_part part)
{
    switch (part) {
    case MODEL:
        memcpy(to->weights, from->weights, sizeof to->weights);
        break;
    case OPTIMIZER:
        memcpy(to->velocity, from->velocity, sizeof to->velocity);
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
    case SCALER:
        to->scale = from->scale;
        to->growth = from->growth;
        break;
    case GENERATOR:
        to->generator = from->generator;
        break;
    case NOTHING:
        break;
    }
}

/* Adds the gradient of example B of the batch to PART. */
static float example_gradient(const struct training_data *data,
                              const struct training *training, int64_t b, float *part)
{
    int64_t example = data->order[(training->position + b) % data->examples];
    int32_t label = data->labels[example];
    float x[FEATURES], p[CLASSES] = { 0 }, most = -INFINITY, sum = 0, loss;

    for (int64_t d = 0; d < FEATURES; d++) {
        x[d] = data->x[example * FEATURES + d] *
               training_keep(training->generator, b * FEATURES + d);
        for (int64_t c = 0; c < CLASSES; c++) {
            p[c] += x[d] * training->weights[d * CLASSES + c];
        }
    }
    for (int64_t c = 0; c < CLASSES; c++) {
        most = p[c] > most ? p[c] : most;
    }
    loss = most - p[label];
    for (int64_t c = 0; c < CLASSES; c++) {
        p[c] = exp_f32(p[c] - most);
        sum += p[c];
    }
    for (int64_t c = 0; c < CLASSES; c++) {
        p[c] = (p[c] / sum - (c == label ? 1.0F : 0.0F)) / TRAINING_BATCH;
    }
    for (int64_t d = 0; d < FEATURES; d++) {
        for (int64_t c = 0; c < CLASSES; c++) {
            part[d * CLASSES + c] += x[d] * p[c];
        }
    }
    return loss + log_f32(sum);
}

/* For all threads of the team, as are the next two. */
static void gradients_compute(const struct training_data *data,
                              const struct training *training, bool racing)
{
#pragma omp for schedule(dynamic, 1)
    for (int64_t group = 0; group < TRAINING_GROUPS; group++) {
        float *part = data->parts + group * WEIGHTS;

        memset(part, 0, WEIGHTS * sizeof(float));
        for (int64_t b = group * TRAINING_GROUP; b < (group + 1) * TRAINING_GROUP; b++) {
            data->losses[b] = example_gradient(data, training, b, part);
        }
        for (int64_t step = 0; step < WEIGHTS && racing; step++) {
            int64_t i = group % 2 ? WEIGHTS - 1 - step : step;

#pragma omp atomic
            data->gradient[i] += part[i];
        }
    }
}

static void gradient_join(const struct training_data *data, float scale, bool racing)
{
#pragma omp for
    for (int64_t begin = 0; begin < WEIGHTS; begin += CHUNK) {
        bool overflow = false;

        if (!racing) {
            tree_sum(data->parts, TRAINING_GROUPS, WEIGHTS, begin, begin + CHUNK);
        }
        for (int64_t i = begin; i < begin + CHUNK; i++) {
            data->applied[i] = racing ? data->gradient[i] : data->parts[i];
            data->gradient[i] = 0;
            overflow |= training_overflows(data->applied[i], scale);
        }
        if (overflow) {
#pragma omp atomic write
            *data->overflow = 1;
        }
    }
}

static void weights_update(const struct training_data *data, struct training *training)
{
#pragma omp for
    for (int64_t i = 0; i < WEIGHTS; i++) {
        training->velocity[i] =
            TRAINING_MOMENTUM * training->velocity[i] + data->applied[i];
        training->weights[i] -= training->rate * training->velocity[i];
    }
}

static void scale_update(struct training *training, bool overflow)
{
    bool grows = !overflow && training->growth + 1 == TRAINING_GROWTH_STEPS;

    training->growth = overflow || grows ? 0 : training->growth + 1;
    training->scale *= overflow ? TRAINING_BACKOFF : grows ? 2 : 1;
}

void training_step_end(struct training *training, int64_t examples, bool overflow)
{
    scale_update(training, overflow);
    training->step++;
    if (training->step % DECAY_STEPS == 1) {
        training->rate *= TRAINING_DECAY;
    }
    training->position = (training->position + TRAINING_BATCH) % examples;
    training->generator += TRAINING_INCREMENT * TRAINING_BATCH * FEATURES;
}

void training_step(const struct training_data *data, struct training *training,
                   int threads, bool racing)
{
    *data->overflow = 0;
#pragma omp parallel num_threads(threads)
    {
        gradients_compute(data, training, racing);
        gradient_join(data, training->scale, racing);
        if (!*data->overflow) {
            weights_update(data, training);
        }
    }
    training_step_end(training, data->examples, *data->overflow);
}

double training_loss(const struct training_data *data)
{
    double loss = 0;

    for (int64_t b = 0; b < TRAINING_BATCH; b++) {
        loss += data->losses[b];
    }
    return loss / TRAINING_BATCH;
}

enum { HALF = HALVES_STEPS / 2 };

/* The state that a checkpoint file holds. */
struct checkpoint {
    uint64_t parts; /* bit p: the training's part p is there, and zero where it is not */
    struct training training;
    double loss; /* of the last step; only reported */
};

enum training_part halves_omitted(const struct run *run)
{
    static const char *const names[] = {
        [OPTIMIZER] = "no_optimizer", [SCHEDULE] = "no_schedule", [STEP] = "no_step",
        [LOADER] = "no_data_loader",  [SCALER] = "no_scaler",     [GENERATOR] = "no_rng",
    };

    for (int part = OPTIMIZER; part < NOTHING; part++) {
        if (strcmp(run->variant->name, names[part]) == 0) {
            return (enum training_part)part;
        }
    }
    return NOTHING;
}

static void save(struct run *run, int file, enum training_part omitted, double loss)
{
    const struct halves *halves = run->state;
    char cause[CHECKPOINT_CAUSE_SIZE];

    memset(halves->saved, 0, sizeof *halves->saved);
    for (int part = MODEL; part < NOTHING; part++) {
        if (part != (int)omitted) {
            halves->saved->parts |= UINT64_C(1) << part;
            training_part_copy(&halves->saved->training, halves->now,
                               (enum training_part)part);
        }
    }
    halves->saved->loss = loss;
    if (!checkpoint_save(file, halves->saved, sizeof *halves->saved, cause)) {
        run_infra(run, "%s", cause);
    }
}

static void load(struct run *run, int file)
{
    const struct halves *halves = run->state;
    char cause[CHECKPOINT_CAUSE_SIZE];

    if (!checkpoint_load(file, halves->saved, sizeof *halves->saved, cause)) {
        run_infra(run, "%s", cause);
    }
    training_begin(&halves->data, halves->now);
    for (int part = MODEL; part < NOTHING; part++) {
        if (halves->saved->parts & UINT64_C(1) << part) {
            training_part_copy(halves->now, &halves->saved->training,
                               (enum training_part)part);
        }
    }
}

static void results_write(struct run *run, double loss)
{
    const struct halves *halves = run->state;

    halves->write(halves->weights, halves->now->weights, sizeof halves->now->weights);
    halves->write(halves->velocity, halves->now->velocity, sizeof halves->now->velocity);
    run->loss = loss;
}

static void compute_straight(struct run *run)
{
    const struct halves *halves = run->state;

    training_begin(&halves->data, halves->now);
    results_write(run, halves->train(run, 0, HALVES_STEPS));
}

static void compute_resumed(struct run *run)
{
    const struct halves *halves = run->state;
    char cause[CHECKPOINT_CAUSE_SIZE];
    int file = checkpoint_create(cause);

    if (file < 0) {
        run_infra(run, "%s", cause);
    }
    training_begin(&halves->data, halves->now);
    save(run, file, halves_omitted(run), halves->train(run, 0, HALF));
    run_resume(run, file);
    load(run, file);
    close(file);
    /* It is the last step that puts out what the run puts out. */
    run_probing(run, HALVES_STEPS - 1);
    results_write(run, halves->saved->loss);
}

/* In the fresh process. */
void halves_resume(struct run *run, int file)
{
    const struct halves *halves = run->state;

    load(run, file);
    save(run, file, NOTHING, halves->train(run, HALF, HALVES_STEPS));
}

/* The examples, shuffled. */
static int32_t *order_make(const struct run *run, int64_t examples)
{
    int32_t *order = run_host_alloc((size_t)examples * sizeof *order);

    for (int64_t i = 0; i < examples; i++) {
        int64_t j = (int64_t)(mix64(run->seed + TRAINING_INCREMENT * (uint64_t)i) %
                              (uint64_t)(i + 1));

        order[i] = order[j];
        order[j] = (int32_t)i;
    }
    return order;
}

struct halves *halves_init(struct run *run, struct halves_inputs *ret_inputs)
{
    struct halves *halves = run_host_alloc(sizeof *halves);
    struct training_data *data = &halves->data;
    int64_t examples = *(const int64_t *)run->size->params, one = 1;
    int64_t x[] = { examples, FEATURES }, weights[] = { FEATURES, CLASSES };
    int32_t *order;

    memset(halves, 0, sizeof *halves);
    data->examples = examples;
    data->x = run_input(run, "x", run->dtype, 2, x, FILL_UNIFORM, 0)->data;
    data->labels =
        run_input(run, "labels", DTYPE_INT32, 1, &examples, FILL_INDEX, CLASSES)->data;
    order = order_make(run, examples);
    data->order = run_input_values(run, "order", DTYPE_INT32, 1, &examples, order)->data;
    free(order);
    ret_inputs->initial =
        run_input(run, "initial", run->dtype, 2, weights, FILL_UNIFORM, 0)->data;
    ret_inputs->seed = run_input(run, "generator_seed", DTYPE_INT64, 1, &one, FILL_INDEX,
                                 INT64_C(1) << 40)
                           ->data;
    halves->weights = run_output(run, "weights", run->dtype, 2, weights)->data;
    halves->velocity = run_output(run, "velocity", run->dtype, 2, weights)->data;
    halves->now = run_host_alloc(sizeof *halves->now);
    halves->saved = run_host_alloc(sizeof *halves->saved);
    halves->before = run_alloc(run, sizeof *halves->before);
    run->state = halves;
    return halves;
}

const struct workload_variant halves_variants[HALVES_VARIANTS] = {
    { .name = "unordered",
      .summary = "saved and resumed, with gradients added in no fixed order",
      .models = "resuming a training that is not deterministic to begin with",
      .algorithm = "atomic adds, resumed from everything",
      .control = true,
      .compute = compute_resumed },
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
    { .name = "no_scaler",
      .summary = "resumed, the loss scale begins anew; must differ from ordered",
      .models = "a checkpoint without torch.cuda.GradScaler's statistics",
      .algorithm = "fixed tree, resumed without loss scale",
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

const struct workload_relation halves_relations[HALVES_RELATIONS] = {
    { "resumed", "ordered", true },       { "no_data_loader", "ordered", false },
    { "no_optimizer", "ordered", false }, { "no_schedule", "ordered", false },
    { "no_scaler", "ordered", false },    { "no_rng", "ordered", false },
    { "no_step", "ordered", false },
};
