#include "cuda/cudnn/convolution.h"

#include <stdio.h>

#include "cuda/cudnn/describe.h"

/* Workspace that a search may use, in bytes. */
enum { SEARCH_WORKSPACE = 1 << 28 };

static const float one = 1, zero = 0;

static const char *const forward_names[] = {
    "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM",
    "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM",
    "CUDNN_CONVOLUTION_FWD_ALGO_GEMM",
    "CUDNN_CONVOLUTION_FWD_ALGO_DIRECT",
    "CUDNN_CONVOLUTION_FWD_ALGO_FFT",
    "CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING",
    "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD",
    "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED",
};
static const char *const data_names[] = {
    "CUDNN_CONVOLUTION_BWD_DATA_ALGO_0",
    "CUDNN_CONVOLUTION_BWD_DATA_ALGO_1",
    "CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT",
    "CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING",
    "CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD",
    "CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED",
};
static const char *const filter_names[] = {
    "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0",
    "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1",
    "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT",
    "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3",
    "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD",
    "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED",
    "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING",
};

_Static_assert(COUNT_OF(forward_names) == CUDNN_CONVOLUTION_FWD_ALGO_COUNT, "names");
_Static_assert(COUNT_OF(data_names) == CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, "names");
_Static_assert(COUNT_OF(filter_names) == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT,
               "names");

const char *const *cudnn_conv_names(enum cudnn_pass pass, int *ret_count)
{
    switch (pass) {
    case CUDNN_FORWARD:
        *ret_count = COUNT_OF(forward_names);
        return forward_names;
    case CUDNN_BACKWARD_DATA:
        *ret_count = COUNT_OF(data_names);
        return data_names;
    default:
        *ret_count = COUNT_OF(filter_names);
        return filter_names;
    }
}

static cudnnMathType_t math_of(const struct cudnn_conv *conv)
{
    switch (conv->arithmetic) {
    case CUDNN_ARITHMETIC_TF32:
        return CUDNN_DEFAULT_MATH;
    case CUDNN_ARITHMETIC_TENSOR:
        return CUDNN_TENSOR_OP_MATH;
    default:
        return CUDNN_FMA_MATH;
    }
}

static const char *arithmetic_text(const struct cudnn_conv *conv)
{
    switch (conv->arithmetic) {
    case CUDNN_ARITHMETIC_TF32:
        return "CUDNN_DEFAULT_MATH (TF32 permitted)";
    case CUDNN_ARITHMETIC_TENSOR:
        return "CUDNN_TENSOR_OP_MATH";
    default:
        return "CUDNN_FMA_MATH";
    }
}

void cudnn_conv_describe(struct run *run, struct cudnn_conv *conv)
{
    const struct cudnn_convolution_shape shape = {
        .padding = conv->side / 2,
        .stride = conv->stride,
        .dilation = 1,
        .groups = conv->groups,
        .math = math_of(conv),
    };
    int images, channels, rows, columns;

    conv->x_as = cudnn_tensor(run, CUDNN_TENSOR_NCHW, conv->dtype, conv->images,
                              conv->in_channels, conv->height, conv->width);
    conv->w_as = cudnn_filter(run, CUDNN_TENSOR_NCHW, conv->dtype, conv->out_channels,
                              conv->in_channels / conv->groups, conv->side, conv->side);
    conv->how = cudnn_convolution(run, conv->dtype, &shape);
    CUDNN_CALL(run, cudnnGetConvolution2dForwardOutputDim, conv->how, conv->x_as,
               conv->w_as, &images, &channels, &rows, &columns);
    conv->y_as = cudnn_tensor(run, CUDNN_TENSOR_NCHW, conv->dtype, images, channels, rows,
                              columns);
}

/* What the three types of cudnnConvolution…AlgoPerf_t say of an algorithm. */
struct candidate {
    int algorithm;
    bool works;
    cudnnDeterminism_t determinism;
    cudnnMathType_t math;
};

/* Room for each algorithm with each type of mathematics. */
enum { CANDIDATES_MAX = 4 * CUDNN_ALGORITHMS_MAX };

/* PERF, COUNT of them, as candidates. */
#define CANDIDATES(perf, count, to)                                                      \
    for (int at = 0; at < (count); at++)                                                 \
        (to)[at] = (struct candidate)                                                    \
        {                                                                                \
            (int)(perf)[at].algo, (perf)[at].status == 0, (perf)[at].determinism,        \
                (perf)[at].mathType                                                      \
        }

/* All algorithms, the fastest first: as measured with SEARCH bytes of workspace, or as
 * cuDNN guesses without them. */
