/* Draws from categorical distributions: drawn[row,sample] is the class whose logit is the
 * largest after noise has been added to each.  Classes whose sums are equal are tied, and
 * the threads that found them all want to write the one result.  TensorFlow's kernel lets
 * the largest class win, with an atomic maximum of integers, which commutes.
 *
 * Ties are rare where noise counts.  Every other row is cold, as with a temperature near
 * zero: its logits are so large that noise is lost in rounding, and all classes that
 * share the largest logit are tied in every sample. */
#include "workloads/multinomial.h"

#include <stdlib.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

enum {
    GROUP = 16, /* samples of a task, which has half of their classes */
    LEVELS = 8  /* different logits of a cold row */
};

/* Floats from 2^29 on are 64 from each other, those below 32, and noise is in (-17, 5):
 * what is less than half of that is lost. */
static const double COLD = 0x1p29;

static void tie_to_largest(int32_t *drawn, int32_t column)
{
    int32_t held = __atomic_load_n(drawn, __ATOMIC_RELAXED);

    while (held < column &&
           !__atomic_compare_exchange_n(drawn, &held, column, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
}

static void tie_to_last_writer(int32_t *drawn, int32_t column)
{
    __atomic_store_n(drawn, column, __ATOMIC_RELAXED);
}

/* Goes through the samples of a group, backwards for the upper half of the classes: the
 * threads that have the two halves meet somewhere. */
static void half_of_group_decide(const struct multinomial *m, int64_t group, bool upper,
                                 void (*decide)(int32_t *drawn, int32_t column))
{
    int64_t middle = m->shape.classes / 2, end = upper ? m->shape.classes : middle;

    for (int64_t i = 0; i < GROUP; i++) {
        int64_t sample = group * GROUP + (upper ? GROUP - 1 - i : i);

        for (int64_t column = upper ? middle : 0; column < end; column++) {
            if (multinomial_score(m, sample, column) == m->maxima[sample]) {
                decide(&m->drawn[sample], (int32_t)column);
            }
        }
    }
}

static void classes_decide(struct run *run,
                           void (*decide)(int32_t *drawn, int32_t column))
{
    const struct multinomial *m = run->state;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t sample = 0; sample < multinomial_samples(m); sample++) {
            int32_t last;

            m->maxima[sample] = multinomial_maximum(m, sample, &last);
            m->drawn[sample] = 0;
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < multinomial_samples(m) / GROUP * 2; task++) {
            half_of_group_decide(m, task / 2, task % 2, decide);
        }
    }
}

static void compute_atomic_max(struct run *run)
{
    classes_decide(run, tie_to_largest);
}

static void compute_last_writer(struct run *run)
{
    classes_decide(run, tie_to_last_writer);
}

static void compute_ordered(struct run *run)
{
    const struct multinomial *m = run->state;

#pragma omp parallel for num_threads(run->threads)
    for (int64_t sample = 0; sample < multinomial_samples(m); sample++) {
        multinomial_maximum(m, sample, &m->drawn[sample]);
    }
}

static float logit(const struct run *run, uint64_t stream, int64_t row, int64_t i)
{
    if (row % 2 == 1) {
        return (float)(COLD * (double)(1 + philox_index(run->seed, stream, (uint64_t)i,
                                                        LEVELS)));
    }
    return 4 * philox_uniform_f32(run->seed, stream, (uint64_t)i);
}

static void setup(struct run *run)
{
    struct multinomial *m = run_host_alloc(sizeof *m);
    const struct multinomial_shape *shape = run->size->params;
    int64_t logits_shape[] = { shape->rows, shape->classes };
    int64_t drawn_shape[] = { shape->rows, shape->samples };
    int64_t count = shape->rows * shape->classes;
    uint64_t stream = philox_stream(run->seed, run->workload->name, "logits");
    float *logits = run_host_alloc((size_t)count * sizeof *logits);

    for (int64_t i = 0; i < count; i++) {
        logits[i] = logit(run, stream, i / shape->classes, i);
    }
    m->shape = *shape;
    m->seed = run->seed;
    m->stream = philox_stream(run->seed, run->workload->name, "noise");
    m->logits = run_values_f32(run, "logits", 2, logits_shape, logits);
    m->drawn = run_output(run, "drawn", DTYPE_INT32, 2, drawn_shape)->data;
    m->maxima = run_alloc_f32(run, shape->rows * shape->samples);
    run->state = m;
    free(logits);
}

