#include "workloads/train/cnn.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/instruments/philox.h"
#include "workloads/train/cnn_state.h"

struct cnn_layout cnn_layout_of(const struct cnn_shape *shape)
{
    struct cnn_layout l = { .features =
                                shape->side / 4 * (shape->side / 4) * shape->channels2 };

    l.bias1 = CNN_TAPS * shape->channels1;
    l.weights2 = l.bias1 + shape->channels1;
    l.bias2 = l.weights2 + CNN_TAPS * shape->channels1 * shape->channels2;
    l.weights3 = l.bias2 + shape->channels2;
    l.bias3 = l.weights3 + l.features * CNN_CLASSES;
    l.count = l.bias3 + CNN_CLASSES;
    return l;
}

/* The examples of each epoch, shuffled (Knuth, The Art of Computer Programming, vol. 2,
 * algorithm 3.4.2 P). */
static int32_t *order_make(const struct run *run, const struct cnn_shape *s)
{
    int64_t places = s->steps * s->batch;
    int64_t epochs = (places + s->examples - 1) / s->examples;
    int32_t *order = run_host_alloc((size_t)(epochs * s->examples) * sizeof(*order));
    uint64_t stream = philox_stream(run->seed, run->workload->name, "order");

    for (int64_t i = 0; i < epochs * s->examples; i++) {
        int64_t n = i % s->examples;
        int64_t j =
            (int64_t)philox_index(run->seed, stream, (uint64_t)i, (uint64_t)(n + 1));
        int32_t *epoch = order + (i - n);

        epoch[n] = epoch[j];
        epoch[j] = (int32_t)n;
    }
    return order;
}

void cnn_inputs_make(struct run *run, const struct cnn_shape *s,
                     struct cnn_inputs *ret_inputs)
{
    struct cnn_layout layout = cnn_layout_of(s);
    int64_t pixels = s->side * s->side;
    int64_t patterns[] = { CNN_CLASSES, pixels }, noises[] = { s->examples, pixels };
    int64_t order_shape[] = { s->steps, s->batch };
    int64_t drops[] = { s->steps, s->batch, layout.features };
    int32_t *order;

    ret_inputs->patterns =
        run_input(run, "patterns", run->dtype, 2, patterns, FILL_UNIFORM, 0)->data;
    ret_inputs->noises =
        run_input(run, "noises", run->dtype, 2, noises, FILL_UNIFORM, 0)->data;
    ret_inputs->labels =
        run_input(run, "labels", DTYPE_INT32, 1, &s->examples, FILL_INDEX, CNN_CLASSES)
            ->data;
    order = order_make(run, s);
    ret_inputs->order =
        run_input_values(run, "order", DTYPE_INT32, 2, order_shape, order)->data;
    free(order);
    ret_inputs->drops =
        run_input(run, "drops", DTYPE_INT32, 3, drops, FILL_INDEX, CNN_DROP)->data;
    ret_inputs->initial =
        run_input(run, "initial", run->dtype, 1, &layout.count, FILL_UNIFORM, 0)->data;
}

static float *floats(struct run *run, int64_t count)
{
    float *memory = run_alloc(run, (size_t)count * sizeof(float));

    memset(memory, 0, (size_t)count * sizeof(float));
    return memory;
}

static void buffers_make(struct run *run, struct cnn *cnn)
{
    const struct cnn_shape *s = cnn->shape;
    int64_t sizes[CNN_BUFFERS], pooled1 = s->side / 2 * (s->side / 2) * s->channels1;

    cnn_buffer_sizes(s, sizes);
    for (int i = 0; i < CNN_BUFFERS; i++)
        cnn->buffers[i] = floats(run, s->batch * sizes[i]);
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
    for (int i = 0; i < CNN_BUFFERS; i++)
        parts[i] = cnn->buffers[i] + b * sizes[i];
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
    struct cnn *cnn = run_host_alloc(sizeof(*cnn));
    int64_t count;

    cnn->shape = s;
    cnn->layout = cnn_layout_of(s);
    count = cnn->layout.count;
    cnn_inputs_make(run, s, &cnn->inputs);
    cnn->variables = run_output(run, "variables", run->dtype, 1, &count)->data;
    cnn->velocity = floats(run, count);
    cnn->gradient = floats(run, count);
    cnn->before = floats(run, count);
    cnn->velocity_before = floats(run, count);
    cnn->applied = floats(run, count);
    cnn->flipped = floats(run, CNN_TAPS * s->channels1 * s->channels2);
    cnn->parts = floats(run, s->batch * count);
    buffers_make(run, cnn);
    cnn->images = run_alloc(run, (size_t)s->batch * sizeof(*cnn->images));
    for (int64_t b = 0; b < s->batch; b++)
        image_init(cnn, b);
    cnn->scratch_floats = s->side / 2 * (s->side / 2) * s->channels1;
    cnn->scratch = floats(run, run->threads * cnn->scratch_floats);
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

const struct workload_reference cnn_references[CNN_REFERENCES] = {
    { "GTC S9911 slide 44", "five trainings without fixes, two with, two bigger ones",
      NULL },
    { "tensorflow PR 24747", "TF_CUDNN_DETERMINISTIC: convolutions", "TF 1.14" },
    { "tensorflow PR 25269", "TF_CUDNN_DETERMINISTIC: max-pooling", "TF 1.14" },
    { "tensorflow PR 31465", "TF_DETERMINISTIC_OPS, bias_add as well", "TF 2.1" },
    { "tensorflow issue 22398", "the bias_add gradient is non-deterministic", "TF 2.1" },
    { "GTC S9911 slide 45", "the complete recipe: TCD, bias_add, seeds", NULL },
    { "tensorflow issue 16889", "training that does not repeat, seeds or not", NULL },
    { "keras issue 12800", "the same with Keras, on GPU", NULL },
    { "tensorpack issue 902", "the same with Tensorpack", NULL },
    { "pytorch PR 33795", "the page about reproducibility, extended", "PyTorch 1.5" },
};
