/* Kernels with planted faults, which the simulator must find: sums of blocks of shared
 * memory, sound and not.  Linked into build/tests/reprod-worker-cudasim-selftest only. */
#include "tests/simulator/row_sums.h"

enum { SUMS = 16, TERMS = KERNEL_THREADS };

/* Each thread brings one term, a tree in shared memory adds them. */
template <bool WITH_BARRIER> __device__ static void tree_sum(struct row_sums faults)
{
    DYNAMIC_SHARED(float, terms);

    terms[threadIdx.x] = faults.x[blockIdx.x * TERMS + threadIdx.x];
    for (unsigned half = TERMS / 2; half >= 1; half /= 2) {
        if (WITH_BARRIER) {
            __syncthreads();
        }
        if (threadIdx.x < half) {
            terms[threadIdx.x] += terms[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        faults.sums[blockIdx.x] = terms[0];
    }
}

__global__ static void barrier_kernel(struct row_sums faults)
{
    tree_sum<true>(faults);
}

__global__ static void no_barrier_kernel(struct row_sums faults)
{
    tree_sum<false>(faults);
}

__global__ static void divergent_kernel(struct row_sums faults)
{
    if (threadIdx.x % 2) {
        return;
    }
    __syncthreads();
    faults.sums[blockIdx.x] = faults.x[0];
}

__global__ static void different_barriers_kernel(struct row_sums faults)
{
    if (threadIdx.x % 2) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    faults.sums[blockIdx.x] = faults.x[0];
}

__global__ static void deadlock_kernel(struct row_sums faults)
{
    if (threadIdx.x == 0) {
        faults.sums[blockIdx.x] = __shfl_sync(3u, faults.x[0], 0);
    } else {
        __syncthreads();
    }
}

__global__ static void absent_lane_kernel(struct row_sums faults)
{
    if (threadIdx.x == 0) {
        return;
    }
    faults.sums[blockIdx.x] = warp_sum(faults.x[threadIdx.x]);
}

/* One past the end of the inputs: seen with AddressSanitizer only. */
__global__ static void overrun_kernel(struct row_sums faults)
{
    if (threadIdx.x == 0) {
        faults.sums[blockIdx.x] = faults.x[SUMS * TERMS];
    }
}

__global__ static void atomic_kernel(struct row_sums faults)
{
    atomicAdd(&faults.sums[blockIdx.x], faults.x[blockIdx.x * TERMS + threadIdx.x]);
}

typedef void kernel_fn(struct row_sums faults);

static void launch(struct run *run, kernel_fn *kernel)
{
    LAUNCH(kernel, SUMS, TERMS, TERMS * sizeof(float), 0, *(struct row_sums *)run->state);
}

static void compute_atomic(struct run *run)
{
    struct row_sums *faults = (struct row_sums *)run->state;

    CUDA_TRY(cudaMemset(faults->sums, 0, SUMS * sizeof(float)));
    launch(run, atomic_kernel);
}

#define COMPUTE(name)                                                                    \
    static void compute_##name(struct run *run)                                          \
    {                                                                                    \
        launch(run, name##_kernel);                                                      \
    }
COMPUTE(barrier)
COMPUTE(no_barrier)
COMPUTE(divergent)
COMPUTE(different_barriers)
COMPUTE(deadlock)
COMPUTE(absent_lane)
COMPUTE(overrun)

static void setup(struct run *run)
{
    row_sums_setup(run, SUMS, TERMS);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *, double *ret_expected, double *ret_bound)
{
    row_sums_reference(run, inputs, SUMS, TERMS, ret_expected, ret_bound);
}

#define VARIANT(fault)                                                                   \
    {                                                                                    \
        .name = #fault, .summary = "a kernel with a planted fault", .models = "nothing", \
        .algorithm = #fault, .compute = compute_##fault                                  \
    }

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "atomicAdd",
      .models = "nothing",
      .algorithm = "atomicAdd",
      .control = true,
      .compute = compute_atomic },
    VARIANT(barrier),
    VARIANT(no_barrier),
    VARIANT(divergent),
    VARIANT(different_barriers),
    VARIANT(deadlock),
    VARIANT(absent_lane),
    VARIANT(overrun),
};

static const struct workload_size sizes[] = { { "small", "x[16,256] sums[16]", NULL } };

static const struct workload faults_cuda = {
    .name = "faults",
    .version = 1,
    .backend = "cuda",
    .title = "Planted faults",
    .summary = "sums in shared memory, sound and not",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .dtypes = { DTYPE_FLOAT32 },
    .dtype_count = 1,
    .weight_sum = "sum of the sums",
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(faults_cuda);
