#include "cuda/train/cnn.h"

#include "cuda/kernels/kernel.h"
#include "cuda/train/cnn_state.h"

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
    for (int i = 0; i < CNN_BUFFERS; i++)
        cnn->buffers[i] = floats(run, cnn->shape.batch * sizes[i]);
    convolutions_init(cnn);
    poolings_init(run, cnn);
    dense_init(run, cnn);
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
