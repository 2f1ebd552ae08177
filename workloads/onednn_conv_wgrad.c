/* Gradient of a 3x3 convolution (stride 1, padding 1) with respect to its weights, by
 * oneDNN: dw[kh,kw,c,k] = sum over n,h,w of x[n, h+kh-1, w+kw-1, c] * dy[n,h,w,k]. */
#include "workloads/conv_wgrad.h"
#include "workloads/onednn/step.h"
#include "workloads/shared/references.h"

/* The library writes dw in a layout of its own; frameworks reorder it, and so do we. */
struct library_gradient {
    struct onednn_step gradient, reorder;
};

static void choose_gradient(struct run *run, struct onednn_step *step,
                            const struct onednn_layout *x, const struct onednn_layout *dy,
                            const int64_t *weights)
{
    static const int64_t ones[] = { 1, 1 };
    struct onednn_layout any = onednn_layout(run, 4, weights, ONEDNN_ORDER_ANY);
    struct onednn_operation operation;

    onednn_check(
        run,
        onednn_api()->convolution_backward_weights_desc_init(
            &operation, ONEDNN_CONVOLUTION_DIRECT, x, &any, NULL, dy, ones, ones, ones),
        "convolution_backward_weights_desc_init");
    onednn_step_init(run, step, &operation, NULL);
}

static void setup(struct run *run)
{
    const struct conv_shape *s = run->size->params;
    struct library_gradient *conv = run_host_alloc(sizeof *conv);
    int64_t x_shape[] = { s->images, s->height, s->width, s->in_channels };
    int64_t dy_shape[] = { s->images, s->height, s->width, s->out_channels };
    int64_t dw_shape[] = { CONV_SIDE, CONV_SIDE, s->in_channels, s->out_channels };
    int64_t weights[] = { s->out_channels, s->in_channels, CONV_SIDE, CONV_SIDE };
    struct onednn_layout x = onednn_layout(
        run, 4, (int64_t[]){ s->images, s->in_channels, s->height, s->width },
        ONEDNN_ORDER_NHWC);
    struct onednn_layout dy = onednn_layout(
        run, 4, (int64_t[]){ s->images, s->out_channels, s->height, s->width },
        ONEDNN_ORDER_NHWC);
    struct onednn_layout dw = onednn_layout(run, 4, weights, ONEDNN_ORDER_HWIO);
    const struct onednn_layout *own;
    void *scratch;

    run->state = conv;
    choose_gradient(run, &conv->gradient, &x, &dy, weights);
    own = onednn_step_layout(run, &conv->gradient, ONEDNN_QUERY_DIFF_WEIGHTS);
    scratch = onednn_alloc(run, own);
    onednn_step_bind(run, &conv->gradient, ONEDNN_SOURCE, &x,
                     run_input_f32(run, "x", 4, x_shape, FILL_UNIFORM));
    onednn_step_bind(run, &conv->gradient, ONEDNN_DIFF_RESULT, &dy,
                     run_input_f32(run, "dy", 4, dy_shape, FILL_WIDE));
    onednn_step_bind(run, &conv->gradient, ONEDNN_DIFF_WEIGHTS, own, scratch);
    onednn_step_init_reorder(run, &conv->reorder, own, scratch, &dw,
                             run_output_f32(run, "dw", 4, dw_shape));
}

static void compute(struct run *run)
{
    const struct library_gradient *conv = run->state;

    onednn_step_execute(run, &conv->gradient);
    onednn_step_execute(run, &conv->reorder);
}

static const struct workload_variant variants[] = {
    { ONEDNN_LIBRARY,
      .summary = "oneDNN's direct convolution as it comes, dw reordered to plain",
      .compute = compute },
};

static const struct workload_size sizes[] = {
    { "small", "x[64,14,14,16] dy[64,14,14,32] dw[3,3,16,32]",
      &(const struct conv_shape){ 64, 14, 14, 16, 32 } },
    { "medium", "x[64,28,28,64] dy[64,28,28,64] dw[3,3,64,64]",
      &(const struct conv_shape){ 64, 28, 28, 64, 64 } },
    { "large", "x[128,56,56,64] dy[128,56,56,64] dw[3,3,64,64]",
      &(const struct conv_shape){ 128, 56, 56, 64, 64 } },
};

static const struct workload_reference references[] = {
    GTC_SLIDES("slide 5", "inside which environment equal bits are expected", NULL),
    GITHUB_ISSUE(
        "oneDNN", "uxlfoundation/oneDNN", 1443,
        "the same answer in the same environment; none for another number of threads",
        NULL, NULL),
};

static const struct workload onednn_conv_wgrad = {
    .name = "onednn_conv_wgrad",
    .version = 1,
    .title = "oneDNN convolution backprop to weight gradients",
    .summary = "weight gradient of a 3x3 convolution, by oneDNN",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .no_control = ONEDNN_NO_CONTROL,
    .weight_sum = "sum of dw",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = conv_wgrad_reference,
};
WORKLOAD_REGISTER(onednn_conv_wgrad);
