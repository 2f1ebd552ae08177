/* When gradients are applied while others are still being computed.
 *
 * Variables w[0] … w[n-1] stand in a ring; operation k uses w[k] and its neighbour w[k+1]
 * and has, with matrix A[k mod 32], a gradient for each:
 *
 *   of w[k]:   transposed A * (w[k] + w[k+1])
 *   of w[k+1]: transposed A * (w[k] - w[k+1])
 *
 * A step subtracts GATING_RATE times both gradients of every operation.  Gating says what
 * must be ready before a gradient may be applied: nothing else (GATE_NONE), the other
 * gradient of its operation (GATE_OP), or all gradients of the graph (GATE_GRAPH).
 * Without the last, an operation reads its variables before or after its neighbours
 * changed them.
 *
 * So GATE_NONE and GATE_OP have no single correct result.  Their bound covers every
 * result they may have: whatever is read lies between the variable before the step and
 * what moving it by all its gradients can make of it. */
#include "workloads/gradient_gating.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/shared/probing.h"
#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

enum { FIXPOINT_ROUNDS = 8 };

/* Gradient WHICH (0: of w[k], 1: of w[k+1]) of operation K, from the variables as they
 * are now. */
static void gradient_compute(const struct gating *gating, int64_t k, int which,
                             float ret_gradient[GATING_WIDTH])
{
    const float *own = gating->variables + k * GATING_WIDTH;
    const float *next = gating->variables + (k + 1) % gating->operations * GATING_WIDTH;

    memset(ret_gradient, 0, GATING_WIDTH * sizeof(float));
    for (int64_t j = 0; j < GATING_WIDTH; j++) {
        const float *row =
            gating->matrices + (k % GATING_MATRICES * GATING_WIDTH + j) * GATING_WIDTH;
        float a, b, value;

#pragma omp atomic read
        a = own[j];
#pragma omp atomic read
        b = next[j];
        value = which ? a - b : a + b;
#pragma omp simd
        for (int64_t i = 0; i < GATING_WIDTH; i++) {
            ret_gradient[i] += row[i] * value;
        }
    }
}

static void gradient_apply(const struct gating *gating, int64_t variable,
                           const float gradient[GATING_WIDTH])
{
    float *to = gating->variables + variable % gating->operations * GATING_WIDTH;

    for (int64_t i = 0; i < GATING_WIDTH; i++) {
#pragma omp atomic
        to[i] -= GATING_RATE * gradient[i];
    }
}

static void initial_copy(const struct gating *gating)
{
    memcpy(gating->variables, gating->initial,
           (size_t)(gating->operations * GATING_WIDTH) * sizeof(float));
}

/* The variables before STEP, for its records. */
static void before_keep(const struct run *run, int step)
{
    const struct gating *gating = run->state;

    if (run_probing(run, step)) {
        memcpy(gating->before, gating->variables,
               (size_t)(gating->operations * GATING_WIDTH) * sizeof(float));
    }
}

enum { MATRICES = 1, BEFORE, GRADIENTS, AFTER, VALUES };

/* GATED: gradients are stored before they are applied. */
static void step_probe(struct run *run, int step, bool gated)
{
    static const struct place before = { "variable/all/before", { 0 }, { BEFORE } };
    static const struct place stored[] = {
        { "gradient/all", { MATRICES, BEFORE }, { GRADIENTS } },
        { "variable/all/after", { BEFORE, GRADIENTS }, { AFTER } },
    };
    static const struct place at_once = { "variable/all/after",
                                          { MATRICES, BEFORE },
                                          { AFTER } };
    const struct gating *gating = run->state;
    int64_t elements = gating->operations * GATING_WIDTH;
    const struct probe_value values[VALUES] = {
        [MATRICES] = probe_floats("matrices", gating->matrices,
                                  GATING_MATRICES * GATING_WIDTH * GATING_WIDTH),
        [BEFORE] = probe_floats("before", gating->before, elements),
        [GRADIENTS] = probe_floats("gradients", gating->gradients, 2 * elements),
        [AFTER] = probe_floats("variables", gating->variables, elements),
    };

    if (!run_probing(run, step)) {
        return;
    }
    places_probe(run, step, values, &before, 1);
    places_probe(run, step, values, gated ? stored : &at_once,
                 gated ? COUNT_OF(stored) : 1);
}

