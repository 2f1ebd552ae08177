#include "cuda/train/cnn.h"

#include "cuda/kernels/kernel.h"
#include "cuda/train/layers.h"
#include "cuda/train/parts.h"
#include "workloads/train/cnn_image.h"
#include "workloads/train/cnn_probe.h"

/* What is added in no fixed order: nothing, bias gradients, or also the gradients of
 * convolutions and of pooling. */
enum racing { RACING_NOTHING, RACING_BIAS, RACING_ALL };

/* Layers share memory: one writes what the next one reads. */
struct cnn {
    struct cnn_shape shape;
    struct cnn_layout layout;
    struct cnn_inputs inputs;
    float *buffers[CNN_BUFFERS];
    struct convolution conv1, conv2, back; /* back: the gradient of conv2's input */
    struct pooling pool1, pool2;
    struct dense dense;
    float *variables, *velocity, *gradient;
    float *before, *velocity_before; /* variables and velocity before the update */
    float *applied;                  /* the gradient that it used */
    float *flipped;                  /* weights2 for `back`: [8 - tap][out][in] */
    float *parts;                    /* [batch][variables] */
    float *rows;                     /* of bias gradients */
    float *losses;                   /* [batch], in the host's memory */
};

/* COUNT floats, all zero: padding is never written. */
static float *floats(struct run *run, int64_t count)
{
    size_t bytes = (size_t)count * sizeof(float);
    void *memory = run_alloc(run, bytes);

    CUDA_TRY(cudaMemset(memory, 0, bytes));
    return (float *)memory;
}

static uint8_t *winners_make(struct run *run, const struct pooling *pooling)
{
    int64_t half = pooling->side / 2;

    return (uint8_t *)run_alloc(
        run, (size_t)(pooling->images * half * half * pooling->channels));
}

static void poolings_init(struct run *run, struct cnn *cnn)
{
    const struct cnn_shape *s = &cnn->shape;
    float *const *buffers = cnn->buffers;

    cnn->pool1 = { .images = s->batch,
                   .side = s->side,
                   .channels = s->channels1,
                   .x = buffers[CNN_ACTIVE1],
                   .y = buffers[CNN_POOLED1],
                   .dy = buffers[CNN_D_POOLED1],
                   .dx = buffers[CNN_D_SUM1] };
    cnn->pool2 = { .images = s->batch,
                   .side = s->side / 2,
                   .channels = s->channels2,
                   .x = buffers[CNN_ACTIVE2],
                   .y = buffers[CNN_POOLED2],
                   .dy = buffers[CNN_D_FEATURES],
                   .dx = buffers[CNN_D_SUM2] };
    cnn->pool1.winners = winners_make(run, &cnn->pool1);
    cnn->pool2.winners = winners_make(run, &cnn->pool2);
}

static void dense_init(struct run *run, struct cnn *cnn)
{
    cnn->dense = { .images = cnn->shape.batch,
                   .side = cnn->shape.side / 4,
                   .channels = cnn->shape.channels2,
                   .pooled = cnn->buffers[CNN_POOLED2],
                   .drops = cnn->inputs.drops,
                   .labels = cnn->inputs.labels,
                   .order = cnn->inputs.order,
                   .weights = cnn->variables + cnn->layout.weights3,
                   .bias = cnn->variables + cnn->layout.bias3,
                   .features = cnn->buffers[CNN_FEATURES],
                   .d_features = cnn->buffers[CNN_D_FEATURES],
                   .d_logits = cnn->buffers[CNN_D_LOGITS],
                   .losses = floats(run, cnn->shape.batch) };
}

static void convolutions_init(struct cnn *cnn)
{
    const struct cnn_shape *s = &cnn->shape;
    const struct cnn_layout *l = &cnn->layout;

    cnn->conv1 = { .images = s->batch,
                   .side = s->side,
                   .in = 1,
                   .out = s->channels1,
                   .x = cnn->buffers[CNN_X],
                   .weights = cnn->variables + l->weights1,
                   .bias = cnn->variables + l->bias1 };
    cnn->conv2 = { .images = s->batch,
                   .side = s->side / 2,
                   .in = s->channels1,
                   .out = s->channels2,
                   .x = cnn->buffers[CNN_POOLED1],
                   .weights = cnn->variables + l->weights2,
                   .bias = cnn->variables + l->bias2 };
    cnn->back = { .images = s->batch,
                  .side = s->side / 2,
                  .in = s->channels2,
                  .out = s->channels1,
                  .x = cnn->buffers[CNN_D_SUM2],
                  .weights = cnn->flipped };
}

