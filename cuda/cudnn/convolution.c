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

/* cuDNN's functions of a PASS, which it calls NAME, and its types TYPE: they take two
 * factors, A and B, and the RESULT.
 *
 * list_…: all algorithms, the fastest first: as measured with SEARCH bytes of workspace,
 * or as cuDNN guesses without them.  Returns how many they are. */
#define PASS_FUNCTIONS(NAME, TYPE, a, b, result)                                         \
    static int list_##NAME(struct run *run, const struct cudnn_conv *c, void *search,    \
                           struct candidate *ret_list)                                   \
    {                                                                                    \
        cudnnConvolution##TYPE##AlgoPerf_t perf[CANDIDATES_MAX];                         \
        cudnnHandle_t handle = cudnn_handle(run);                                        \
        int count = 0;                                                                   \
                                                                                         \
        if (search) {                                                                    \
            CUDNN_CALL(run, cudnnFindConvolution##NAME##AlgorithmEx, handle, c->a##_as,  \
                       c->a, c->b##_as, c->b, c->how, c->result##_as, c->result,         \
                       CANDIDATES_MAX, &count, perf, search, SEARCH_WORKSPACE);          \
        } else {                                                                         \
            CUDNN_CALL(run, cudnnGetConvolution##NAME##Algorithm_v7, handle, c->a##_as,  \
                       c->b##_as, c->how, c->result##_as, CANDIDATES_MAX, &count, perf); \
        }                                                                                \
        for (int i = 0; i < count; i++) {                                                \
            ret_list[i] = (struct candidate){ (int)perf[i].algo, perf[i].status == 0,    \
                                              perf[i].determinism, perf[i].mathType };   \
        }                                                                                \
        return count;                                                                    \
    }                                                                                    \
                                                                                         \
    static cudnnStatus_t workspace_##NAME(struct run *run, const struct cudnn_conv *c,   \
                                          int algorithm, size_t *ret_bytes)              \
    {                                                                                    \
        return cudnn_api()->cudnnGetConvolution##NAME##WorkspaceSize(                    \
            cudnn_handle(run), c->a##_as, c->b##_as, c->how, c->result##_as,             \
            (cudnnConvolution##TYPE##Algo_t)algorithm, ret_bytes);                       \
    }                                                                                    \
                                                                                         \
    static void compute_##NAME(struct run *run, const struct cudnn_conv *c)              \
    {                                                                                    \
        CUDNN_CALL(run, cudnnConvolution##NAME, cudnn_handle(run), &one, c->a##_as,      \
                   c->a, c->b##_as, c->b, c->how,                                        \
                   (cudnnConvolution##TYPE##Algo_t)c->algorithm, c->workspace,           \
                   c->workspace_bytes, &zero, c->result##_as, c->result);                \
    }

PASS_FUNCTIONS(Forward, Fwd, x, w, y)
PASS_FUNCTIONS(BackwardData, BwdData, w, y, x)
PASS_FUNCTIONS(BackwardFilter, BwdFilter, x, y, w)

#define PASS(NAME, names)                                                                \
    {                                                                                    \
        names, COUNT_OF(names), list_##NAME, workspace_##NAME, compute_##NAME            \
    }
static const struct pass {
    const char *const *names; /* of the algorithms, indexed by cuDNN's numbers */
    int name_count;
    int (*list)(struct run *run, const struct cudnn_conv *conv, void *search,
                struct candidate *ret_list);
    cudnnStatus_t (*workspace_bytes)(struct run *run, const struct cudnn_conv *conv,
                                     int algorithm, size_t *ret_bytes);
    void (*compute)(struct run *run, const struct cudnn_conv *conv);
} passes[] = {
    [CUDNN_FORWARD] = PASS(Forward, forward_names),
    [CUDNN_BACKWARD_DATA] = PASS(BackwardData, data_names),
    [CUDNN_BACKWARD_FILTER] = PASS(BackwardFilter, filter_names),
};

const char *const *cudnn_conv_names(enum cudnn_pass pass, int *ret_count)
{
    *ret_count = passes[pass].name_count;
    return passes[pass].names;
}

/* cuDNN lists an algorithm with the mathematics that was asked for, and again with its
 * default where that differs: the claim of the first that fits is the one that counts. */
static const char *claim_of(struct run *run, const struct cudnn_conv *conv, int algorithm)
{
    struct candidate found[CANDIDATES_MAX];
    int count = passes[conv->pass].list(run, conv, NULL, found);
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
    const struct pass *pass = &passes[conv->pass];
    const char *name = pass->names[algorithm];

    cudnn_check(run, pass->workspace_bytes(run, conv, algorithm, &conv->workspace_bytes),
                name);
    conv->algorithm = algorithm;
    conv->claim = claim_of(run, conv, algorithm);
    conv->workspace = cudnn_workspace(run, conv->workspace_bytes);
    snprintf(conv->description, sizeof conv->description,
             "%s, %s, NCHW, workspace of %zu bytes, claimed %s", name,
             arithmetic_text(conv), conv->workspace_bytes,
             conv->claim ? conv->claim : "nothing");
}

/* What is promised of an algorithm does not hold for those that take its place in another
 * process; a warning does. */
void cudnn_conv_take_variant(struct run *run, struct cudnn_conv *conv)
{
    int algorithm;
    bool named = sscanf(run->variant->name, "algo_%d", &algorithm) == 1;

    cudnn_conv_take(run, conv,
                    named ? algorithm : cudnn_conv_find(run, conv, CUDNN_SEARCH_ALL));
    run->algorithm = conv->description;
    if (conv->claim && (named || cudnn_warns(conv->claim))) {
        run->claim = conv->claim;
    }
}

int cudnn_conv_working(struct run *run, const struct cudnn_conv *conv, const int *numbers,
                       int count, int *ret_working)
{
    int working = 0;

    for (int i = 0; i < count; i++) {
        size_t bytes;
        cudnnStatus_t status =
            passes[conv->pass].workspace_bytes(run, conv, numbers[i], &bytes);

        if (cudnn_says_unsupported(status)) {
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
    count = passes[conv->pass].list(run, conv, workspace, found);
    for (int i = 0; i < count; i++) {
        if (found[i].works && found[i].math == math_of(conv) &&
            (search == CUDNN_SEARCH_ALL || found[i].determinism == CUDNN_DETERMINISTIC)) {
            return found[i].algorithm;
        }
    }
    run_unsupported(run, "cuDNN %s finds no %salgorithm with %s among %d",
                    cudnn_version(), search == CUDNN_SEARCH_ALL ? "" : "deterministic ",
                    arithmetic_text(conv), count);
}

void cudnn_conv_compute(struct run *run, const struct cudnn_conv *conv)
{
    passes[conv->pass].compute(run, conv);
}
