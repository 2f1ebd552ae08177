/* The gradient of a layer's weights as a CPU library computes it with threads: each
 * thread adds the examples it was handed to a gradient of its own, and the threads'
 * gradients are joined. dw[i,o] = sum over examples n of x[n,i] * dy[n,o].
 *
 * The threads of a CPU are the subject, so this has no twin on CUDA. */
#include "workloads/workload.h"

#include <omp.h>
#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/tree.h"

enum { TASK = 32 /* examples handed out at once */, SLOTS = 32 };

struct layer_shape {
    int64_t examples; /* a multiple of TASK */
    int64_t inputs, outputs;
};

struct cpu_reduction {
    const struct layer_shape *shape;
    const float *x, *dy;
    float *dw;
    float *parts; /* [max(SLOTS, threads)][inputs][outputs] */
};

static int64_t weights_count(const struct cpu_reduction *reduction)
{
    return reduction->shape->inputs * reduction->shape->outputs;
}

static void examples_add(const struct cpu_reduction *reduction, int64_t begin,
                         int64_t end, float *dw)
{
    const struct layer_shape *s = reduction->shape;

    for (int64_t n = begin; n < end; n++) {
        for (int64_t i = 0; i < s->inputs; i++) {
            float x = reduction->x[n * s->inputs + i];

#pragma omp simd
            for (int64_t o = 0; o < s->outputs; o++) {
                dw[i * s->outputs + o] += x * reduction->dy[n * s->outputs + o];
            }
        }
    }
}

/* No atomic anywhere: who adds what is enough. */
static void compute_unordered(struct run *run)
{
    const struct cpu_reduction *reduction = run->state;
    int64_t weights = weights_count(reduction);

#pragma omp parallel num_threads(run->threads)
    {
        float *part = reduction->parts + omp_get_thread_num() * weights;

        memset(part, 0, (size_t)weights * sizeof(float));
#pragma omp for schedule(dynamic, 1)
        for (int64_t begin = 0; begin < reduction->shape->examples; begin += TASK) {
            examples_add(reduction, begin, begin + TASK, part);
        }
        tree_join(reduction->dw, weights, reduction->parts, run->threads, weights);
    }
}

static void compute_ordered(struct run *run)
{
    const struct cpu_reduction *reduction = run->state;
    int64_t weights = weights_count(reduction), examples = reduction->shape->examples;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int64_t slot = 0; slot < SLOTS; slot++) {
            float *part = reduction->parts + slot * weights;

            memset(part, 0, (size_t)weights * sizeof(float));
            examples_add(reduction, slot * examples / SLOTS,
                         (slot + 1) * examples / SLOTS, part);
        }
        tree_join(reduction->dw, weights, reduction->parts, SLOTS, weights);
    }
}

static void compute_one_thread(struct run *run)
{
    const struct cpu_reduction *reduction = run->state;

    memset(reduction->dw, 0, (size_t)weights_count(reduction) * sizeof(float));
    examples_add(reduction, 0, reduction->shape->examples, reduction->dw);
}

static void setup(struct run *run)
{
    const struct layer_shape *s = run->size->params;
    struct cpu_reduction *reduction = run_host_alloc(sizeof *reduction);
    int64_t x_shape[] = { s->examples, s->inputs };
    int64_t dy_shape[] = { s->examples, s->outputs };
    int64_t dw_shape[] = { s->inputs, s->outputs };
    int64_t parts = run->threads > SLOTS ? run->threads : SLOTS;

    reduction->shape = s;
    reduction->x = run_input_f32(run, "x", 2, x_shape, FILL_UNIFORM);
    reduction->dy = run_input_f32(run, "dy", 2, dy_shape, FILL_WIDE);
    reduction->dw = run_output_f32(run, "dw", 2, dw_shape);
    reduction->parts = run_alloc_f32(run, parts * s->inputs * s->outputs);
    run->state = reduction;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct layer_shape *s = run->size->params;
    const float *x = inputs[0].data, *dy = inputs[1].data;
    struct exact_sums exact =
        sums_begin(run, s->examples, output, ret_expected, ret_bound);

    for (int64_t n = 0; n < s->examples; n++) {
        for (int64_t i = 0; i < s->inputs; i++) {
            sums_add_scaled(&exact, i * s->outputs, x[n * s->inputs + i],
                            dy + n * s->outputs, s->outputs);
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each thread adds the examples it happens to get to sums of its own",
      .models = "CPU kernels on a pool of threads that share the work out dynamically",
      .algorithm = "a gradient for each thread, dynamic schedule",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "32 fixed groups of examples, whoever adds them, and a fixed tree",
      .models = "nothing in the documents: the split depends on the shape alone",
      .algorithm = "32 example slots, fixed tree",
      .compute = compute_ordered },
    { .name = "one_thread",
      .summary = "one thread adds all examples in order",
      .models = "intra_op_parallelism_threads = inter_op_parallelism_threads = 1",
      .algorithm = "one thread, examples in order",
      .compute = compute_one_thread },
};

static const struct workload_size sizes[] = {
    { "small", "x[16384,32] dy[16384,64] dw[32,64]",
      &(const struct layer_shape){ 16384, 32, 64 } },
    { "medium", "x[65536,64] dy[65536,128] dw[64,128]",
      &(const struct layer_shape){ 65536, 64, 128 } },
    { "large", "x[262144,256] dy[262144,256] dw[256,256]",
      &(const struct layer_shape){ 262144, 256, 256 } },
};

static const struct workload_reference references[] = {
    GTC_SLIDES(
        "slide 43",
        "the CPU varied more than the GPU, at the update of weights; one thread cures it",
        NULL),
    README_2020("CPU", "cpu",
                "intra_op_parallelism_threads = inter_op_parallelism_threads = 1", NULL),
};

static const struct workload cpu_reduction = {
    .name = "cpu_reduction",
    .version = 1,
    .title = "Reductions on a CPU with several threads",
    .summary = "weight gradient where each thread adds its share of the examples",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dw",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(cpu_reduction);
