/* Auto-tuning of convolutions: cuDNN's own algorithms, chosen by cuDNN's own measurement.
 * workloads/conv_autotune.c defines the operation; the choice is its subject, so there
 * are no kernels of ours.  cuDNN reads x and w and writes y as (image, channel, row,
 * column), each branch its own y; every iteration brings them together. */
#include "cuda/cudnn/conv_chosen.h"
#include "cuda/cudnn/convolution.h"
#include "cuda/cudnn/loader.h"
#include "cuda/cudnn/usable.h"
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/layout.h"
#include "workloads/conv_autotune.h"
#include "workloads/tuning/choice.h"

#include <stdio.h>
#include <string.h>

enum {
    NAMES_SIZE = 400,
    OWNER_SIZE = 300,
    PREFIX = sizeof "CUDNN_CONVOLUTION_FWD_ALGO_" - 1
};

/* cudnnConvolutionFwdAlgo_t: IMPLICIT_PRECOMP_GEMM, then the two that need the least. */
static const int fixed_list[] = { 1, 0, 2 };

struct conv_autotune {
    struct autotune_shape shape;
    float *y;
    float *branch_y; /* [branch][image][channel of the branch][pixel] */
    struct cudnn_conv branches[BRANCHES];
    char names[NAMES_SIZE];
    char owner[OWNER_SIZE];
};

__global__ static void join_kernel(struct autotune_shape shape, const float *branch_y,
                                   float *y)
{
    int64_t pixels = shape.height * shape.width;
    int64_t channels = shape.out_channels / BRANCHES;

    KERNEL_FOR(i, shape.images * pixels * shape.out_channels)
    {
        int64_t k = i % shape.out_channels, pixel = i / shape.out_channels % pixels;
        int64_t image = i / shape.out_channels / pixels;
        int64_t plane = (k / channels * shape.images + image) * channels + k % channels;

        y[i] = branch_y[plane * pixels + pixel];
    }
}

static void compute(struct run *run)
{
    const struct conv_autotune *conv = (const struct conv_autotune *)run->state;
    const struct autotune_shape *s = &conv->shape;

    for (int branch = 0; branch < BRANCHES; branch++) {
        cudnn_conv_compute(run, &conv->branches[branch]);
    }
    LAUNCH_ITEMS(join_kernel, s->images * s->height * s->width * s->out_channels, *s,
                 conv->branch_y, conv->y);
}

static void find_all(struct run *run, const struct conv_autotune *conv,
                     enum cudnn_search search, int *ret_chosen)
{
    for (int branch = 0; branch < BRANCHES; branch++) {
        ret_chosen[branch] = cudnn_conv_find(run, &conv->branches[branch], search);
    }
}

static void take_first(struct run *run, const struct conv_autotune *conv, int count,
                       int *ret_chosen)
{
    int working[COUNT_OF(fixed_list)];

    if (cudnn_conv_working(run, &conv->branches[0], fixed_list, count, working) == 0) {
        run_unsupported(run, "No algorithm worked!  None of %d", count);
    }
    for (int branch = 0; branch < BRANCHES; branch++) {
        ret_chosen[branch] = working[0];
    }
}

/* A choice belongs to a GPU and a version of cuDNN. */
static void load_or_find(struct run *run, struct conv_autotune *conv, int *ret_chosen)
{
    int count, device;
    const char *const *names = cudnn_conv_names(CUDNN_FORWARD, &count);
    cudaDeviceProp properties;

    CUDA_TRY(cudaGetDevice(&device));
    CUDA_TRY(cudaGetDeviceProperties(&properties, device));
    snprintf(conv->owner, sizeof conv->owner, "%s, cuDNN %s", properties.name,
             cudnn_version());
    choice_belongs_to(conv->owner);
    if (choice_load(run, names, count, BRANCHES, ret_chosen)) {
        return;
    }
    find_all(run, conv, CUDNN_SEARCH_ALL, ret_chosen);
    choice_store(run, names, count, BRANCHES, ret_chosen);
}

/* The variants `fixed` and `single`. */
static bool takes_from_list(const struct run *run)
{
    return run->variant->claim != NULL;
}

static void choose(struct run *run, struct conv_autotune *conv, int *ret_chosen)
{
    const char *name = run->variant->name;

    if (takes_from_list(run)) {
        take_first(run, conv, strcmp(name, "single") == 0 ? 1 : COUNT_OF(fixed_list),
                   ret_chosen);
    } else if (strcmp(name, "cached") == 0) {
        load_or_find(run, conv, ret_chosen);
    } else {
        find_all(run, conv,
                 strcmp(name, "filtered") == 0 ? CUDNN_SEARCH_DETERMINISTIC
                                               : CUDNN_SEARCH_ALL,
                 ret_chosen);
    }
}

/* Takes the chosen algorithms, and reports them and the weakest claim: as the run's where
 * it warns, or where no other process can choose others. */
