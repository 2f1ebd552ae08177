#include "workloads/checkpoint/halves.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workloads/checkpoint/file.h"
#include "workloads/instruments/bits.h"

enum { FEATURES = TRAINING_FEATURES, CLASSES = TRAINING_CLASSES };
enum { HALF = HALVES_STEPS / 2 };

/* The state that a checkpoint file holds. */
struct checkpoint {
    uint64_t parts; /* bit p: the training's part p is there, and zero where it is not */
    struct training training;
    double loss; /* of the last step; told, not resumed from */
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
