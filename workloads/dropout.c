/* Residual dropout over several steps: y[t,i] = residual[i] + mask[t,i] * x[i] /
 * DROPOUT_KEEP, where mask is 1 with probability DROPOUT_KEEP, else 0.  What varies is
 * the mask: which numbers of a generator it is made of, and to whom they go. */
#include "workloads/dropout.h"

#include <sys/random.h>

#include "workloads/instruments/philox.h"
#include "workloads/shared/probing.h"
#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

enum { TASK = 512 /* elements */ };

struct dropout {
    int64_t elements;
    const float *x, *residual;
    float *y;              /* [DROPOUT_STEPS][elements] */
    uint64_t process_seed; /* drawn when the process starts: what "unseeded" means */
    uint64_t seed;         /* of the run */
};

static float element(const struct dropout *dropout, int64_t i, uint32_t number)
{
    return dropout_element(dropout->residual[i], dropout->x[i], number);
}

/* Steps [FIRST, END), one number after another from STATE; returns the state after. */
static uint64_t steps_draw(const struct dropout *dropout, int64_t first, int64_t end,
                           uint64_t state)
{
    for (int64_t i = first * dropout->elements; i < end * dropout->elements; i++) {
        dropout->y[i] = element(dropout, i % dropout->elements, dropout_number(state));
        state += DROPOUT_STATE_STEP;
    }
    return state;
}

/* STATE is that of the generator before the first step, STRIDE what a step adds to it. */
static void steps_probe(struct run *run, uint64_t state, uint64_t stride)
{
    const struct dropout *dropout = run->state;
    int64_t n = dropout->elements;
    struct probe_value in[] = { probe_floats("x", dropout->x, n),
                                probe_floats("residual", dropout->residual, n),
                                { DTYPE_UINT8, sizeof state, NULL, "state" } };

    for (int64_t step = 0; step < DROPOUT_STEPS; step++, state += stride) {
        struct probe_value y = probe_floats("y", dropout->y + step * n, n);

        if (!run_probing(run, step)) {
            continue;
        }
        in[2].data = &state;
        run_probe(run, step, "rng/state", NULL, 0, &in[2], 1);
        run_probe(run, step, "dropout/forward", in, COUNT_OF(in), &y, 1);
    }
}

/* What a step takes from a generator that goes on. */
static uint64_t step_stride(const struct dropout *dropout)
{
    return DROPOUT_STATE_STEP * (uint64_t)dropout->elements;
}

static void compute_unseeded(struct run *run)
{
    const struct dropout *dropout = run->state;

    steps_draw(dropout, 0, DROPOUT_STEPS, dropout->process_seed);
    steps_probe(run, dropout->process_seed, step_stride(dropout));
}

/* Seeded, but all threads take their numbers from one state: who takes which number
 * depends on nanoseconds. */
static void compute_shared(struct run *run)
{
    const struct dropout *dropout = run->state;
    uint64_t state = dropout->seed;

#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t task = 0; task < DROPOUT_STEPS * dropout->elements / TASK; task++) {
        for (int64_t i = task * TASK; i < (task + 1) * TASK; i++) {
            uint64_t mine =
                __atomic_fetch_add(&state, DROPOUT_STATE_STEP, __ATOMIC_RELAXED);

            dropout->y[i] = element(dropout, i % dropout->elements, dropout_number(mine));
        }
    }
    steps_probe(run, dropout->seed, step_stride(dropout));
}

static void compute_seeded(struct run *run)
{
    const struct dropout *dropout = run->state;

    steps_draw(dropout, 0, DROPOUT_STEPS, dropout->seed);
    steps_probe(run, dropout->seed, step_stride(dropout));
}

static void compute_seeded_anew(struct run *run)
{
    const struct dropout *dropout = run->state;

#pragma omp parallel for num_threads(run->threads)
    for (int64_t step = 0; step < DROPOUT_STEPS; step++) {
        steps_draw(dropout, step, step + 1, dropout->seed);
    }
    steps_probe(run, dropout->seed, 0);
}