/* The score in float64, of what the generator gives. */
static double exact_score(const struct multinomial *m, int64_t sample, int64_t column)
{
    double uniform = multinomial_uniform(m, sample, column);

    return m->logits[sample / m->shape.samples * m->shape.classes + column] -
           log(-log(uniform));
}

/* The class that SAMPLE must have drawn, DRAWN if that is right.  In a warm row, classes
 * are equally good whose scores rounding may exchange: a score has three roundings, of
 * magnitudes up to 1, 17 and 21.  In a cold row all classes of the largest logit are, but
 * the last one wins; with the control, whichever was written. */
static int64_t expected_class(const struct multinomial *m, int64_t sample, int64_t drawn,
                              bool any)
{
    const float *logits = m->logits + sample / m->shape.samples * m->shape.classes;
    bool is_cold = logits[0] >= COLD, is_class = drawn >= 0 && drawn < m->shape.classes;
    double tolerance = is_cold ? 0 : 2 * 0x1.01p-24 * (1 + 17 + 21);
    double best = -INFINITY;
    int64_t last = 0;

    for (int64_t column = 0; column < m->shape.classes; column++) {
        double score = is_cold ? logits[column] : exact_score(m, sample, column);

        if (score >= best) {
            best = score;
            last = column;
        }
    }
    if (is_cold) {
        return any && is_class && logits[drawn] == (float)best ? drawn : last;
    }
    return is_class && exact_score(m, sample, drawn) >= best - tolerance ? drawn : last;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const int32_t *drawn = output->data;
    struct multinomial m = { .seed = run->seed, .logits = inputs[0].data };

    m.shape = *(const struct multinomial_shape *)run->size->params;
    m.stream = philox_stream(run->seed, run->workload->name, "noise");
    for (int64_t i = 0; i < tensor_elements(output); i++) {
        ret_expected[i] = (double)expected_class(&m, i, drawn[i], run->variant->control);
        ret_bound[i] = 0;
    }
}

static const struct workload_variant variants[] = {
    { .name = "atomic_max",
      .summary = "of tied classes the largest wins, by an atomic maximum of integers",
      .models = "tf.random.categorical on GPU: multinomial_op's atomicMax of the class",
      .algorithm = "maximum of the scores, then atomic maximum of tied classes",
      .compute = compute_atomic_max },
    { .name = "last_writer",
      .summary = "of tied classes the one wins that is written last",
      .models = "no framework: what multinomial_op would do with a store in the place of "
                "its atomicMax",
      .algorithm = "maximum of the scores, then stores of tied classes",
      .control = true,
      .compute = compute_last_writer },
    { .name = "ordered",
      .summary = "each sample has one owner, who takes the last of tied classes",
      .models = "a scan of the classes without atomics",
      .algorithm = "owner of a sample, classes in order",
      .compute = compute_ordered },
};

static const struct workload_relation relations[] = {
    { "ordered", "atomic_max", true },
};

static const struct workload_size sizes[] = {
    { "small", "logits[4,64] drawn[4,256]",
      &(const struct multinomial_shape){ 4, 256, 64 } },
    { "medium", "logits[32,512] drawn[32,512]",
      &(const struct multinomial_shape){ 32, 512, 512 } },
    { "large", "logits[64,4096] drawn[64,1024]",
      &(const struct multinomial_shape){ 64, 1024, 4096 } },
};

static const struct workload_reference references[] = {
    CANDIDATE_2023("multinomial_op; from TF 2.8 on deterministic, or it raises"),
    TENSORFLOW_SOURCE("2.3.0", "core/kernels/multinomial_op_gpu.cu.cc",
                      "the atomic is a maximum of integers: it has no order"),
};

static const struct workload multinomial = {
    .name = "multinomial",
    .version = 1,
    .title = "Multinomial sampling",
    .summary = "classes drawn by the largest noisy logit; who wins where several tie",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the classes drawn",
    WORKLOAD_REFERENCES(references),
    WORKLOAD_RELATIONS(relations),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(multinomial);