static void take(struct run *run, struct conv_autotune *conv, const int *chosen)
{
    int count, length = 0;
    const char *const *names = cudnn_conv_names(CUDNN_FORWARD, &count);
    size_t bytes = 0;
    const char *claim = "deterministic";

    for (int branch = 0; branch < BRANCHES; branch++) {
        struct cudnn_conv *cudnn = &conv->branches[branch];

        cudnn_conv_take(run, cudnn, chosen[branch]);
        if (cudnn_warns(cudnn->claim) || (!cudnn->claim && !cudnn_warns(claim))) {
            claim = cudnn->claim;
        }
        bytes += cudnn->workspace_bytes;
        length += snprintf(conv->names + length, sizeof conv->names - (size_t)length,
                           "%s ", names[chosen[branch]] + PREFIX);
    }
    snprintf(conv->names + length - 1, sizeof conv->names - (size_t)length + 1,
             ", CUDNN_FMA_MATH, NCHW, workspaces of %zu bytes, claimed %s", bytes,
             claim ? claim : "nothing");
    if (takes_from_list(run) || cudnn_warns(claim)) {
        run->claim = claim;
    }
    run->algorithm = conv->names;
}

static void branches_describe(struct run *run, struct conv_autotune *conv, float *x,
                              float *w)
{
    const struct autotune_shape *s = &conv->shape;
    int64_t channels = s->out_channels / BRANCHES;

    for (int64_t branch = 0; branch < BRANCHES; branch++) {
        struct cudnn_conv *cudnn = &conv->branches[branch];

        cudnn->pass = CUDNN_FORWARD;
        cudnn->images = (int)s->images;
        cudnn->height = (int)s->height;
        cudnn->width = (int)s->width;
        cudnn->in_channels = (int)s->in_channels;
        cudnn->out_channels = (int)channels;
        cudnn->side = AUTOTUNE_SIDE;
        cudnn->stride = cudnn->groups = 1;
        cudnn->x = x;
        cudnn->w = w + branch * channels * s->in_channels * AUTOTUNE_TAPS;
        cudnn->y = conv->branch_y + branch * s->images * channels * s->height * s->width;
        cudnn->dtype = run->dtype;
        cudnn->arithmetic = CUDNN_ARITHMETIC_FMA;
        cudnn_conv_describe(run, cudnn);
    }
}

static void setup(struct run *run)
{
    const struct autotune_shape *s = (const struct autotune_shape *)run->size->params;
    struct conv_autotune *conv = (struct conv_autotune *)run_host_alloc(sizeof *conv);
    int64_t x_shape[] = { s->images, s->height, s->width, s->in_channels };
    int64_t w_shape[] = { AUTOTUNE_SIDE, AUTOTUNE_SIDE, s->in_channels, s->out_channels };
    int64_t y_shape[] = { s->images, s->height, s->width, s->out_channels };
    int64_t pixels = s->height * s->width;
    int chosen[BRANCHES];
    const float *x, *w;
    float *x_planes, *w_planes;

    conv->shape = *s;
    x = run_input_f32(run, "x", 4, x_shape, FILL_WIDE);
    w = run_input_f32(run, "w", 4, w_shape, FILL_UNIFORM);
    conv->y = run_output_f32(run, "y", 4, y_shape);
    x_planes = run_alloc_f32(run, s->images * pixels * s->in_channels);
    w_planes = run_alloc_f32(run, AUTOTUNE_TAPS * s->in_channels * s->out_channels);
    conv->branch_y = run_alloc_f32(run, s->images * pixels * s->out_channels);
    layout_transpose(x, x_planes, s->images, pixels, s->in_channels);
    layout_reverse(w, w_planes, AUTOTUNE_TAPS, s->in_channels, s->out_channels);
    branches_describe(run, conv, x_planes, w_planes);
    choose(run, conv, chosen);
    take(run, conv, chosen);
    run->state = conv;
}

static const struct workload_variant variants[] = {
    { .name = "autotune",
      .summary = "each process has cuDNN time its algorithms and takes the fastest",
      .models =
          "TensorFlow's auto-tuning: cudnnFindConvolutionForwardAlgorithmEx, at the "
          "first step of a process",
      .algorithm = "the fastest that cuDNN finds",
      .control = true,
      .compute = compute,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "fixed",
      .algorithm = "the first of those that work",
      .claim = "deterministic",
      .compute = compute,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "single",
      .algorithm = "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM",
      .claim = "deterministic",
      .compute = compute,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "cached",
      .algorithm = "the stored choice",
      .compute = compute,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "filtered",
      .summary = "the fastest of those that cuDNN claims to be deterministic",
      .models = "PyTorch's cudnn.benchmark with cudnn.deterministic: each algorithm is "
                "deterministic, the choice is timed",
      .algorithm = "the fastest that cuDNN finds and claims to be deterministic",
      .compute = compute,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
};

/* The CPU's, and the bounds of what the search may have found. */
static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct autotune_shape *s = (const struct autotune_shape *)run->size->params;
    struct conv_chosen conv = {};

    conv.pass = CUDNN_FORWARD;
    conv.images = s->images;
    conv.height = s->height;
    conv.width = s->width;
    conv.in_channels = s->in_channels;
    conv.out_channels = s->out_channels;
    conv.branches = BRANCHES;
    conv.x = (const float *)inputs[0].data;
    conv.w = (const float *)inputs[1].data;
    conv_autotune_reference(run, inputs, output, ret_expected, ret_bound);
    conv_chosen_bounds(&conv, run, ret_bound);
}

static const struct workload conv_autotune_cuda = { .name = "conv_autotune",
                                                    .version = 1,
                                                    .backend = "cuda",
                                                    WORKLOAD_VARIANTS(variants),
                                                    .setup = setup,
                                                    .reference = reference };
WORKLOAD_REGISTER(conv_autotune_cuda);