static int list_forward(struct run *run, const struct cudnn_conv *conv, void *search,
                        struct candidate *ret_list)
{
    cudnnConvolutionFwdAlgoPerf_t perf[CANDIDATES_MAX];
    cudnnHandle_t handle = cudnn_handle(run);
    int count = 0;

    if (search) {
        CUDNN_CALL(run, cudnnFindConvolutionForwardAlgorithmEx, handle, conv->x_as,
                   conv->x, conv->w_as, conv->w, conv->how, conv->y_as, conv->y,
                   CANDIDATES_MAX, &count, perf, search, SEARCH_WORKSPACE);
    } else {
        CUDNN_CALL(run, cudnnGetConvolutionForwardAlgorithm_v7, handle, conv->x_as,
                   conv->w_as, conv->how, conv->y_as, CANDIDATES_MAX, &count, perf);
    }
    CANDIDATES(perf, count, ret_list);
    return count;
}

static int list_data(struct run *run, const struct cudnn_conv *conv, void *search,
                     struct candidate *ret_list)
{
    cudnnConvolutionBwdDataAlgoPerf_t perf[CANDIDATES_MAX];
    cudnnHandle_t handle = cudnn_handle(run);
    int count = 0;

    if (search) {
        CUDNN_CALL(run, cudnnFindConvolutionBackwardDataAlgorithmEx, handle, conv->w_as,
                   conv->w, conv->y_as, conv->y, conv->how, conv->x_as, conv->x,
                   CANDIDATES_MAX, &count, perf, search, SEARCH_WORKSPACE);
    } else {
        CUDNN_CALL(run, cudnnGetConvolutionBackwardDataAlgorithm_v7, handle, conv->w_as,
                   conv->y_as, conv->how, conv->x_as, CANDIDATES_MAX, &count, perf);
    }
    CANDIDATES(perf, count, ret_list);
    return count;
}

static int list_filter(struct run *run, const struct cudnn_conv *conv, void *search,
                       struct candidate *ret_list)
{
    cudnnConvolutionBwdFilterAlgoPerf_t perf[CANDIDATES_MAX];
    cudnnHandle_t handle = cudnn_handle(run);
    int count = 0;

    if (search) {
        CUDNN_CALL(run, cudnnFindConvolutionBackwardFilterAlgorithmEx, handle, conv->x_as,
                   conv->x, conv->y_as, conv->y, conv->how, conv->w_as, conv->w,
                   CANDIDATES_MAX, &count, perf, search, SEARCH_WORKSPACE);
    } else {
        CUDNN_CALL(run, cudnnGetConvolutionBackwardFilterAlgorithm_v7, handle, conv->x_as,
                   conv->y_as, conv->how, conv->w_as, CANDIDATES_MAX, &count, perf);
    }
    CANDIDATES(perf, count, ret_list);
    return count;
}

static int list(struct run *run, const struct cudnn_conv *conv, void *search,
                struct candidate *ret_list)
{
    switch (conv->pass) {
    case CUDNN_FORWARD:
        return list_forward(run, conv, search, ret_list);
    case CUDNN_BACKWARD_DATA:
        return list_data(run, conv, search, ret_list);
    default:
        return list_filter(run, conv, search, ret_list);
    }
}

static cudnnStatus_t workspace_bytes(struct run *run, const struct cudnn_conv *conv,
                                     int algorithm, size_t *ret_bytes)
{
    const struct cudnn_table *api = cudnn_api();
    cudnnHandle_t handle = cudnn_handle(run);

    switch (conv->pass) {
    case CUDNN_FORWARD:
        return api->cudnnGetConvolutionForwardWorkspaceSize(
            handle, conv->x_as, conv->w_as, conv->how, conv->y_as,
            (cudnnConvolutionFwdAlgo_t)algorithm, ret_bytes);
    case CUDNN_BACKWARD_DATA:
        return api->cudnnGetConvolutionBackwardDataWorkspaceSize(
            handle, conv->w_as, conv->y_as, conv->how, conv->x_as,
            (cudnnConvolutionBwdDataAlgo_t)algorithm, ret_bytes);
    default:
        return api->cudnnGetConvolutionBackwardFilterWorkspaceSize(
            handle, conv->x_as, conv->y_as, conv->how, conv->w_as,
            (cudnnConvolutionBwdFilterAlgo_t)algorithm, ret_bytes);
    }
}

/* cuDNN lists an algorithm with the mathematics that was asked for, and again with its
 * default where that differs: the claim of the first that fits is the one that counts. */
