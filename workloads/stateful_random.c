/* Ops that take their random numbers from one stateful generator: op o adds noise to its
 * activations, y[i] = exp(x[i]) + number[positions[o] + i - first element of o].  The
 * state of the generator is the position of the next number.
 *
 * Who advances the state within an op does not matter: in TensorFlow's kernel all threads
 * read it first, and the last one to finish writes what any other would.  Which op is
 * first does matter, where several take numbers from one generator at once. */
#include "workloads/stateful_random.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

static void op_activate(const struct stateful_random *random, int64_t op)
{
    int64_t end = stateful_before(&random->shape, op + 1);

    for (int64_t i = stateful_before(&random->shape, op); i < end; i++) {
        random->y[i] = stateful_activation(random->x[i]);
    }
}

/* Adds the numbers from POSITION on to elements [BEGIN, END). */
static void noise_add(const struct stateful_random *random, uint64_t stream,
                      int64_t position, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        random->y[i] +=
            philox_uniform_f32(random->seed, stream, (uint64_t)(position + i - begin));
    }
}

static void op_finish(const struct stateful_random *random, int64_t op, uint64_t stream,
                      int64_t position)
{
    random->positions[op] = position;
    noise_add(random, stream, position, stateful_before(&random->shape, op),
              stateful_before(&random->shape, op + 1));
}

static void compute_unordered(struct run *run)
{
    const struct stateful_random *random = run->state;

    *random->state = STATEFUL_FIRST;
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t op = 0; op < random->shape.ops; op++) {
        int64_t taken =
            stateful_before(&random->shape, op + 1) - stateful_before(&random->shape, op);

        op_activate(random, op);
        op_finish(random, op, random->stream,
                  __atomic_fetch_add(random->state, taken, __ATOMIC_RELAXED));
    }
}

/* One thread's part of an op that has all threads.  STATE is the generator's position,
 * and how many threads have arrived behind what they did with it. */
static void op_share(const struct stateful_random *random, int64_t op, int thread,
                     int threads)
{
    int64_t *state = random->state, position = __atomic_load_n(state, __ATOMIC_RELAXED);
    int64_t first = stateful_before(&random->shape, op);
    int64_t count = stateful_before(&random->shape, op + 1) - first;
    int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;

    for (int64_t i = first + begin; i < first + end; i++) {
        random->y[i] = stateful_activation(random->x[i]);
    }
    noise_add(random, random->stream, position + begin, first + begin, first + end);
    if (__atomic_add_fetch(&state[1], 1, __ATOMIC_ACQ_REL) == threads) {
        random->positions[op] = position;
        __atomic_store_n(state, position + count, __ATOMIC_RELAXED);
        state[1] = 0;
    }
}

static void compute_last_thread(struct run *run)
{
    const struct stateful_random *random = run->state;

    random->state[0] = STATEFUL_FIRST;
    random->state[1] = 0;
#pragma omp parallel num_threads(run->threads)
    for (int64_t op = 0; op < random->shape.ops; op++) {
        op_share(random, op, omp_get_thread_num(), omp_get_num_threads());
#pragma omp barrier
    }
}

static void compute_skipped(struct run *run)
{
    const struct stateful_random *random = run->state;

#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t op = 0; op < random->shape.ops; op++) {
        op_activate(random, op);
        op_finish(random, op, random->stream, stateful_skip_to(&random->shape, op));
    }
}

static void compute_stateless(struct run *run)
{
    const struct stateful_random *random = run->state;

#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t op = 0; op < random->shape.ops; op++) {
        op_activate(random, op);
        op_finish(random, op, stateful_own_stream(random->stream, op), STATEFUL_FIRST);
    }
}

static void setup(struct run *run)
{
    struct stateful_random *random = run_host_alloc(sizeof *random);
    const struct stateful_shape *shape = run->size->params;
    int64_t elements = stateful_before(shape, shape->ops);

    random->shape = *shape;
    random->seed = run->seed;
    random->stream = philox_stream(run->seed, run->workload->name, "noise");
    random->x = run_input_f32(run, "x", 1, &elements, FILL_UNIFORM);
    random->y = run_output_f32(run, "y", 1, &elements);
    random->positions = run_output(run, "positions", DTYPE_INT64, 1, &shape->ops)->data;
    random->state = run_alloc(run, 2 * sizeof *random->state);
    run->state = random;
}