static void compute_gate_none(struct run *run)
{
    const struct gating *gating = run->state;

    initial_copy(gating);
    for (int step = 0; step < GATING_STEPS; step++) {
        before_keep(run, step);
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
        for (int64_t task = 0; task < 2 * gating->operations; task++) {
            float gradient[GATING_WIDTH];

            gradient_compute(gating, task / 2, (int)(task % 2), gradient);
            gradient_apply(gating, task / 2 + task % 2, gradient);
        }
        step_probe(run, step, false);
    }
}

static void compute_gate_op(struct run *run)
{
    const struct gating *gating = run->state;

    initial_copy(gating);
    for (int step = 0; step < GATING_STEPS; step++) {
        before_keep(run, step);
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
        for (int64_t k = 0; k < gating->operations; k++) {
            float own[GATING_WIDTH], next[GATING_WIDTH];

            gradient_compute(gating, k, 0, own);
            gradient_compute(gating, k, 1, next);
            gradient_apply(gating, k, own);
            gradient_apply(gating, k + 1, next);
        }
        step_probe(run, step, false);
    }
}

static void compute_gate_graph(struct run *run)
{
    const struct gating *gating = run->state;
    int64_t n = gating->operations;

    initial_copy(gating);
    for (int step = 0; step < GATING_STEPS; step++) {
        before_keep(run, step);
#pragma omp parallel num_threads(run->threads)
        {
#pragma omp for
            for (int64_t task = 0; task < 2 * n; task++) {
                gradient_compute(gating, task / 2, (int)(task % 2),
                                 gating->gradients + task * GATING_WIDTH);
            }
#pragma omp for
            for (int64_t k = 0; k < n; k++) {
                gradient_apply(gating, k, gating->gradients + 2 * k * GATING_WIDTH);
                gradient_apply(gating, k,
                               gating->gradients +
                                   (2 * ((k + n - 1) % n) + 1) * GATING_WIDTH);
            }
        }
        step_probe(run, step, true);
    }
}

static void setup(struct run *run)
{
    struct gating *gating = run_host_alloc(sizeof *gating);
    int64_t n = *(const int64_t *)run->size->params;
    int64_t matrices[] = { GATING_MATRICES, GATING_WIDTH, GATING_WIDTH },
            variables[] = { n, GATING_WIDTH };

    gating->operations = n;
    gating->matrices = run_input_f32(run, "matrices", 3, matrices, FILL_UNIFORM);
    gating->initial = run_input_f32(run, "initial", 2, variables, FILL_UNIFORM);
    gating->variables = run_output_f32(run, "variables", 2, variables);
    gating->gradients = run_alloc_f32(run, 2 * n * GATING_WIDTH);
    gating->before = run_alloc_f32(run, n * GATING_WIDTH);
    run->state = gating;
}

/* Writes GATING_RATE times the sum, over what moves each variable, of matrix times
 * values; with MAGNITUDES, of magnitudes. */
static void moves(const float *matrices, int64_t n, const double *values, bool magnitudes,
                  double *ret_moves)
{
    memset(ret_moves, 0, (size_t)(n * GATING_WIDTH) * sizeof *ret_moves);
    for (int64_t row = 0; row < n * GATING_WIDTH; row++) {
        int64_t k = row / GATING_WIDTH, j = row % GATING_WIDTH, next = (k + 1) % n;
        double a = values[k * GATING_WIDTH + j], b = values[next * GATING_WIDTH + j];
        double other = magnitudes ? a + b : a - b;
        const float *from =
            matrices + row % (GATING_MATRICES * GATING_WIDTH) * GATING_WIDTH;

        for (int64_t i = 0; i < GATING_WIDTH; i++) {
            double matrix = (double)GATING_RATE * from[i];

            matrix = magnitudes ? fabs(matrix) : matrix;
            ret_moves[k * GATING_WIDTH + i] += matrix * (a + b);
            ret_moves[next * GATING_WIDTH + i] += matrix * other;
        }
    }
}

