/* Convolutions of cuDNN, forwards and backwards, by an algorithm that is named or found.
 * All tensors have one dtype and are dense: x and y as (image, channel, row, column), w
 * as (out channel, in channel, row, column), the order that every algorithm takes.
 *
 * What cuDNN refuses ends the run (loader.h). */
#ifndef CUDA_CUDNN_CONVOLUTION_H
#define CUDA_CUDNN_CONVOLUTION_H

#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cudnn_pass {
    CUDNN_FORWARD,        /* y from x and w: cudnnConvolutionFwdAlgo_t */
    CUDNN_BACKWARD_DATA,  /* x from w and y: cudnnConvolutionBwdDataAlgo_t */
    CUDNN_BACKWARD_FILTER /* w from x and y: cudnnConvolutionBwdFilterAlgo_t */
};

/* What an algorithm may compute with; its sums are float32, whatever the dtype. */
enum cudnn_arithmetic {
    CUDNN_ARITHMETIC_FMA,   /* CUDNN_FMA_MATH: neither Tensor Cores nor TF32 */
    CUDNN_ARITHMETIC_TF32,  /* CUDNN_DEFAULT_MATH: float32 may be rounded to TF32, for the
                               Tensor Cores of compute capability 8.0 and later */
    CUDNN_ARITHMETIC_TENSOR /* CUDNN_TENSOR_OP_MATH: Tensor Cores, data as they are */
};

enum { CUDNN_ALGORITHMS_MAX = 8, CUDNN_DESCRIPTION_SIZE = 200 };

struct cudnnTensorStruct;
struct cudnnFilterStruct;
struct cudnnConvolutionStruct;

struct cudnn_conv {
    enum cudnn_pass pass;
    int images, height, width; /* of x */
    int in_channels, out_channels;
    int side; /* of the window, which is padded by side / 2 */
    int stride, groups;
    enum dtype dtype; /* of x, w and y */
    enum cudnn_arithmetic arithmetic;
    void *x, *w, *y; /* device memory */

    /* The rest is written here. */
    struct cudnnTensorStruct *x_as, *y_as;
    struct cudnnFilterStruct *w_as;
    struct cudnnConvolutionStruct *how;
    int algorithm;     /* cuDNN's number in the pass */
    const char *claim; /* cuDNN's own, of this algorithm; NULL when it has none */
    size_t workspace_bytes;
    void *workspace;
    char description[CUDNN_DESCRIPTION_SIZE]; /* algorithm, mathematics, workspace */
};

/* Which algorithms a search may take. */
enum cudnn_search {
    CUDNN_SEARCH_ALL,
    CUDNN_SEARCH_DETERMINISTIC /* those that cuDNN claims to be deterministic */
};

/* "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1"; the names of a pass, indexed by cuDNN's numbers;
 * COUNT of them. */
const char *const *cudnn_conv_names(enum cudnn_pass pass, int *ret_count);

/* Makes the descriptors, which needs no GPU. */
void cudnn_conv_describe(struct run *run, struct cudnn_conv *conv);

/* Takes ALGORITHM: asks for its claim and takes its workspace.  Ends the run as
 * `unsupported` where cuDNN says that it cannot compute this convolution. */
void cudnn_conv_take(struct run *run, struct cudnn_conv *conv, int algorithm);

/* Takes the algorithm of RUN's variant, "algo_<cuDNN's number>…", or, for any other, the
 * fastest (cudnn_conv_find), and reports it as the run's; with its claim, but for what is
 * promised of one that was not named. */
void cudnn_conv_take_variant(struct run *run, struct cudnn_conv *conv);

/* The algorithms of COUNT NUMBERS that can compute this, in that order; returns how many
 * they are. */
int cudnn_conv_working(struct run *run, const struct cudnn_conv *conv, const int *numbers,
                       int count, int *ret_working);

/* The fastest by cuDNN's own measurement (cudnnFind…AlgorithmEx); the result is
 * overwritten.  Ends the run as `unsupported` where there is none. */
int cudnn_conv_find(struct run *run, const struct cudnn_conv *conv,
                    enum cudnn_search search);

/* Overwrites the pass's result. */
void cudnn_conv_compute(struct run *run, const struct cudnn_conv *conv);

#ifdef __cplusplus
}
#endif

#endif
