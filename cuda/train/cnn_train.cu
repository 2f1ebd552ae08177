#include "cuda/train/cnn_state.h"

#include "cuda/kernels/kernel.h"
#include "cuda/train/parts.h"
#include "workloads/train/cnn_image.h"

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

    if (racing == RACING_NOTHING)
        bias_gradients(pooling, cnn->rows, cnn->parts + bias, cnn->layout.count);
    else
        bias_gradients_atomically(pooling, cnn->gradient + bias);
    if (racing == RACING_ALL)
        convolve_weights_atomically(conv, pooling->dx, cnn->gradient + weights);
    else
        convolve_weights(conv, pooling->dx, cnn->parts + weights, cnn->layout.count);
}

static void backward(const struct cnn *cnn, int64_t step, enum racing racing)
{
    const struct cnn_layout *l = &cnn->layout;
    struct dense dense = cnn->dense;

    dense.drops += step * cnn->shape.batch * l->features;
    dense_backward(&dense, cnn->parts + l->weights3, l->count);
    if (racing != RACING_NOTHING)
        dense_bias_atomically(&dense, cnn->gradient + l->bias3);
    unpool(&cnn->pool2, racing == RACING_ALL);
    layer_gradients(cnn, &cnn->conv2, &cnn->pool2, l->weights2, racing);
    if (racing == RACING_ALL)
        convolve_atomically(&cnn->back, cnn->buffers[CNN_D_POOLED1]);
    else
        convolve(&cnn->back, cnn->buffers[CNN_D_POOLED1]);
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

    if (at >= 0 && i < cnn->layout.bias2)
        cnn->flipped[((CNN_TAPS - 1 - tap) * cnn->shape.channels2 + k) *
                         cnn->shape.channels1 +
                     c] = cnn->variables[i];
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
    for (int64_t b = 0; b < cnn->shape.batch; b++)
        loss += cnn->losses[b];
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

void cnn_train(struct run *run, enum racing racing)
{
    const struct cnn *cnn = (const struct cnn *)run->state;

    LAUNCH_ITEMS(begin_kernel, cnn->layout.count, *cnn);
    for (int64_t step = 0; step < cnn->shape.steps; step++) {
        forward(cnn, step);
        backward(cnn, step, racing);
        gradients_join(cnn, racing);
        LAUNCH_ITEMS(update_kernel, cnn->layout.count, *cnn);
        if (run_probing(run, step))
            step_probe(run, step);
    }
    run->loss = mean_loss(cnn);
}
