#include "cuda/train/cnn.h"

#include "cuda/kernel.h"
#include "cuda/train/cnn_state.h"

/* COUNT floats for each image, all zero: padding is never written. */
static float *floats(struct run *run, const struct cnn *cnn, int64_t count)
{
    size_t bytes = (size_t)(cnn->shape.batch * count) * sizeof(float);
    void *memory = run_alloc(run, bytes);

    CUDA_TRY(cudaMemset(memory, 0, bytes));
    return (float *)memory;
}

static int64_t padded_pixels(int64_t side)
{
    return (side + 2) * (side + 2);
}

/* A pooling layer of SIDE * SIDE pixels, with memory for all but its dy. */
static struct pooling pooling_of(struct run *run, const struct cnn *cnn, int64_t side,
                                 int64_t channels, const float *x)
{
    int64_t half = side / 2;
    struct pooling pooling = {
        .images = cnn->shape.batch, .side = side, .channels = channels, .x = x
    };

    pooling.y = floats(run, cnn, padded_pixels(half) * channels);
    pooling.dx = floats(run, cnn, padded_pixels(side) * channels);
    pooling.winners =
        (uint8_t *)run_alloc(run, (size_t)(pooling.images * half * half * channels));
    return pooling;
}

static struct dense dense_of(struct run *run, const struct cnn *cnn)
{
    struct dense dense = { .images = cnn->shape.batch,
                           .side = cnn->shape.side / 4,
                           .channels = cnn->shape.channels2,
                           .pooled = cnn->pool2.y,
                           .drops = cnn->inputs.drops,
                           .labels = cnn->inputs.labels,
                           .order = cnn->inputs.order,
                           .weights = cnn->variables + cnn->layout.weights3,
                           .bias = cnn->variables + cnn->layout.bias3 };

    dense.features = floats(run, cnn, cnn->layout.features);
    dense.d_features = floats(run, cnn, cnn->layout.features);
    dense.d_logits = floats(run, cnn, CNN_CLASSES);
    dense.losses = floats(run, cnn, 1);
    return dense;
}

static void convolutions_init(struct cnn *cnn)
{
    const struct cnn_shape *s = &cnn->shape;
    const struct cnn_layout *l = &cnn->layout;

    cnn->conv1 = { .images = s->batch,
                   .side = s->side,
                   .in = 1,
                   .out = s->channels1,
                   .x = cnn->x,
                   .weights = cnn->variables + l->weights1,
                   .bias = cnn->variables + l->bias1 };
    cnn->conv2 = { .images = s->batch,
                   .side = s->side / 2,
                   .in = s->channels1,
                   .out = s->channels2,
                   .x = cnn->pool1.y,
                   .weights = cnn->variables + l->weights2,
                   .bias = cnn->variables + l->bias2 };
    cnn->back = { .images = s->batch,
                  .side = s->side / 2,
                  .in = s->channels2,
                  .out = s->channels1,
                  .x = cnn->pool2.dx,
                  .weights = cnn->flipped };
}

static void layers_init(struct run *run, struct cnn *cnn)
{
    const struct cnn_shape *s = &cnn->shape;
    int64_t half = s->side / 2;

    cnn->x = floats(run, cnn, padded_pixels(s->side));
    cnn->active1 = floats(run, cnn, s->side * s->side * s->channels1);
    cnn->active2 = floats(run, cnn, half * half * s->channels2);
    cnn->d_pooled1 = floats(run, cnn, half * half * s->channels1);
    cnn->pool1 = pooling_of(run, cnn, s->side, s->channels1, cnn->active1);
    cnn->pool2 = pooling_of(run, cnn, half, s->channels2, cnn->active2);
    cnn->dense = dense_of(run, cnn);
    cnn->pool1.dy = cnn->d_pooled1;
    cnn->pool2.dy = cnn->dense.d_features;
    convolutions_init(cnn);
}

void cnn_cuda_setup(struct run *run)
{
    const struct cnn_shape *s = (const struct cnn_shape *)run->size->params;
    struct cnn *cnn = (struct cnn *)run_host_alloc(sizeof(*cnn));
    int64_t count;

    cnn->shape = *s;
    cnn->layout = cnn_layout_of(s);
    count = cnn->layout.count;
    cnn_inputs_make(run, s, &cnn->inputs);
    cnn->variables = (float *)run_output(run, "variables", run->dtype, 1, &count)->data;
    cnn->velocity = (float *)run_alloc(run, (size_t)count * sizeof(float));
    cnn->gradient = (float *)run_alloc(run, (size_t)count * sizeof(float));
    cnn->flipped = (float *)run_alloc(
        run, (size_t)(CNN_TAPS * s->channels1 * s->channels2) * sizeof(float));
    cnn->parts = floats(run, cnn, count);
    cnn->rows = floats(run, cnn, s->side * (s->channels1 + s->channels2));
    cnn->losses = (float *)run_host_alloc((size_t)s->batch * sizeof(float));
    layers_init(run, cnn);
    run->state = cnn;
}

static void train_unordered(struct run *run)
{
    cnn_train(run, RACING_ALL);
}

static void train_tcd(struct run *run)
{
    cnn_train(run, RACING_BIAS);
}

static void train_ordered(struct run *run)
{
    cnn_train(run, RACING_NOTHING);
}

const struct workload_variant cnn_cuda_variants[CNN_VARIANTS] = {
    { .name = "unordered",
      .summary = "weight, input, bias and pooling gradients meet in atomicAdd",
      .models = "training without fixes: slide 44, the five runs above",
      .algorithm = "atomicAdd everywhere",
      .control = true,
      .compute = train_unordered },
    { .name = "ordered",
      .summary = "each sum by one thread, images joined by a fixed tree",
      .models =
          "training with all fixes, TF_DETERMINISTIC_OPS or the patch: slide 44, the "
          "two runs below",
      .algorithm = "in order within an image, fixed tree of images",
      .compute = train_ordered },
    { .name = "tcd",
      .summary = "as ordered, but bias gradients meet in atomicAdd",
      .models = "TF_CUDNN_DETERMINISTIC alone: convolution and pooling are ordered, "
                "bias_add is not",
      .algorithm = "in order within an image, fixed tree of images, atomicAdd of biases",
      .control = true,
      .compute = train_tcd },
};