static void layers_init(struct run *run, struct cnn *cnn)
{
    int64_t sizes[CNN_BUFFERS];

    cnn_buffer_sizes(&cnn->shape, sizes);
    for (int i = 0; i < CNN_BUFFERS; i++) {
        cnn->buffers[i] = floats(run, cnn->shape.batch * sizes[i]);
    }
    convolutions_init(cnn);
    poolings_init(run, cnn);
    dense_init(run, cnn);
}

void cnn_cuda_setup(struct run *run)
{
    const struct cnn_shape *s = (const struct cnn_shape *)run->size->params;
    struct cnn *cnn = (struct cnn *)run_host_alloc(sizeof *cnn);
    int64_t count;

    cnn->shape = *s;
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
    cnn->rows = floats(run, s->batch * s->side * (s->channels1 + s->channels2));
    cnn->losses = (float *)run_host_alloc((size_t)s->batch * sizeof(float));
    layers_init(run, cnn);
    run->state = cnn;
}

__global__ static void load_kernel(struct cnn cnn, int64_t step)
{
    int64_t pixels = cnn.shape.side * cnn.shape.side;
    int64_t padded_pixels = (cnn.shape.side + 2) * (cnn.shape.side + 2);

    KERNEL_FOR(i, cnn.shape.batch * pixels)
    {
        int64_t image = i / pixels, pixel = i % pixels;
        int64_t example = cnn.inputs.order[step * cnn.shape.batch + image];
        int64_t label = cnn.inputs.labels[example];

        cnn.buffers[CNN_X][image * padded_pixels + padded(cnn.shape.side, 1, pixel)] =
            cnn.inputs.patterns[label * pixels + pixel] +
            CNN_NOISE * cnn.inputs.noises[example * pixels + pixel];
    }
}

static void forward(const struct cnn *cnn, int64_t step)
{
    struct dense dense = cnn->dense;
    int64_t at = step * cnn->shape.batch;

    LAUNCH_ITEMS(load_kernel, cnn->shape.batch * cnn->shape.side * cnn->shape.side, *cnn,
                 step);
    convolve(&cnn->conv1, cnn->buffers[CNN_ACTIVE1]);
    pool(&cnn->pool1);
    convolve(&cnn->conv2, cnn->buffers[CNN_ACTIVE2]);
    pool(&cnn->pool2);
    dense.drops += at * cnn->layout.features;
    dense.order += at;
    dense_forward(&dense);
}

static void layer_gradients(const struct cnn *cnn, const struct convolution *conv,
                            const struct pooling *pooling, int64_t weights,
                            enum racing racing)
{
    int64_t bias = weights + CNN_TAPS * conv->in * conv->out;

    if (racing == RACING_NOTHING) {
        bias_gradients(pooling, cnn->rows, cnn->parts + bias, cnn->layout.count);
    } else {
        bias_gradients_atomically(pooling, cnn->gradient + bias);
    }
    if (racing == RACING_ALL) {
        convolve_weights_atomically(conv, pooling->dx, cnn->gradient + weights);
    } else {
        convolve_weights(conv, pooling->dx, cnn->parts + weights, cnn->layout.count);
    }
}

static void backward(const struct cnn *cnn, int64_t step, enum racing racing)
{
    const struct cnn_layout *l = &cnn->layout;
    struct dense dense = cnn->dense;

    dense.drops += step * cnn->shape.batch * l->features;
    dense_backward(&dense, cnn->parts + l->weights3, l->count);
    if (racing != RACING_NOTHING) {
        dense_bias_atomically(&dense, cnn->gradient + l->bias3);
    }
    unpool(&cnn->pool2, racing == RACING_ALL);
    layer_gradients(cnn, &cnn->conv2, &cnn->pool2, l->weights2, racing);
    if (racing == RACING_ALL) {
        convolve_atomically(&cnn->back, cnn->buffers[CNN_D_POOLED1]);
    } else {
        convolve(&cnn->back, cnn->buffers[CNN_D_POOLED1]);
    }
    unpool(&cnn->pool1, racing == RACING_ALL);
    layer_gradients(cnn, &cnn->conv1, &cnn->pool1, l->weights1, racing);
}

static void section_join(const struct cnn *cnn, int64_t begin, int64_t end)
{
    parts_join(cnn->parts + begin, cnn->shape.batch, cnn->layout.count, end - begin,
               cnn->gradient + begin);
}