/* Whether op OP of the control may begin at its position: at the first number, or where
 * exactly one op ends, and as the only one. */
static bool is_in_sequence(const struct stateful_shape *shape, const int64_t *positions,
                           int64_t op)
{
    int before = positions[op] == STATEFUL_FIRST, here = 0;

    for (int64_t o = 0; o < shape->ops; o++) {
        int64_t length = stateful_before(shape, o + 1) - stateful_before(shape, o);

        before += positions[o] + length == positions[op];
        here += positions[o] == positions[op];
    }
    return before == 1 && here == 1;
}

static int64_t expected_position(const struct run *run, int64_t op)
{
    const struct stateful_shape *shape = run->size->params;
    const int64_t *positions = run->outputs[1].data;

    if (strcmp(run->variant->name, "stateless") == 0) {
        return STATEFUL_FIRST;
    }
    if (run->variant->control && is_in_sequence(shape, positions, op)) {
        return positions[op];
    }
    return stateful_skip_to(shape, op);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct stateful_shape *shape = run->size->params;
    uint64_t shared = philox_stream(run->seed, run->workload->name, "noise");
    bool is_own = strcmp(run->variant->name, "stateless") == 0;
    const float *x = inputs[0].data;

    for (int64_t op = 0; op < shape->ops; op++) {
        int64_t begin = stateful_before(shape, op), position = expected_position(run, op);
        uint64_t stream = is_own ? stateful_own_stream(shared, op) : shared;

        if (output->dtype == DTYPE_INT64) {
            ret_expected[op] = (double)position;
            ret_bound[op] = 0;
            continue;
        }
        for (int64_t i = begin; i < stateful_before(shape, op + 1); i++) {
            double number =
                philox_uniform_f32(run->seed, stream, (uint64_t)(position + i - begin));

            ret_expected[i] = exp(x[i]) + number;
            ret_bound[i] = rounding_gamma(run->dtype, 2) * (exp(x[i]) + fabs(number));
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "ops run beside each other: who comes first takes the next numbers",
      .models = "ops that share a tf.random.Generator and nothing that orders them",
      .algorithm = "one state, ops as they come",
      .control = true,
      .compute = compute_unordered },
    { .name = "last_thread",
      .summary = "ops in order; the last thread of an op advances the state",
      .models = "stateful_random_ops on GPU: an atomic counter finds the last thread",
      .algorithm = "one state, ops in order",
      .compute = compute_last_thread },
    { .name = "skipped",
      .summary = "ops run beside each other, each from the position that is skipped to",
      .models = "the counter skipped for each op in a fixed order, as by RngSkip",
      .algorithm = "one state, positions in order of ops",
      .compute = compute_skipped },
    { .name = "stateless",
      .summary = "each op has a generator of its own",
      .models = "stateless random ops, or a generator split before",
      .algorithm = "generator an op",
      .compute = compute_stateless },
};

static const struct workload_relation relations[] = {
    { "skipped", "last_thread", true },
    { "stateless", "last_thread", false },
};

static const struct workload_size sizes[] = {
    { "small", "128 ops, y[147456]", &(const struct stateful_shape){ 128, 256 } },
    { "medium", "256 ops, y[4718592]", &(const struct stateful_shape){ 256, 4096 } },
    { "large", "1024 ops, y[75497472]", &(const struct stateful_shape){ 1024, 16384 } },
};

static const struct workload_reference references[] = {
    CANDIDATE_2023("stateful_random_ops; from TF 2.8 on deterministic, or it raises"),
    TENSORFLOW_SOURCE("2.3.0", "core/kernels/stateful_random_ops_gpu.cu.cc",
                      "the atomic counts threads: all have read the state before the "
                      "last one writes it"),
    README_2020("Data-Loader Parallelism", "data-loader-parallelism",
                "threads that share the state of a generator", NULL),
};

static const struct workload stateful_random = {
    .name = "stateful_random",
    .version = 1,
    .title = "Stateful random ops",
    .summary = "ops that take numbers from one generator: which op takes which",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of y",
    WORKLOAD_REFERENCES(references),
    WORKLOAD_RELATIONS(relations),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(stateful_random);
