/* Fused softmax and cross-entropy with a distribution of labels for each example:
 * losses[b] = -sum over c of labels[b,c] * log p[b,c], p = softmax(logits);
 * dlogits[b,c] = p[b,c] - labels[b,c].  The loss is the mean of the losses. */
#include <stdlib.h>
#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/softmax.h"
#include "workloads/workload.h"

struct softmax_xent {
    struct softmax softmax;
    const float *labels;
    float *losses, *dlogits;
};

/* Writes the gradient of a panel and returns its share of the example's loss. */
static float panel_loss(const struct softmax_xent *xent, int64_t b, int64_t panel)
{
    const struct softmax *softmax = &xent->softmax;
    int64_t begin = panel * SOFTMAX_PANEL;
    float log_sum = logf(softmax->sums[b]), loss = 0;

    for (int64_t c = begin; c < begin + SOFTMAX_PANEL; c++) {
        int64_t i = b * softmax->classes + c;

        loss -= xent->labels[i] * (softmax->logits[i] - softmax->maxima[b] - log_sum);
        xent->dlogits[i] = softmax->probabilities[i] / softmax->sums[b] - xent->labels[i];
    }
    return loss;
}

static void losses_add_atomically(const struct softmax_xent *xent)
{
    const struct softmax *softmax = &xent->softmax;

#pragma omp for schedule(dynamic, 1)
    for (int64_t panel = 0; panel < softmax->panels; panel++) {
        for (int64_t i = 0; i < softmax->examples; i++) {
            int64_t b = softmax_example(softmax, panel, i);
            float loss = panel_loss(xent, b, panel);

#pragma omp atomic
            xent->losses[b] += loss;
        }
    }
}

static void ends_probe(struct run *run)
{
    const struct softmax_xent *xent = run->state;
    int64_t elements = xent->softmax.examples * xent->softmax.classes;
    struct softmax_ends ends = { .labels = probe_floats("labels", xent->labels, elements),
                                 .losses = xent->losses,
                                 .dlogits = xent->dlogits };

    softmax_probe(run, &xent->softmax, &ends);
}

static void compute_unordered(struct run *run)
{
    const struct softmax_xent *xent = run->state;
    int64_t examples = xent->softmax.examples;

    memset(xent->losses, 0, (size_t)examples * sizeof(float));
#pragma omp parallel num_threads(run->threads)
    {
        softmax_find_maxima(&xent->softmax);
        softmax_sum_atomically(&xent->softmax);
        losses_add_atomically(xent);
    }
    run->loss = softmax_mean(xent->losses, examples);
    ends_probe(run);
}

static void example_compute(const struct softmax_xent *xent, int64_t b)
{
    const struct softmax *softmax = &xent->softmax;

    softmax_sum_in_order(softmax, b);
    for (int64_t panel = 0; panel < softmax->panels; panel++) {
        softmax->parts[b * softmax->panels + panel] = panel_loss(xent, b, panel);
    }
    xent->losses[b] = softmax_join(softmax, b);
}

static void compute_ordered(struct run *run)
{
    const struct softmax_xent *xent = run->state;
    int64_t examples = xent->softmax.examples;

#pragma omp parallel num_threads(run->threads)
    {
        softmax_find_maxima(&xent->softmax);
#pragma omp for schedule(dynamic, 1)
        for (int64_t b = 0; b < examples; b++) {
            example_compute(xent, b);
        }
    }
    run->loss = softmax_mean(xent->losses, examples);
    ends_probe(run);
}

static void setup(struct run *run)
{
    const struct xent_shape *size = run->size->params;
    struct softmax_xent *xent = run_host_alloc(sizeof *xent);
    int64_t shape[] = { size->examples, size->classes };
    size_t bytes = (size_t)(shape[0] * shape[1]) * sizeof(float);
    float *labels = run_host_alloc(bytes);

#pragma omp parallel for num_threads(run->threads)
    for (int64_t b = 0; b < size->examples; b++) {
        xent_labels_fill(run, b, size->classes, labels + b * size->classes);
    }
    softmax_init(run, &xent->softmax);
    xent->labels = run_values_f32(run, "labels", 2, shape, labels);
    xent->dlogits = run_output_f32(run, "dlogits", 2, shape);
    xent->losses = run_output_f32(run, "losses", 1, shape);
    run->state = xent;
    free(labels);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct xent_shape *shape = run->size->params;
    double unit = rounding_unit(run->dtype);
    double gamma = rounding_gamma(run->dtype, shape->classes + 2);
    bool losses = output->rank == 1;

    for (int64_t b = 0; b < shape->examples; b++) {
        const float *logits = (const float *)inputs[0].data + b * shape->classes;
        const float *labels = (const float *)inputs[1].data + b * shape->classes;
        struct softmax_exact exact = softmax_exact(logits, shape->classes);

        if (losses) {
            ret_expected[b] = ret_bound[b] = 0;
        }
        for (int64_t c = 0; c < shape->classes; c++) {
            double log_p = logits[c] - exact.maximum - exact.log_sum, p = exp(log_p);
            double log_error = softmax_log_error(&exact, logits[c]);
            double p_error = p * softmax_relative_error(&exact, logits[c]);

            if (losses) {
                ret_expected[b] -= labels[c] * log_p;
                ret_bound[b] +=
                    labels[c] * (log_error + gamma * (fabs(log_p) + log_error));
            } else {
                ret_expected[b * shape->classes + c] = p - labels[c];
                ret_bound[b * shape->classes + c] =
                    p_error + unit * (fabs(p - labels[c]) + p_error) + 0x1p-149;
            }
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "panels of 64 classes add to the sums of an example with atomic adds",
      .models = "TensorFlow's fused op on GPU: reductions without a fixed order",
      .algorithm = "panels of 64 classes, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "each example has one owner, who joins its panels by a fixed tree",
      .models = "the composition of separate ops selected by TF_DETERMINISTIC_OPS",
      .algorithm = "owner of an example, fixed tree of 64-class panels",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "logits[256,4096] labels[256,4096]",
      &(const struct xent_shape){ 256, 4096 } },
    { "medium", "logits[512,8192] labels[512,8192]",
      &(const struct xent_shape){ 512, 8192 } },
    { "large", "logits[4096,32768] labels[4096,32768]",
      &(const struct xent_shape){ 4096, 32768 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_ISSUE(
        38185, "asks for deterministic back-prop of the fused softmax/cross-entropy ops",
        "open 2020-06", "TF 2.6"),
    TENSORFLOW_PR(47925,
                  "the fused ops raise when determinism is asked for, since TF 2.6",
                  "merged 2023-07", NULL),
    TENSORFLOW_PR(49178,
                  "deterministic softmax_cross_entropy_with_logits, forward and backward",
                  "merged 2023-07", "TF 2.6"),
    TENSORFLOW_ISSUE(40514, "BERT differs from run to run on GPU",
                     "open 2020-06, closed 2023-07", NULL),
    TENSORFLOW_PR(48688, "tests of the fused ops", "merged 2023-07", "TF 2.6"),
};

static const struct workload softmax_xent = {
    .name = "softmax_xent",
    .version = 1,
    .title = "Fused softmax/cross-entropy ops backprop",
    .summary = "softmax cross-entropy with dense labels: losses and gradient",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dlogits",
    .loss = "mean of the losses",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(softmax_xent);
