/* Dropout and its random numbers; workloads/dropout.c defines the operation.  The state
 * of the generator is a counter, so each thread knows the state of its element without
 * drawing the ones before, and all but the controls have the bits of the CPU's. */
#include "cuda/kernels/kernel.h"
#include "workloads/dropout.h"

#include <sys/random.h>

#include "workloads/instruments/philox.h"

struct dropout {
    int64_t elements, count; /* of x; of y */
    const float *x, *residual;
    float *y;                  /* [DROPOUT_STEPS][elements] */
    unsigned long long *state; /* what the threads of `shared` share */
    uint64_t process_seed;     /* drawn when the process starts: what "unseeded" means */
    uint64_t seed;             /* of the run */
};

__device__ static float element(const struct dropout *dropout, int64_t i, uint32_t number)
{
    i %= dropout->elements;
    return dropout_element(dropout->residual[i], dropout->x[i], number);
}

/* One number after another from SEED, and from SEED again after PERIOD elements. */
__global__ static void draw_kernel(struct dropout dropout, uint64_t seed, int64_t period)
{
    KERNEL_FOR(i, dropout.count)
    {
        uint64_t state = seed + (uint64_t)(i % period) * DROPOUT_STATE_STEP;

        dropout.y[i] = element(&dropout, i, dropout_number(state));
    }
}

static void compute_unseeded(struct run *run)
{
    const struct dropout *dropout = (const struct dropout *)run->state;

    LAUNCH_ITEMS(draw_kernel, dropout->count, *dropout, dropout->process_seed,
                 dropout->count);
}

static void compute_seeded(struct run *run)
{
    const struct dropout *dropout = (const struct dropout *)run->state;

    LAUNCH_ITEMS(draw_kernel, dropout->count, *dropout, dropout->seed, dropout->count);
}

static void compute_seeded_anew(struct run *run)
{
    const struct dropout *dropout = (const struct dropout *)run->state;

    LAUNCH_ITEMS(draw_kernel, dropout->count, *dropout, dropout->seed, dropout->elements);
}

__global__ static void start_kernel(struct dropout dropout)
{
    *dropout.state = dropout.seed;
}

__global__ static void shared_kernel(struct dropout dropout)
{
    KERNEL_FOR(i, dropout.count)
    {
        unsigned long long mine = atomicAdd(dropout.state, DROPOUT_STATE_STEP);

        dropout.y[i] = element(&dropout, i, dropout_number(mine));
    }
}

/* Seeded, but all threads take their numbers from one state: who takes which number
 * depends on the schedule. */
static void compute_shared(struct run *run)
{
    const struct dropout *dropout = (const struct dropout *)run->state;

    LAUNCH(start_kernel, 1, 1, 0, 0, *dropout);
    LAUNCH_ITEMS(shared_kernel, dropout->count, *dropout);
}

__global__ static void counter_kernel(struct dropout dropout, uint64_t seed,
                                      uint64_t stream)
{
    KERNEL_FOR(i, dropout.count)
    {
        dropout.y[i] = element(&dropout, i, philox_u32(seed, stream, (uint64_t)i));
    }
}

static void compute_counter(struct run *run)
{
    const struct dropout *dropout = (const struct dropout *)run->state;
    uint64_t stream = philox_stream(run->seed, run->workload->name, "mask");

    LAUNCH_ITEMS(counter_kernel, dropout->count, *dropout, run->seed, stream);
}

static void setup(struct run *run)
{
    const struct dropout_shape *shape = (const struct dropout_shape *)run->size->params;
    struct dropout *dropout = (struct dropout *)run_host_alloc(sizeof *dropout);
    int64_t y_shape[] = { DROPOUT_STEPS, shape->elements };
    const int64_t *elements = &shape->elements;

    dropout->elements = shape->elements;
    dropout->count = DROPOUT_STEPS * shape->elements;
    dropout->x = run_input_f32(run, "x", 1, elements, FILL_UNIFORM);
    dropout->residual = run_input_f32(run, "residual", 1, elements, FILL_UNIFORM);
    dropout->y = run_output_f32(run, "y", 2, y_shape);
    dropout->state = (unsigned long long *)run_alloc(run, sizeof *dropout->state);
    dropout->seed = philox_stream(run->seed, run->workload->name, "seed");
    if (getrandom(&dropout->process_seed, sizeof(dropout->process_seed), 0) !=
        sizeof(dropout->process_seed)) {
        run_infra(run, "the kernel gave no seed for the generator");
    }
    run->state = dropout;
}

static const struct workload_variant variants[] = {
    { .name = "unseeded",
      .algorithm = "one state, seed of the process",
      .control = true,
      .compute = compute_unseeded },
    { .name = "shared",
      .algorithm = "one state, threads as they come",
      .control = true,
      .compute = compute_shared },
    { .name = "seeded",
      .summary = "seeded once; each element has the number of its place in the order",
      .algorithm = "one state, numbers in order",
      .compute = compute_seeded },
    { .name = "seeded_anew",
      .algorithm = "one state, seeded at each step",
      .compute = compute_seeded_anew },
    { .name = "counter",
      .algorithm = "Philox4x32-10, by counter",
      .compute = compute_counter },
};

CUDA_TWIN(dropout, 1, variants, setup);
