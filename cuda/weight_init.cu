/* Initialisation of trainable variables; workloads/weight_init.c defines the operation.
 * The host chooses the seeds, as in the frameworks.  All but the control have the bits of
 * the CPU's. */
#include "cuda/kernels/kernel.h"
#include "workloads/weight_init.h"

/* The seeds of all variables, by value. */
struct seeds {
    int32_t of[INIT_VARIABLES];
};

__global__ static void fill_kernel(struct weight_init init, struct seeds seeds)
{
    KERNEL_FOR(i, INIT_VARIABLES * init.elements)
    {
        int64_t variable = i / init.elements;

        init.weights[i] = init_weight(seeds.of[variable], i % init.elements);
        init.seeds[variable] = seeds.of[variable];
    }
}

static void variables_fill(struct run *run, struct seeds seeds)
{
    const struct weight_init *init = (const struct weight_init *)run->state;

    LAUNCH_ITEMS(fill_kernel, INIT_VARIABLES * init->elements, *init, seeds);
}

static void compute_unseeded(struct run *run)
{
    const struct weight_init *init = (const struct weight_init *)run->state;
    struct seeds seeds;

    for (int v = 0; v < INIT_VARIABLES; v++) {
        seeds.of[v] = init->entropy[v];
    }
    variables_fill(run, seeds);
}

static void seeded_fill(struct run *run, bool added)
{
    const struct weight_init *init = (const struct weight_init *)run->state;
    struct seeds seeds;

    for (int v = 0; v < INIT_VARIABLES; v++) {
        seeds.of[v] = init_seed(init->global, init_count_before(v, added));
    }
    variables_fill(run, seeds);
}

static void compute_seeded(struct run *run)
{
    seeded_fill(run, false);
}

static void compute_one_more(struct run *run)
{
    seeded_fill(run, true);
}

static void compute_own_seeds(struct run *run)
{
    const struct weight_init *init = (const struct weight_init *)run->state;
    struct seeds seeds;

    for (int v = 0; v < INIT_VARIABLES; v++) {
        seeds.of[v] = init_seed(init->global, INIT_NAMES + v);
    }
    variables_fill(run, seeds);
}

static const struct workload_variant variants[] = {
    { .name = "unseeded",
      .algorithm = "seeds of the process",
      .control = true,
      .compute = compute_unseeded },
    { .name = "seeded",
      .algorithm = "global seed, variables counted",
      .compute = compute_seeded },
    { .name = "one_more",
      .algorithm = "global seed, variables counted, one more",
      .compute = compute_one_more },
    { .name = "own_seeds",
      .algorithm = "global seed, seeds of the variables",
      .compute = compute_own_seeds },
};

CUDA_TWIN(weight_init, 1, variants, NULL);
