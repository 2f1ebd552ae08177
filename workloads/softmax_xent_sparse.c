/* Fused softmax and cross-entropy with one integer label for each example:
 * losses[b] = -log p[b,labels[b]], p = softmax(logits);
 * dlogits[b,c] = (p[b,c] - (c == labels[b])) * upstream[b].  The loss is the mean of the
 * losses. */
#include "workloads/workload.h"

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/softmax.h"

struct softmax_xent_sparse {
    struct softmax softmax;
    const int32_t *labels;
    const float *upstream;
    float *losses, *dlogits;
};

static void panel_gradient(const struct softmax_xent_sparse *xent, int64_t b,
                           int64_t panel)
{
    const struct softmax *softmax = &xent->softmax;
    int64_t begin = b * softmax->classes + panel * SOFTMAX_PANEL;
    int64_t label = b * softmax->classes + xent->labels[b];

    for (int64_t i = begin; i < begin + SOFTMAX_PANEL; i++) {
        xent->dlogits[i] =
            (softmax->probabilities[i] / softmax->sums[b] - (i == label ? 1.0F : 0.0F)) *
            xent->upstream[b];
    }
}

static void example_finish(const struct softmax_xent_sparse *xent, int64_t b)
{
    const struct softmax *softmax = &xent->softmax;
    float logit = softmax->logits[b * softmax->classes + xent->labels[b]];

    xent->losses[b] = logf(softmax->sums[b]) - (logit - softmax->maxima[b]);
    for (int64_t panel = 0; panel < softmax->panels; panel++) {
        panel_gradient(xent, b, panel);
    }
}

static void ends_probe(struct run *run)
{
    const struct softmax_xent_sparse *xent = run->state;
    int64_t examples = xent->softmax.examples;
    struct softmax_ends ends = {
        .labels = probe_ints("labels", xent->labels, examples),
        .upstream = probe_floats("upstream", xent->upstream, examples),
        .losses = xent->losses,
        .dlogits = xent->dlogits,
    };

    softmax_probe(run, &xent->softmax, &ends);
}

static void compute_unordered(struct run *run)
{
    const struct softmax_xent_sparse *xent = run->state;
    int64_t examples = xent->softmax.examples;

#pragma omp parallel num_threads(run->threads)
    {
        softmax_find_maxima(&xent->softmax);
        softmax_sum_atomically(&xent->softmax);
#pragma omp for
        for (int64_t b = 0; b < examples; b++) {
            example_finish(xent, b);
        }
    }
    run->loss = softmax_mean(xent->losses, examples);
    ends_probe(run);
}

static void compute_ordered(struct run *run)
{
    const struct softmax_xent_sparse *xent = run->state;
    int64_t examples = xent->softmax.examples;

#pragma omp parallel num_threads(run->threads)
    {
        softmax_find_maxima(&xent->softmax);
#pragma omp for schedule(dynamic, 1)
        for (int64_t b = 0; b < examples; b++) {
            softmax_sum_in_order(&xent->softmax, b);
            example_finish(xent, b);
        }
    }
    run->loss = softmax_mean(xent->losses, examples);
    ends_probe(run);
}

static void setup(struct run *run)
{
    const struct xent_shape *size = run->size->params;
    struct softmax_xent_sparse *xent = run_host_alloc(sizeof *xent);
    int64_t shape[] = { size->examples, size->classes };

    softmax_init(run, &xent->softmax);
    xent->labels = run_input_i32(run, "labels", 1, shape, shape[1]);
    xent->upstream = run_input_f32(run, "upstream", 1, shape, FILL_WIDE);
    xent->dlogits = run_output_f32(run, "dlogits", 2, shape);
    xent->losses = run_output_f32(run, "losses", 1, shape);
    run->state = xent;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct xent_shape *shape = run->size->params;
    double unit = rounding_unit(run->dtype);
    const int32_t *labels = inputs[1].data;
    const float *upstream = inputs[2].data;

    for (int64_t b = 0; b < shape->examples; b++) {
        const float *logits = (const float *)inputs[0].data + b * shape->classes;
        struct softmax_exact exact = softmax_exact(logits, shape->classes);

        if (output->rank == 1) {
            ret_expected[b] = exact.log_sum + exact.maximum - logits[labels[b]];
            ret_bound[b] = softmax_log_error(&exact, logits[labels[b]]);
            continue;
        }
        for (int64_t c = 0; c < shape->classes; c++) {
            double p = exp(logits[c] - exact.maximum - exact.log_sum);
            double p_error = p * softmax_relative_error(&exact, logits[c]);
            double difference = p - (c == labels[b]);

            ret_expected[b * shape->classes + c] = difference * upstream[b];
            ret_bound[b * shape->classes + c] =
                fabs((double)upstream[b]) *
                (p_error + 2.01 * unit * (fabs(difference) + p_error));
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
      .models = "the composition of separate ops with a gather, selected by "
                "TF_DETERMINISTIC_OPS",
      .algorithm = "owner of an example, fixed tree of 64-class panels",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "logits[256,6144] labels[256]", &(const struct xent_shape){ 256, 6144 } },
    { "medium", "logits[512,8192] labels[512]", &(const struct xent_shape){ 512, 8192 } },
    { "large", "logits[4096,32768] labels[4096]",
      &(const struct xent_shape){ 4096, 32768 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_PR(50070, "deterministic sparse_softmax_cross_entropy_with_logits",
                  "merged 2023-07", "TF 2.7"),
    TENSORFLOW_PR(47925,
                  "the fused ops raise when determinism is asked for, since TF 2.6",
                  "merged 2023-07", NULL),
    TENSORFLOW_ISSUE(
        38185, "asks for deterministic back-prop of the fused softmax/cross-entropy ops",
        "open 2020-06", "TF 2.7"),
};

static const struct workload softmax_xent_sparse = {
    .name = "softmax_xent_sparse",
    .version = 1,
    .title = "tf.nn.sparse_softmax_cross_entropy_with_logits",
    .summary = "softmax cross-entropy with integer labels: losses and gradient",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dlogits",
    .loss = "mean of the losses",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(softmax_xent_sparse);
