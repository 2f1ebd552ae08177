/* Softmax cross-entropy with integer labels; workloads/softmax_xent_sparse.c defines the
 * operation, cuda/kernels/softmax.h says why no variant has the CPU's bits. */
#include "cuda/kernels/softmax.h"

struct softmax_xent_sparse {
    struct softmax softmax;
    const int32_t *labels;
    const float *upstream;
    float *losses, *dlogits;
};

__global__ static void loss_kernel(struct softmax_xent_sparse xent)
{
    const struct softmax *softmax = &xent.softmax;

    KERNEL_FOR(b, softmax->examples)
    {
        float logit = softmax->logits[b * softmax->classes + xent.labels[b]];

        xent.losses[b] = logf(softmax->sums[b]) - (logit - softmax->maxima[b]);
    }
}

__global__ static void gradient_kernel(struct softmax_xent_sparse xent)
{
    const struct softmax *softmax = &xent.softmax;

    KERNEL_FOR(i, softmax->examples * softmax->classes)
    {
        int64_t b = i / softmax->classes;
        float p = expf(softmax->logits[i] - softmax->maxima[b]) / softmax->sums[b];
        float label = i % softmax->classes == xent.labels[b] ? 1.0F : 0.0F;

        xent.dlogits[i] = (p - label) * xent.upstream[b];
    }
}

static void compute(struct run *run, bool atomically)
{
    const struct softmax_xent_sparse *xent =
        (const struct softmax_xent_sparse *)run->state;
    const struct softmax *softmax = &xent->softmax;

    softmax_find_sums(softmax, atomically);
    LAUNCH_ITEMS(loss_kernel, softmax->examples, *xent);
    LAUNCH_ITEMS(gradient_kernel, softmax->examples * softmax->classes, *xent);
    run->loss = softmax_loss(softmax, xent->losses);
}

static void compute_unordered(struct run *run)
{
    compute(run, true);
}

static void compute_ordered(struct run *run)
{
    compute(run, false);
}

static void setup(struct run *run)
{
    struct softmax_xent_sparse *xent =
        (struct softmax_xent_sparse *)run_host_alloc(sizeof *xent);
    int64_t shape[2];

    softmax_init(run, &xent->softmax);
    shape[0] = xent->softmax.examples;
    shape[1] = xent->softmax.classes;
    xent->labels = run_input_i32(run, "labels", 1, shape, shape[1]);
    xent->upstream = run_input_f32(run, "upstream", 1, shape, FILL_WIDE);
    xent->dlogits = run_output_f32(run, "dlogits", 2, shape);
    xent->losses = run_output_f32(run, "losses", 1, shape);
    run->state = xent;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "warps add their sums over 256 classes to an example with atomicAdd",
      .algorithm = "warps of 256 classes, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary =
          "warps store their sums over 256 classes, one warp an example joins them",
      .algorithm = "warps of 256 classes, joined in a fixed order",
      .compute = compute_ordered },
};

CUDA_TWIN(softmax_xent_sparse, 1, variants, setup);
