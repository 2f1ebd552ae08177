/* Multinomial sampling; workloads/multinomial.c defines the operation.  Scores are
 * computed with the CPU's logarithm, so all but the control draw what the CPU draws. */
#include "cuda/kernels/kernel.h"
#include "workloads/multinomial.h"

__global__ static void maximum_kernel(struct multinomial m)
{
    KERNEL_FOR(sample, multinomial_samples(&m))
    {
        int32_t last;

        m.maxima[sample] = multinomial_maximum(&m, sample, &last);
        m.drawn[sample] = 0;
    }
}

__global__ static void largest_kernel(struct multinomial m)
{
    KERNEL_FOR(i, multinomial_samples(&m) * m.shape.classes)
    {
        int64_t sample = i / m.shape.classes, column = i % m.shape.classes;

        if (multinomial_score(&m, sample, column) == m.maxima[sample]) {
            atomicMax(&m.drawn[sample], (int32_t)column);
        }
    }
}

static void compute_atomic_max(struct run *run)
{
    const struct multinomial *m = (const struct multinomial *)run->state;

    LAUNCH_ITEMS(maximum_kernel, multinomial_samples(m), *m);
    LAUNCH_ITEMS(largest_kernel, multinomial_samples(m) * m->shape.classes, *m);
}

/* Plain stores: the last writer wins. */
__global__ static void store_kernel(struct multinomial m)
{
    KERNEL_FOR(i, multinomial_samples(&m) * m.shape.classes)
    {
        int64_t sample = i / m.shape.classes, column = i % m.shape.classes;

        if (multinomial_score(&m, sample, column) == m.maxima[sample]) {
            m.drawn[sample] = (int32_t)column;
        }
    }
}

static void compute_last_writer(struct run *run)
{
    const struct multinomial *m = (const struct multinomial *)run->state;

    LAUNCH_ITEMS(maximum_kernel, multinomial_samples(m), *m);
    LAUNCH_ITEMS(store_kernel, multinomial_samples(m) * m->shape.classes, *m);
}

__global__ static void ordered_kernel(struct multinomial m)
{
    KERNEL_FOR(sample, multinomial_samples(&m))
    {
        multinomial_maximum(&m, sample, &m.drawn[sample]);
    }
}

static void compute_ordered(struct run *run)
{
    const struct multinomial *m = (const struct multinomial *)run->state;

    LAUNCH_ITEMS(ordered_kernel, multinomial_samples(m), *m);
}

static const struct workload_variant variants[] = {
    { .name = "atomic_max",
      .algorithm = "maximum of the scores, then atomic maximum of tied classes",
      .compute = compute_atomic_max },
    { .name = "last_writer",
      .algorithm = "maximum of the scores, then stores of tied classes",
      .control = true,
      .compute = compute_last_writer },
    { .name = "ordered",
      .algorithm = "owner of a sample, classes in order",
      .compute = compute_ordered },
};

CUDA_TWIN(multinomial, 1, variants, NULL);
