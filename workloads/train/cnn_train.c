/* A training on the CPU: its state, its steps and its variants. */
#include <string.h>

#include "workloads/shared/tree.h"
#include "workloads/train/cnn_gradients.h"

enum { UPDATE_CHUNK = 128 };

static float *floats(struct run *run, int64_t count)
{
    float *memory = run_alloc_f32(run, count);

    memset(memory, 0, (size_t)count * sizeof(float));
    return memory;
}

static void buffers_make(struct run *run, struct cnn *cnn)
{
    const struct cnn_shape *s = cnn->shape;
    int64_t sizes[CNN_BUFFERS], pooled1 = s->side / 2 * (s->side / 2) * s->channels1;

    cnn_buffer_sizes(s, sizes);
    for (int i = 0; i < CNN_BUFFERS; i++) {
        cnn->buffers[i] = floats(run, s->batch * sizes[i]);
    }
    cnn->winners1 = run_alloc(run, (size_t)(s->batch * pooled1));
    cnn->winners2 = run_alloc(run, (size_t)(s->batch * cnn->layout.features));
    cnn->losses = floats(run, s->batch);
}

static void image_init(const struct cnn *cnn, int64_t b)
{
    const struct cnn_shape *s = cnn->shape;
    int64_t sizes[CNN_BUFFERS], pooled1 = s->side / 2 * (s->side / 2) * s->channels1;
    float *parts[CNN_BUFFERS];

    cnn_buffer_sizes(s, sizes);
    for (int i = 0; i < CNN_BUFFERS; i++) {
        parts[i] = cnn->buffers[i] + b * sizes[i];
    }
    cnn->images[b] = (struct image){
        .x = parts[CNN_X],
        .active1 = parts[CNN_ACTIVE1],
        .pooled1 = parts[CNN_POOLED1],
        .active2 = parts[CNN_ACTIVE2],
        .pooled2 = parts[CNN_POOLED2],
        .features = parts[CNN_FEATURES],
        .d_logits = parts[CNN_D_LOGITS],
        .d_features = parts[CNN_D_FEATURES],
        .d_sum2 = parts[CNN_D_SUM2],
        .d_pooled1 = parts[CNN_D_POOLED1],
        .d_sum1 = parts[CNN_D_SUM1],
        .part = cnn->parts + b * cnn->layout.count,
        .winners1 = cnn->winners1 + b * pooled1,
        .winners2 = cnn->winners2 + b * cnn->layout.features,
        .loss = cnn->losses + b,
    };
}

void cnn_setup(struct run *run)
{
    const struct cnn_shape *s = run->size->params;
    struct cnn *cnn = run_host_alloc(sizeof *cnn);
    int64_t count;

    cnn->shape = s;
    cnn->layout = cnn_layout_of(s);
    count = cnn->layout.count;
    cnn_inputs_make(run, s, &cnn->inputs);
    cnn->variables = run_output_f32(run, "variables", 1, &count);
    cnn->velocity = floats(run, count);
    cnn->gradient = floats(run, count);
    cnn->before = floats(run, count);
    cnn->velocity_before = floats(run, count);
    cnn->applied = floats(run, count);
    cnn->flipped = floats(run, CNN_TAPS * s->channels1 * s->channels2);
    cnn->parts = floats(run, s->batch * count);
    buffers_make(run, cnn);
    cnn->images = run_alloc(run, (size_t)s->batch * sizeof *cnn->images);
    for (int64_t b = 0; b < s->batch; b++) {
        image_init(cnn, b);
    }
    cnn->scratch_floats = s->side / 2 * (s->side / 2) * s->channels1;
    cnn->scratch = floats(run, run->threads * cnn->scratch_floats);
    run->state = cnn;
}

static void flipped_set(const struct cnn *cnn, int64_t i)
{
    const struct cnn_shape *s = cnn->shape;
    int64_t at = i - cnn->layout.weights2, k = at % s->channels2;
    int64_t c = at / s->channels2 % s->channels1;
    int64_t tap = at / s->channels2 / s->channels1;

    if (at >= 0 && i < cnn->layout.bias2) {
        cnn->flipped[((CNN_TAPS - 1 - tap) * s->channels2 + k) * s->channels1 + c] =
            cnn->variables[i];
    }
}

/* Variables [BEGIN, END), whose gradient is in the parts if JOINED. */
static void update_chunk(const struct cnn *cnn, bool joined, int64_t begin, int64_t end)
{
    if (joined) {
        tree_sum(cnn->parts, cnn->shape->batch, cnn->layout.count, begin, end);
    }
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
        for (int64_t first = bounds[section]; first < end; first += UPDATE_CHUNK) {
            update_chunk(cnn, joined, first,
                         first + UPDATE_CHUNK < end ? first + UPDATE_CHUNK : end);
        }
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

static void train(struct run *run, enum racing racing)
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
        if (run_probing(run, step)) {
            step_probe(run, step);
        }
    }
    for (int64_t b = 0; b < cnn->shape->batch; b++) {
        loss += *cnn->images[b].loss;
    }
    run->loss = loss / (double)cnn->shape->batch;
}

static void train_unordered(struct run *run)
{
    train(run, RACING_ALL);
}

static void train_tcd(struct run *run)
{
    train(run, RACING_BIAS);
}

static void train_ordered(struct run *run)
{
    train(run, RACING_NOTHING);
}

const struct workload_variant cnn_variants[CNN_VARIANTS] = {
    { .name = "unordered",
      .summary = "weight, input, bias and pooling gradients meet in atomic adds",
      .models = "training without fixes: slide 44, the five runs above",
      .algorithm = "atomic adds everywhere",
      .control = true,
      .compute = train_unordered },
    { .name = "ordered",
      .summary = "each image by one thread, joined by a fixed tree",
      .models =
          "training with all fixes, TF_DETERMINISTIC_OPS or the patch: slide 44, the "
          "two runs below",
      .algorithm = "in order within an image, fixed tree of images",
      .compute = train_ordered },
    { .name = "tcd",
      .summary = "as ordered, but bias gradients meet in atomic adds",
      .models = "TF_CUDNN_DETERMINISTIC alone: convolution and pooling are ordered, "
                "bias_add is not",
      .algorithm =
          "in order within an image, fixed tree of images, atomic adds of biases",
      .control = true,
      .compute = train_tcd },
};