/* One step: EXPECTED moves, and BOUND, how far a result may be from it, grows.  What is
 * read may be off by what it was before the step and, unless GATED, by all that may move
 * it in the step: a fixed point, since that depends on what is read.  (The rounds come to
 * within 1 % of it from below, since GATING_RATE times a row of magnitudes is below 0.1.)
 */
static void reference_step(const struct run *run, const float *matrices, int64_t n,
                           bool gated, double *expected, double *bound)
{
    int64_t count = n * GATING_WIDTH;
    double *move = run_host_alloc((size_t)count * sizeof(double));
    double *read = run_host_alloc((size_t)count * sizeof(double));
    double gamma = rounding_gamma(run->dtype, GATING_WIDTH + 4);

    memcpy(read, bound, (size_t)count * sizeof(double));
    for (int round = 0; round < FIXPOINT_ROUNDS && !gated; round++) {
        for (int64_t i = 0; i < count; i++) {
            read[i] += fabs(expected[i]);
        }
        moves(matrices, n, read, true, move);
        for (int64_t i = 0; i < count; i++) {
            read[i] = bound[i] + 1.01 * move[i];
        }
    }
    moves(matrices, n, read, true, move);
    for (int64_t i = 0; i < count; i++) {
        bound[i] += move[i];
        read[i] += fabs(expected[i]);
    }
    moves(matrices, n, read, true, move);
    for (int64_t i = 0; i < count; i++) {
        bound[i] += gamma * move[i] + 4 * rounding_unit(run->dtype) * read[i];
    }
    moves(matrices, n, expected, false, move);
    for (int64_t i = 0; i < count; i++) {
        expected[i] -= move[i];
    }
    free(read);
    free(move);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const float *initial = inputs[1].data;

    for (int64_t i = 0; i < tensor_elements(output); i++) {
        ret_expected[i] = initial[i];
        ret_bound[i] = 0;
    }
    for (int step = 0; step < GATING_STEPS; step++) {
        reference_step(run, inputs[0].data, output->shape[0], !run->variant->control,
                       ret_expected, ret_bound);
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "GATE_OP: applied when all gradients of the operation are there",
      .models = "gate_gradients=tf.train.Optimizer.GATE_OP, the default",
      .algorithm = "gated by operation",
      .control = true,
      .compute = compute_gate_op },
    { .name = "gate_none",
      .summary = "GATE_NONE: each gradient is applied as soon as it is there",
      .models = "gate_gradients=tf.train.Optimizer.GATE_NONE",
      .algorithm = "not gated",
      .control = true,
      .compute = compute_gate_none },
    { .name = "ordered",
      .summary = "GATE_GRAPH: applied in order when all gradients are there",
      .models = "gate_gradients=tf.train.Optimizer.GATE_GRAPH",
      .algorithm = "gated by graph, applied in order",
      .compute = compute_gate_graph },
};

static const struct workload_size sizes[] = {
    { "small", "w[1024,96] A[32,96,96], 2 steps", &(const int64_t){ 1024 } },
    { "medium", "w[8192,96] A[32,96,96], 2 steps", &(const int64_t){ 8192 } },
    { "large", "w[131072,96] A[32,96,96], 2 steps", &(const int64_t){ 131072 } },
};

static const struct workload_reference references[] = {
    GTC_SLIDES("slide 32",
               "differs about every 100 steps with GATE_OP; GATE_GRAPH is deterministic",
               NULL),
    GTC_SLIDES("slide 33",
               "the fix was not needed any more after an update of the driver", NULL),
    README_2020("Gradient Gating", "gradient-gating",
                "asks for GATE_OP, with which the slides saw differences", NULL),
};

static const struct workload gradient_gating = {
    .name = "gradient_gating",
    .version = 1,
    .title = "Gradient Gating",
    .summary = "gradients applied while their neighbours are computed",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the variables",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(gradient_gating);
