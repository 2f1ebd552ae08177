/* Gradient of 3x3 max-pooling (stride 1, padding 1) with respect to its input, by oneDNN.
 * Its forward pass, in setup, notes in a workspace which position of each window won: the
 * first in row-major order when several are equal. */
#include "workloads/maxpool_bwd.h"
#include "workloads/onednn/step.h"
#include "workloads/shared/references.h"

static const int64_t strides[] = { 1, 1 }, kernel[] = { POOL_TAPS, POOL_TAPS },
                     padding[] = { 1, 1 };

static void compute_winners(struct run *run, struct onednn_step *forward,
                            const struct onednn_layout *layout, const float *x,
                            void **ret_workspace)
{
    struct onednn_operation operation;
    const struct onednn_layout *winners;

    onednn_check(run,
                 onednn_api()->pooling_forward_desc_init(
                     &operation, ONEDNN_FORWARD_TRAINING, ONEDNN_POOLING_MAX, layout,
                     layout, strides, kernel, padding, padding),
                 "pooling_forward_desc_init");
    onednn_step_init(run, forward, &operation, NULL);
    winners = onednn_step_layout(run, forward, ONEDNN_QUERY_WORKSPACE);
    *ret_workspace = onednn_alloc(run, winners);
    onednn_step_bind(run, forward, ONEDNN_SOURCE, layout, x);
    onednn_step_bind(run, forward, ONEDNN_RESULT, layout, onednn_alloc(run, layout));
    onednn_step_bind(run, forward, ONEDNN_WORKSPACE, winners, *ret_workspace);
    onednn_step_execute(run, forward);
}

static void setup(struct run *run)
{
    const struct pool_shape *s = run->size->params;
    struct onednn_step *backward = run_host_alloc(sizeof *backward);
    struct onednn_step forward;
    int64_t extents[] = { s->images, s->height, s->width, s->channels };
    struct onednn_layout layout =
        onednn_layout(run, 4, (int64_t[]){ s->images, s->channels, s->height, s->width },
                      ONEDNN_ORDER_NHWC);
    const float *x = run_input_f32(run, "x", 4, extents, FILL_UNIFORM);
    const float *dy = run_input_f32(run, "dy", 4, extents, FILL_WIDE);
    float *dx = run_output_f32(run, "dx", 4, extents);
    struct onednn_operation operation;
    void *workspace;

    run->state = backward;
    compute_winners(run, &forward, &layout, x, &workspace);
    onednn_check(run,
                 onednn_api()->pooling_backward_desc_init(&operation, ONEDNN_POOLING_MAX,
                                                          &layout, &layout, strides,
                                                          kernel, padding, padding),
                 "pooling_backward_desc_init");
    onednn_step_init(run, backward, &operation, &forward);
    onednn_step_bind(run, backward, ONEDNN_DIFF_RESULT, &layout, dy);
    onednn_step_bind(run, backward, ONEDNN_WORKSPACE,
                     onednn_step_layout(run, backward, ONEDNN_QUERY_WORKSPACE),
                     workspace);
    onednn_step_bind(run, backward, ONEDNN_DIFF_SOURCE, &layout, dx);
}

static void compute(struct run *run)
{
    onednn_step_execute(run, run->state);
}

static const struct workload_variant variants[] = {
    { ONEDNN_LIBRARY, .summary = "oneDNN's max-pooling as it comes", .compute = compute },
};

static const struct workload_size sizes[] = {
    { "small", "x[4,28,28,64] dy[4,28,28,64] dx[4,28,28,64]",
      &(const struct pool_shape){ 4, 28, 28, 64 } },
    { "medium", "x[32,28,28,192] dy[32,28,28,192] dx[32,28,28,192]",
      &(const struct pool_shape){ 32, 28, 28, 192 } },
    { "large", "x[256,28,28,192] dy[256,28,28,192] dx[256,28,28,192]",
      &(const struct pool_shape){ 256, 28, 28, 192 } },
};

static const struct workload_reference references[] = {
    GTC_SLIDES("slide 5", "inside which environment equal bits are expected", NULL),
    GITHUB_ISSUE(
        "oneDNN", "uxlfoundation/oneDNN", 1443,
        "the same answer in the same environment; none for another number of threads",
        NULL, NULL),
};

static const struct workload onednn_pool_bwd = {
    .name = "onednn_pool_bwd",
    .version = 1,
    .title = "oneDNN max-pooling backprop",
    .summary = "input gradient of 3x3 max-pooling with overlapping windows, by oneDNN",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .no_control = ONEDNN_NO_CONTROL,
    .weight_sum = "sum of dx",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = maxpool_bwd_reference,
};
WORKLOAD_REGISTER(onednn_pool_bwd);
