/* The health of a tensor; workloads/debug_numeric_summary.c defines the operation. Counts
 * are exact in `ordered` and `float64`, so they have the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "workloads/debug_numeric_summary.h"

#include <stdlib.h>

struct summary {
    struct summary_shape shape;
    const float *x;
    float *counts;             /* [SUMMARY_KINDS] */
    unsigned long long *whole; /* [SUMMARY_KINDS] */
    double *wide;              /* [SUMMARY_KINDS] */
};

static int64_t thread_count(const struct summary *summary)
{
    return summary->shape.tiles * summary->shape.elements / SUMMARY_BLOCK;
}

/* What thread I counts: SUMMARY_BLOCK elements, of which its neighbours have the
 * neighbours. */
__device__ static void elements_count(const struct summary *summary, int64_t i,
                                      int32_t counts[SUMMARY_KINDS])
{
    const int64_t task = (int64_t)SUMMARY_TASK_BLOCKS * SUMMARY_BLOCK;
    const float *x = summary->x +
                     i / SUMMARY_TASK_BLOCKS * task % summary->shape.elements +
                     i % SUMMARY_TASK_BLOCKS;

    for (int kind = 0; kind < SUMMARY_KINDS; kind++) {
        counts[kind] = 0;
    }
    for (int n = 0; n < SUMMARY_BLOCK; n++) {
        float value = x[(int64_t)n * SUMMARY_TASK_BLOCKS];

        counts[0] += value == -INFINITY;
        counts[1] += value == INFINITY;
        counts[2] += value != value;
        counts[3] += value < 0 && value != -INFINITY;
        counts[4] += value == 0;
        counts[5] += value > 0 && value != INFINITY;
    }
}

template <class SUM>
__global__ static void count_kernel(struct summary summary, SUM *sums, int64_t threads)
{
    KERNEL_FOR(i, threads)
    {
        int32_t counts[SUMMARY_KINDS];

        elements_count(&summary, i, counts);
        for (int kind = 0; kind < SUMMARY_KINDS; kind++) {
            atomicAdd(&sums[kind], (SUM)counts[kind]);
        }
    }
}

template <class SUM> static void count(const struct summary *summary, SUM *sums)
{
    CUDA_TRY(cudaMemsetAsync(sums, 0, SUMMARY_KINDS * sizeof *sums));
    LAUNCH_ITEMS(count_kernel<SUM>, thread_count(summary), *summary, sums,
                 thread_count(summary));
}

template <class SUM>
__global__ static void round_kernel(struct summary summary, const SUM *sums)
{
    summary.counts[threadIdx.x] = (float)sums[threadIdx.x];
}

static void compute_unordered(struct run *run)
{
    const struct summary *summary = (const struct summary *)run->state;

    count(summary, summary->counts);
}

template <class SUM> static void count_exactly(const struct summary *summary, SUM *sums)
{
    count(summary, sums);
    LAUNCH(round_kernel<SUM>, 1, SUMMARY_KINDS, 0, 0, *summary, sums);
}

/* Whole numbers add exactly, in any order. */
static void compute_ordered(struct run *run)
{
    const struct summary *summary = (const struct summary *)run->state;

    count_exactly(summary, summary->whole);
}

/* So they do in float64, up to 2^53. */
static void compute_float64(struct run *run)
{
    const struct summary *summary = (const struct summary *)run->state;

    count_exactly(summary, summary->wide);
}

/* Made on the host, by all its processors: values do not depend on how many there are. */
static const float *make_x(struct run *run, const struct summary_shape *shape)
{
    uint64_t kinds = philox_stream(run->seed, run->workload->name, "kinds");
    uint64_t values = philox_stream(run->seed, run->workload->name, "x");
    float *x = (float *)run_host_alloc((size_t)shape->elements * sizeof *x);
    const float *input;

#pragma omp parallel for
    for (int64_t i = 0; i < shape->elements; i++) {
        x[i] = summary_element(run, kinds, values, (uint64_t)i);
    }
    input = run_values_f32(run, "x", 1, &shape->elements, x);
    free(x);
    return input;
}

static void setup(struct run *run)
{
    const struct summary_shape *shape = (const struct summary_shape *)run->size->params;
    struct summary *summary = (struct summary *)run_host_alloc(sizeof *summary);
    int64_t kinds = SUMMARY_KINDS;

    summary->shape = *shape;
    summary->x = make_x(run, shape);
    summary->counts = run_output_f32(run, "counts", 1, &kinds);
    summary->whole =
        (unsigned long long *)run_alloc(run, SUMMARY_KINDS * sizeof *summary->whole);
    summary->wide = (double *)run_alloc(run, SUMMARY_KINDS * sizeof *summary->wide);
    run->state = summary;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every 256 elements' counts are added with atomicAdd in float32",
      .algorithm = "counts of 256, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered", .algorithm = "integer counts", .compute = compute_ordered },
    { .name = "float64",
      .summary = "the same atomicAdd in float64, rounded to float32 at the end",
      .algorithm = "counts of 256, atomic adds in float64",
      .compute = compute_float64 },
};

CUDA_TWIN(debug_numeric_summary, 1, variants, setup);