static void compute_counter(struct run *run)
{
    const struct dropout *dropout = run->state;
    uint64_t stream = philox_stream(run->seed, run->workload->name, "mask");

#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t task = 0; task < DROPOUT_STEPS * dropout->elements / TASK; task++) {
        for (int64_t i = task * TASK; i < (task + 1) * TASK; i++) {
            dropout->y[i] = element(dropout, i % dropout->elements,
                                    philox_u32(run->seed, stream, (uint64_t)i));
        }
    }
    steps_probe(run, run->seed, 0);
}

static void setup(struct run *run)
{
    const struct dropout_shape *shape = run->size->params;
    struct dropout *dropout = run_host_alloc(sizeof *dropout);
    int64_t y_shape[] = { DROPOUT_STEPS, shape->elements };
    const int64_t *elements = &shape->elements;

    dropout->elements = shape->elements;
    dropout->x = run_input_f32(run, "x", 1, elements, FILL_UNIFORM);
    dropout->residual = run_input_f32(run, "residual", 1, elements, FILL_UNIFORM);
    dropout->y = run_output_f32(run, "y", 2, y_shape);
    dropout->seed = philox_stream(run->seed, run->workload->name, "seed");
    if (getrandom(&dropout->process_seed, sizeof dropout->process_seed, 0) !=
        sizeof dropout->process_seed) {
        run_infra(run, "the kernel gave no seed for the generator");
    }
    run->state = dropout;
}

/* The definition does not say which elements a mask keeps: an element is the residual, or
 * the residual and x / DROPOUT_KEEP.  Expected is the middle, and the bound reaches
 * both. */
static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const float *x = inputs[0].data, *residual = inputs[1].data;
    int64_t elements = tensor_elements(&inputs[0]);

    for (int64_t i = 0; i < tensor_elements(output); i++) {
        double kept = x[i % elements] / (double)DROPOUT_KEEP,
               least = residual[i % elements];

        ret_expected[i] = least + kept / 2;
        ret_bound[i] =
            fabs(kept / 2) + rounding_gamma(run->dtype, 2) * (fabs(least) + fabs(kept));
    }
}

static const struct workload_variant variants[] = {
    { .name = "unseeded",
      .summary = "the generator starts where the process happened to start it",
      .models = "dropout without a seed",
      .algorithm = "one state, seed of the process",
      .control = true,
      .kind = "entropy",
      .compute = compute_unseeded },
    { .name = "shared",
      .summary = "seeded, but the threads take numbers from one state as they come",
      .models = "a stateful generator shared by threads",
      .algorithm = "one state, threads as they come",
      .control = true,
      .compute = compute_shared },
    { .name = "seeded",
      .summary = "seeded once; one thread takes all numbers in order",
      .models = "random, numpy and framework seeds set at the start",
      .algorithm = "one state, numbers in order",
      .compute = compute_seeded },
    { .name = "seeded_anew",
      .summary = "seeded before each step: every step has the same mask",
      .models = "setting the seed in the training loop",
      .algorithm = "one state, seeded at each step",
      .compute = compute_seeded_anew },
    { .name = "counter",
      .summary = "the number of an element is a function of seed, step and position",
      .models = "stateless random ops: Philox with an offset for each element",
      .algorithm = "Philox4x32-10, by counter",
      .compute = compute_counter },
};

static const struct workload_size sizes[] = {
    { "small", "x[131072] y[4,131072]", &(const struct dropout_shape){ 131072 } },
    { "medium", "x[2097152] y[4,2097152]", &(const struct dropout_shape){ 2097152 } },
    { "large", "x[33554432] y[4,33554432]", &(const struct dropout_shape){ 33554432 } },
};

static const struct workload_reference references[] = {
    README_2020("Seeds", "seeds",
                "dropout takes its numbers from a generator that has to be seeded anew",
                NULL),
    GTC_SLIDES("slide 45", "set the seed of every random number generator", NULL),
    README_2020("Data-Loader Parallelism", "data-loader-parallelism",
                "threads that share the state of a generator", NULL),
    TENSORFLOW_COMMIT(
        a4b53af7, 10f1e1dc41279e2de7cf6ec8b092f28b,
        "an unseeded random op raises when determinism is asked for, since TF 2.7",
        "merged 2023-07", NULL),
};

static const struct workload dropout = {
    .name = "dropout",
    .version = 1,
    .title = "Dropout and its random numbers",
    .summary = "residual dropout over four steps: which elements are dropped",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of y",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(dropout);
