/* Softmax cross-entropy with dense labels; workloads/softmax_xent.c defines the
 * operation, cuda/kernels/softmax.h says why no variant has the CPU's bits. */
#include "cuda/kernels/softmax.h"

struct softmax_xent {
    struct softmax softmax;
    const float *labels;
    float *losses, *dlogits;
};

__global__ static void gradient_kernel(struct softmax_xent xent, bool atomically)
{
    const struct softmax *softmax = &xent.softmax;

    WARP_FOR(task, softmax->examples * softmax->tasks)
    {
        int64_t b = task / softmax->tasks, begin = task % softmax->tasks * SOFTMAX_TASK;
        float maximum = softmax->maxima[b], sum = softmax->sums[b];
        float log_sum = logf(sum), loss = 0;

        for (int64_t c = begin + threadIdx.x % WARP_LANES;
             c < begin + SOFTMAX_TASK && c < softmax->classes; c += WARP_LANES) {
            int64_t i = b * softmax->classes + c;
            float logit = softmax->logits[i] - maximum, label = xent.labels[i];

            loss -= label * (logit - log_sum);
            xent.dlogits[i] = expf(logit) / sum - label;
        }
        softmax_task_end(softmax, task, loss, atomically, xent.losses);
    }
}

static void compute(struct run *run, bool atomically)
{
    const struct softmax_xent *xent = (const struct softmax_xent *)run->state;
    const struct softmax *softmax = &xent->softmax;

    CUDA_TRY(cudaMemsetAsync(xent->losses, 0, (size_t)softmax->examples * sizeof(float)));
    softmax_find_sums(softmax, atomically);
    LAUNCH_ITEMS(gradient_kernel, softmax->examples * softmax->tasks * WARP_LANES, *xent,
                 atomically);
    if (!atomically) {
        softmax_join(softmax, xent->losses);
    }
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

/* Made on the host, by all its processors: values do not depend on how many there are. */
static const float *make_labels(struct run *run, const int64_t shape[2])
{
    float *labels =
        (float *)run_host_alloc((size_t)(shape[0] * shape[1]) * sizeof(float));
    const float *input;

#pragma omp parallel for
    for (int64_t b = 0; b < shape[0]; b++) {
        xent_labels_fill(run, b, shape[1], labels + b * shape[1]);
    }
    input = run_values_f32(run, "labels", 2, shape, labels);
    free(labels);
    return input;
}

static void setup(struct run *run)
{
    struct softmax_xent *xent = (struct softmax_xent *)run_host_alloc(sizeof *xent);
    int64_t shape[2];

    softmax_init(run, &xent->softmax);
    shape[0] = xent->softmax.examples;
    shape[1] = xent->softmax.classes;
    xent->labels = make_labels(run, shape);
    xent->dlogits = run_output_f32(run, "dlogits", 2, shape);
    xent->losses = run_output_f32(run, "losses", 1, shape);
    run->state = xent;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "warps add what they find in 256 classes to an example with atomicAdd",
      .algorithm = "warps of 256 classes, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary =
          "warps store what they find in 256 classes, one warp an example joins it",
      .algorithm = "warps of 256 classes, joined in a fixed order",
      .compute = compute_ordered },
};

CUDA_TWIN(softmax_xent, 1, variants, setup);
