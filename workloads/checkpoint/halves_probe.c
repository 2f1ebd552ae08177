/* What the probes of a training in two halves record, the same on every backend. */
#include "workloads/checkpoint/halves.h"

#include "workloads/shared/probing.h"

enum { FEATURES = TRAINING_FEATURES, WEIGHTS = TRAINING_WEIGHTS, BATCH = TRAINING_BATCH };

enum {
    ORDER = 1,
    POSITION,
    RNG,
    X,
    LABELS,
    WEIGHTS_BEFORE,
    VELOCITY_BEFORE,
    RATE,
    SCALE,
    LOSSES,
    GRADIENT,
    VELOCITY,
    WEIGHTS_AFTER,
    VALUES
};

static const struct place places[] = {
    { "data/position", { 0 }, { POSITION } },
    { "rng/dropout", { 0 }, { RNG } },
    { "variable/weights/before", { 0 }, { WEIGHTS_BEFORE } },
    { "optimizer/velocity/before", { 0 }, { VELOCITY_BEFORE } },
    { "optimizer/rate", { 0 }, { RATE } },
    { "optimizer/scale", { 0 }, { SCALE } },
    { "loss", { X, LABELS, ORDER, POSITION, RNG, WEIGHTS_BEFORE }, { LOSSES } },
    { "gradient/weights",
      { X, LABELS, ORDER, POSITION, RNG, WEIGHTS_BEFORE },
      { GRADIENT } },
    { "optimizer/velocity", { VELOCITY_BEFORE, GRADIENT, SCALE }, { VELOCITY } },
    { "variable/weights/after",
      { WEIGHTS_BEFORE, VELOCITY, RATE, GRADIENT, SCALE },
      { WEIGHTS_AFTER } },
};

void halves_probe(struct run *run, int64_t step, const float *weights,
                  const float *velocity)
{
    const struct halves *halves = run->state;
    const struct training_data *data = &halves->data;
    const struct training *before = halves->before;
    const struct probe_value values[VALUES] = {
        [ORDER] = probe_ints("order", data->order, data->examples),
        [POSITION] = { DTYPE_INT64, 1, &before->position, "position" },
        [RNG] = { DTYPE_INT64, 1, &before->generator, "generator" },
        [X] = probe_floats("x", data->x, data->examples * FEATURES),
        [LABELS] = probe_ints("labels", data->labels, data->examples),
        [WEIGHTS_BEFORE] = probe_floats("weights", before->weights, WEIGHTS),
        [VELOCITY_BEFORE] = probe_floats("velocity", before->velocity, WEIGHTS),
        [RATE] = probe_floats("rate", &before->rate, 1),
        [SCALE] = probe_floats("scale", &before->scale, 1),
        [LOSSES] = probe_floats("losses", data->losses, BATCH),
        [GRADIENT] = probe_floats("gradient", data->applied, WEIGHTS),
        [VELOCITY] = probe_floats("velocity", velocity, WEIGHTS),
        [WEIGHTS_AFTER] = probe_floats("weights", weights, WEIGHTS),
    };

    places_probe(run, step, values, places, COUNT_OF(places));
}
