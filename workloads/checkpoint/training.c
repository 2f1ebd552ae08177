#include "workloads/checkpoint/training.h"

#include <math.h>
#include <string.h>

#include "workloads/shared/exp_log.h"
#include "workloads/shared/tree.h"

enum {
    FEATURES = TRAINING_FEATURES,
    CLASSES = TRAINING_CLASSES,
    WEIGHTS = TRAINING_WEIGHTS
};
enum { DECAY_STEPS = 3, CHUNK = 64 };

void training_begin(const struct training_data *data, struct training *training)
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
