#include "workloads/train/cnn.h"

#include <stdlib.h>

#include "workloads/instruments/philox.h"
#include "workloads/shared/references.h"

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
    int32_t *order = run_host_alloc((size_t)(epochs * s->examples) * sizeof *order);
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

    ret_inputs->patterns = run_input_f32(run, "patterns", 2, patterns, FILL_UNIFORM);
    ret_inputs->noises = run_input_f32(run, "noises", 2, noises, FILL_UNIFORM);
    ret_inputs->labels = run_input_i32(run, "labels", 1, &s->examples, CNN_CLASSES);
    order = order_make(run, s);
    ret_inputs->order = run_values_i32(run, "order", 2, order_shape, order);
    free(order);
    ret_inputs->drops = run_input_i32(run, "drops", 3, drops, CNN_DROP);
    ret_inputs->initial = run_input_f32(run, "initial", 1, &layout.count, FILL_UNIFORM);
}

const struct workload_reference cnn_references[CNN_REFERENCES] = {
    GTC_SLIDES("slide 44", "five trainings without fixes, two with, two bigger ones",
               NULL),
    TENSORFLOW_PR(24747, "TF_CUDNN_DETERMINISTIC: convolutions", "merged 2020-06",
                  "TF 1.14"),
    TENSORFLOW_PR(25269, "TF_CUDNN_DETERMINISTIC: max-pooling", "merged 2020-06",
                  "TF 1.14"),
    TENSORFLOW_PR(31465, "TF_DETERMINISTIC_OPS, bias_add as well", "merged 2020-06",
                  "TF 2.1"),
    TENSORFLOW_ISSUE(22398, "the bias_add gradient is non-deterministic",
                     "closed 2020-06", "TF 2.1"),
    GTC_SLIDES("slide 45", "the complete recipe: TCD, bias_add, seeds", NULL),
    TENSORFLOW_ISSUE(16889, "training that does not repeat, seeds or not", "open 2020-06",
                     NULL),
    GITHUB_ISSUE("keras", "keras-team/keras", 12800, "the same with Keras, on GPU",
                 "closed 2020-06", NULL),
    GITHUB_ISSUE("tensorpack", "tensorpack/tensorpack", 902, "the same with Tensorpack",
                 "closed 2020-06", NULL),
    GITHUB_PR("pytorch", "pytorch/pytorch", 33795,
              "the page about reproducibility, extended", "merged 2020-06",
              "PyTorch 1.5"),
};
