#include "workloads/shared/tree.h"
#include "workloads/train/cnn_state.h"

enum { UPDATE_CHUNK = 128 };

static void flipped_set(const struct cnn *cnn, int64_t i)
{
    const struct cnn_shape *s = cnn->shape;
    int64_t at = i - cnn->layout.weights2, k = at % s->channels2;
    int64_t c = at / s->channels2 % s->channels1;
    int64_t tap = at / s->channels2 / s->channels1;

    if (at >= 0 && i < cnn->layout.bias2)
        cnn->flipped[((CNN_TAPS - 1 - tap) * s->channels2 + k) * s->channels1 + c] =
            cnn->variables[i];
}

/* Variables [BEGIN, END), whose gradient is in the parts if JOINED. */
static void update_chunk(const struct cnn *cnn, bool joined, int64_t begin, int64_t end)
{
    if (joined)
        tree_sum(cnn->parts, cnn->shape->batch, cnn->layout.count, begin, end);
    for (int64_t i = begin; i < end; i++) {
        cnn->applied[i] = joined ? cnn->parts[i] : cnn->gradient[i];
        cnn->before[i] = cnn->variables[i];
        cnn->velocity_before[i] = cnn->velocity[i];
        cnn->velocity[i] = CNN_MOMENTUM * cnn->velocity[i] + cnn->applied[i];
        cnn->variables[i] -= CNN_LEARNING_RATE * cnn->velocity[i];
        cnn->gradient[i] = 0;
        flipped_set(cnn, i);
    }
}

/* For all threads of the team, as is begin. */
static void update(const struct cnn *cnn, enum racing racing)
{
    int64_t bounds[CNN_SECTIONS + 1];

    cnn_sections(&cnn->layout, bounds);
    for (int section = 0; section < CNN_SECTIONS; section++) {
        bool bias = section % 2 == 1, dense = section == 4;
        bool joined =
            racing == RACING_NOTHING || dense || (racing == RACING_BIAS && !bias);
        int64_t end = bounds[section + 1];

#pragma omp for nowait
        for (int64_t first = bounds[section]; first < end; first += UPDATE_CHUNK)
            update_chunk(cnn, joined, first,
                         first + UPDATE_CHUNK < end ? first + UPDATE_CHUNK : end);
    }
}

static void begin(const struct cnn *cnn)
{
#pragma omp for
    for (int64_t i = 0; i < cnn->layout.count; i++) {
        cnn->variables[i] =
            cnn_initial(cnn->shape, &cnn->layout, i, cnn->inputs.initial[i]);
        cnn->velocity[i] = cnn->gradient[i] = 0;
        flipped_set(cnn, i);
    }
}

static void step_probe(struct run *run, int64_t step)
{
    const struct cnn *cnn = run->state;

    cnn_probe(
        run, step,
        &(struct cnn_records){ .shape = cnn->shape,
                               .inputs = &cnn->inputs,
                               .buffers = cnn->buffers,
                               .winners1 = cnn->winners1,
                               .winners2 = cnn->winners2,
                               .losses = cnn->losses,
                               .momentum = { .before = cnn->before,
                                             .variables = cnn->variables,
                                             .velocity_before = cnn->velocity_before,
                                             .velocity = cnn->velocity,
                                             .gradient = cnn->applied } });
}

void cnn_train(struct run *run, enum racing racing)
{
    const struct cnn *cnn = run->state;
    double loss = 0;

#pragma omp parallel num_threads(run->threads)
    begin(cnn);
    for (int64_t step = 0; step < cnn->shape->steps; step++) {
#pragma omp parallel num_threads(run->threads)
        {
            cnn_gradients(cnn, step, racing);
            update(cnn, racing);
        }
        if (run_probing(run, step))
            step_probe(run, step);
    }
    for (int64_t b = 0; b < cnn->shape->batch; b++)
        loss += *cnn->images[b].loss;
    run->loss = loss / (double)cnn->shape->batch;
}