/* The sums of what did not meet in atomicAdd. */
static void gradients_join(const struct cnn *cnn, enum racing racing)
{
    const struct cnn_layout *l = &cnn->layout;

    if (racing == RACING_NOTHING) {
        section_join(cnn, 0, l->count);
        return;
    }
    if (racing == RACING_BIAS) {
        section_join(cnn, l->weights1, l->bias1);
        section_join(cnn, l->weights2, l->bias2);
    }
    section_join(cnn, l->weights3, l->bias3);
}

__device__ static void flipped_set(const struct cnn *cnn, int64_t i)
{
    int64_t at = i - cnn->layout.weights2, k = at % cnn->shape.channels2;
    int64_t c = at / cnn->shape.channels2 % cnn->shape.channels1;
    int64_t tap = at / cnn->shape.channels2 / cnn->shape.channels1;

    if (at >= 0 && i < cnn->layout.bias2) {
        cnn->flipped[((CNN_TAPS - 1 - tap) * cnn->shape.channels2 + k) *
                         cnn->shape.channels1 +
                     c] = cnn->variables[i];
    }
}

__global__ static void update_kernel(struct cnn cnn)
{
    KERNEL_FOR(i, cnn.layout.count)
    {
        cnn.applied[i] = cnn.gradient[i];
        cnn.before[i] = cnn.variables[i];
        cnn.velocity_before[i] = cnn.velocity[i];
        cnn.velocity[i] = CNN_MOMENTUM * cnn.velocity[i] + cnn.applied[i];
        cnn.variables[i] -= CNN_LEARNING_RATE * cnn.velocity[i];
        cnn.gradient[i] = 0;
        flipped_set(&cnn, i);
    }
}

__global__ static void begin_kernel(struct cnn cnn)
{
    KERNEL_FOR(i, cnn.layout.count)
    {
        cnn.variables[i] = cnn_initial(&cnn.shape, &cnn.layout, i, cnn.inputs.initial[i]);
        cnn.velocity[i] = cnn.gradient[i] = 0;
        flipped_set(&cnn, i);
    }
}

static double mean_loss(const struct cnn *cnn)
{
    double loss = 0;

    CUDA_TRY(cudaMemcpy(cnn->losses, cnn->dense.losses,
                        (size_t)cnn->shape.batch * sizeof(float),
                        cudaMemcpyDeviceToHost));
    for (int64_t b = 0; b < cnn->shape.batch; b++) {
        loss += cnn->losses[b];
    }
    return loss / (double)cnn->shape.batch;
}

static void step_probe(struct run *run, int64_t step)
{
    const struct cnn *cnn = (const struct cnn *)run->state;
    struct cnn_records records = { .shape = &cnn->shape,
                                   .inputs = &cnn->inputs,
                                   .buffers = cnn->buffers,
                                   .winners1 = cnn->pool1.winners,
                                   .winners2 = cnn->pool2.winners,
                                   .losses = cnn->dense.losses,
                                   .momentum = { .before = cnn->before,
                                                 .variables = cnn->variables,
                                                 .velocity_before = cnn->velocity_before,
                                                 .velocity = cnn->velocity,
                                                 .gradient = cnn->applied } };

    cnn_probe(run, step, &records);
}

static void train(struct run *run, enum racing racing)
{
    const struct cnn *cnn = (const struct cnn *)run->state;

    LAUNCH_ITEMS(begin_kernel, cnn->layout.count, *cnn);
    for (int64_t step = 0; step < cnn->shape.steps; step++) {
        forward(cnn, step);
        backward(cnn, step, racing);
        gradients_join(cnn, racing);
        LAUNCH_ITEMS(update_kernel, cnn->layout.count, *cnn);
        if (run_probing(run, step)) {
            step_probe(run, step);
        }
    }
    run->loss = mean_loss(cnn);
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

const struct workload_variant cnn_cuda_variants[CNN_VARIANTS] = {
    { .name = "unordered",
      .summary = "weight, input, bias and pooling gradients meet in atomicAdd",
      .algorithm = "atomicAdd everywhere",
      .control = true,
      .compute = train_unordered },
    { .name = "ordered",
      .summary = "each sum by one thread, images joined by a fixed tree",
      .algorithm = "in order within an image, fixed tree of images",
      .compute = train_ordered },
    { .name = "tcd",
      .summary = "as ordered, but bias gradients meet in atomicAdd",
      .algorithm = "in order within an image, fixed tree of images, atomicAdd of biases",
      .control = true,
      .compute = train_tcd },
};
