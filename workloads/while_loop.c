/* A loop whose body changes a variable, with several iterations in flight or one.
 *
 * Iteration i computes inputs[i] * weights, a row vector, and adds it to the variable:
 * tf.while_loop with a stateful body.  tf.while_loop runs up to parallel_iterations, 10
 * by default, at once as far as data flow allows, and the variable is not in it. */
#include "workloads/while_loop.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

enum { DEPTH = LOOP_DEPTH, WIDTH = LOOP_WIDTH, CHUNK = 32 };

struct while_loop {
    int64_t iterations;
    const float *inputs;  /* [iterations][DEPTH] */
    const float *weights; /* [DEPTH][WIDTH] */
    float *variable;      /* [WIDTH] */
};

/* Columns [BEGIN, END) of the row vector of ITERATION. */
static void body(const struct while_loop *loop, int64_t iteration, int64_t begin,
                 int64_t end, float ret_row[WIDTH])
{
    memset(ret_row + begin, 0, (size_t)(end - begin) * sizeof(float));
    for (int64_t k = 0; k < DEPTH; k++) {
        float input = loop->inputs[iteration * DEPTH + k];
        const float *weights = loop->weights + k * WIDTH;

#pragma omp simd
        for (int64_t c = begin; c < end; c++) {
            ret_row[c] += input * weights[c];
        }
    }
}

static int threads_of(const struct run *run)
{
    return run->threads < LOOP_PARALLEL ? run->threads : LOOP_PARALLEL;
}

/* Neighbouring iterations go in opposite directions: two threads meet somewhere, and
 * nanoseconds decide where. */
static void compute_unordered(struct run *run)
{
    const struct while_loop *loop = run->state;

    memset(loop->variable, 0, WIDTH * sizeof(float));
#pragma omp parallel for num_threads(threads_of(run)) schedule(dynamic, 1)
    for (int64_t iteration = 0; iteration < loop->iterations; iteration++) {
        float row[WIDTH];

        body(loop, iteration, 0, WIDTH, row);
        for (int64_t i = 0; i < WIDTH; i++) {
            int64_t c = iteration % 2 ? WIDTH - 1 - i : i;

#pragma omp atomic
            loop->variable[c] += row[c];
        }
    }
}

/* One iteration after the other; threads share the columns out. */
static void compute_ordered(struct run *run)
{
    const struct while_loop *loop = run->state;

#pragma omp parallel for num_threads(run->threads)
    for (int64_t begin = 0; begin < WIDTH; begin += CHUNK) {
        float row[WIDTH];

        memset(loop->variable + begin, 0, CHUNK * sizeof(float));
        for (int64_t iteration = 0; iteration < loop->iterations; iteration++) {
            body(loop, iteration, begin, begin + CHUNK, row);
            for (int64_t c = begin; c < begin + CHUNK; c++) {
                loop->variable[c] += row[c];
            }
        }
    }
}

static void setup(struct run *run)
{
    struct while_loop *loop = run_host_alloc(sizeof *loop);
    int64_t inputs[] = { *(const int64_t *)run->size->params, DEPTH };
    int64_t weights[] = { DEPTH, WIDTH };

    loop->iterations = inputs[0];
    loop->inputs = run_input_f32(run, "inputs", 2, inputs, FILL_WIDE);
    loop->weights = run_input_f32(run, "weights", 2, weights, FILL_UNIFORM);
    loop->variable = run_output_f32(run, "variable", 1, &weights[1]);
    run->state = loop;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const float *rows = inputs[0].data, *weights = inputs[1].data;
    int64_t terms = tensor_elements(&inputs[0]);
    double gamma = rounding_gamma(run->dtype, DEPTH + inputs[0].shape[0]);

    for (int64_t c = 0; c < tensor_elements(output); c++) {
        double magnitudes = 0;

        ret_expected[c] = 0;
        for (int64_t i = 0; i < terms; i++) {
            double term = (double)rows[i] * weights[i % DEPTH * WIDTH + c];

            ret_expected[c] += term;
            magnitudes += fabs(term);
        }
        ret_bound[c] = gamma * magnitudes;
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "up to 10 iterations in flight add to the variable with atomic adds",
      .models = "tf.while_loop with a stateful body and parallel_iterations=10",
      .algorithm = "iterations in parallel, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "one iteration after the other",
      .models = "tf.autograph.experimental.set_loop_options(parallel_iterations=1)",
      .algorithm = "iterations in order",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "1536 iterations of inputs[64] weights[64,256]",
      &(const int64_t){ 1536 } },
    { "medium", "16384 iterations of inputs[64] weights[64,256]",
      &(const int64_t){ 16384 } },
    { "large", "262144 iterations of inputs[64] weights[64,256]",
      &(const int64_t){ 262144 } },
};

static const struct workload_reference references[] = {
    README_2020("While Loop Parallelism", "while-loop-parallelism",
                "parallel_iterations=1; a matter of TF 1 only, says its newest text",
                NULL),
};

static const struct workload while_loop = {
    .name = "while_loop",
    .version = 1,
    .title = "While Loop Parallelism",
    .summary = "a loop whose body adds a product to a variable",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the variable",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(while_loop);
