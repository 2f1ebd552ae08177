/* The workload of simulated fleets: sums of a few numbers, so that a run takes no time.
 * Linked into build/tests/reprod-worker-cudasim-fleets only; which device writes wrong
 * bits is told to the simulator (tests/simulator/wrong.h). */
#include "tests/simulator/row_sums.h"

enum { SUMS = 8, TERMS = 2 * WARP_LANES };

__global__ static void unordered_kernel(struct row_sums s)
{
    atomicAdd(&s.sums[blockIdx.x], s.x[blockIdx.x * TERMS + threadIdx.x]);
}

/* One thread a sum: from the first to the last. */
__global__ static void ordered_kernel(struct row_sums s)
{
    const float *x = s.x + threadIdx.x * TERMS;
    float sum = 0;

    for (int i = 0; i < TERMS; i++) {
        sum += x[i];
    }
    s.sums[threadIdx.x] = sum;
}

/* One warp a sum: a butterfly. */
__global__ static void patched_kernel(struct row_sums s)
{
    const float *x = s.x + blockIdx.x * TERMS + threadIdx.x;
    float sum = warp_sum(x[0] + x[WARP_LANES]);

    if (threadIdx.x == 0) {
        s.sums[blockIdx.x] = sum;
    }
}

static void compute_unordered(struct run *run)
{
    struct row_sums *s = (struct row_sums *)run->state;

    CUDA_TRY(cudaMemset(s->sums, 0, SUMS * sizeof(float)));
    LAUNCH(unordered_kernel, SUMS, TERMS, 0, 0, *s);
}

static void compute_ordered(struct run *run)
{
    LAUNCH(ordered_kernel, 1, SUMS, 0, 0, *(struct row_sums *)run->state);
}

static void compute_patched(struct run *run)
{
    LAUNCH(patched_kernel, SUMS, WARP_LANES, 0, 0, *(struct row_sums *)run->state);
}

static void setup(struct run *run)
{
    row_sums_setup(run, SUMS, TERMS);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *, double *ret_expected, double *ret_bound)
{
    row_sums_reference(run, inputs, SUMS, TERMS, ret_expected, ret_bound);
}

#define VARIANT(order, how)                                                              \
    {                                                                                    \
        .name = #order, .summary = how, .models = "nothing", .algorithm = how,           \
        .compute = compute_##order                                                       \
    }

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "atomicAdd",
      .models = "nothing",
      .algorithm = "atomicAdd",
      .control = true,
      .compute = compute_unordered },
    VARIANT(ordered, "from the first to the last"),
    VARIANT(patched, "a butterfly"),
};

static const struct workload_size sizes[] = { { "small", "x[8,64] sums[8]", NULL } };

static const struct workload fleet_sums_cuda = {
    .name = "fleet_sums",
    .version = 1,
    .backend = "cuda",
    .title = "Sums of a fleet",
    .summary = "sums of a few numbers",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .dtypes = { DTYPE_FLOAT32 },
    .dtype_count = 1,
    .weight_sum = "sum of the sums",
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(fleet_sums_cuda);