static const char *claim_of(struct run *run, const struct cudnn_conv *conv, int algorithm)
{
    struct candidate found[CANDIDATES_MAX];
    int count = list(run, conv, NULL, found);
    const char *claim = NULL;

    for (int i = 0; i < count; i++) {
        if (found[i].algorithm != algorithm) {
            continue;
        }
        if (found[i].math == math_of(conv)) {
            return cudnn_claim(found[i].determinism);
        }
        if (!claim) {
            claim = cudnn_claim(found[i].determinism);
        }
    }
    return claim;
}

void cudnn_conv_take(struct run *run, struct cudnn_conv *conv, int algorithm)
{
    int count;
    const char *name = cudnn_conv_names(conv->pass, &count)[algorithm];

    cudnn_check(run, workspace_bytes(run, conv, algorithm, &conv->workspace_bytes), name);
    conv->algorithm = algorithm;
    conv->claim = claim_of(run, conv, algorithm);
    conv->workspace = cudnn_workspace(run, conv->workspace_bytes);
    snprintf(conv->description, sizeof conv->description,
             "%s, %s, NCHW, workspace of %zu bytes, claimed %s", name,
             arithmetic_text(conv), conv->workspace_bytes,
             conv->claim ? conv->claim : "nothing");
}

/* What is claimed of an algorithm is no claim of those that take its place in another
 * process. */
void cudnn_conv_take_variant(struct run *run, struct cudnn_conv *conv)
{
    int algorithm;
    bool named = sscanf(run->variant->name, "algo_%d", &algorithm) == 1;

    cudnn_conv_take(run, conv,
                    named ? algorithm : cudnn_conv_find(run, conv, CUDNN_SEARCH_ALL));
    run->algorithm = conv->description;
    if (named && conv->claim) {
        run->claim = conv->claim;
    }
}

int cudnn_conv_working(struct run *run, const struct cudnn_conv *conv, const int *numbers,
                       int count, int *ret_working)
{
    int working = 0;

    for (int i = 0; i < count; i++) {
        size_t bytes;
        cudnnStatus_t status = workspace_bytes(run, conv, numbers[i], &bytes);

        if (cudnn_says_unsupported(cudnn_load()->major, (int)status)) {
            continue;
        }
        cudnn_check(run, status, "the workspace of an algorithm");
        ret_working[working++] = numbers[i];
    }
    return working;
}

int cudnn_conv_find(struct run *run, const struct cudnn_conv *conv,
                    enum cudnn_search search)
{
    static void *workspace;
    struct candidate found[CANDIDATES_MAX];
    int count;

    if (!workspace) {
        workspace = cudnn_workspace(run, SEARCH_WORKSPACE);
    }
    count = list(run, conv, workspace, found);
    for (int i = 0; i < count; i++) {
        if (found[i].works && found[i].math == math_of(conv) &&
            (search == CUDNN_SEARCH_ALL || found[i].determinism == CUDNN_DETERMINISTIC)) {
            return found[i].algorithm;
        }
    }
    run_unsupported(
        run, "cuDNN %s finds no %salgorithm with %s among %d", cudnn_load()->version,
        search == CUDNN_SEARCH_ALL ? "" : "deterministic ", arithmetic_text(conv), count);
}

void cudnn_conv_compute(struct run *run, const struct cudnn_conv *conv)
{
    cudnnHandle_t handle = cudnn_handle(run);

    switch (conv->pass) {
    case CUDNN_FORWARD:
        CUDNN_CALL(run, cudnnConvolutionForward, handle, &one, conv->x_as, conv->x,
                   conv->w_as, conv->w, conv->how,
                   (cudnnConvolutionFwdAlgo_t)conv->algorithm, conv->workspace,
                   conv->workspace_bytes, &zero, conv->y_as, conv->y);
        break;
    case CUDNN_BACKWARD_DATA:
        CUDNN_CALL(run, cudnnConvolutionBackwardData, handle, &one, conv->w_as, conv->w,
                   conv->y_as, conv->y, conv->how,
                   (cudnnConvolutionBwdDataAlgo_t)conv->algorithm, conv->workspace,
                   conv->workspace_bytes, &zero, conv->x_as, conv->x);
        break;
    case CUDNN_BACKWARD_FILTER:
        CUDNN_CALL(run, cudnnConvolutionBackwardFilter, handle, &one, conv->x_as, conv->x,
                   conv->y_as, conv->y, conv->how,
                   (cudnnConvolutionBwdFilterAlgo_t)conv->algorithm, conv->workspace,
                   conv->workspace_bytes, &zero, conv->w_as, conv->w);
        break;
    }
}
