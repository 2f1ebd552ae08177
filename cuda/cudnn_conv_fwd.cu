/* Every algorithm of cudnnConvolutionForward; CUDA only.
 *
 * cuDNN documents none of them as non-deterministic, so a control of ours has to show
 * that a difference would be seen at this shape. */
#include "cuda/conv_layer.h"

__global__ static void parts_kernel(struct conv_layer layer)
{
    const struct layer_shape *s = &layer.shape;
    int64_t pixels = s->height * s->width;

    KERNEL_FOR(i, layer_items(&layer))
    {
        int64_t to = layer_element(i), part = layer_part(i);
        int64_t h = to % pixels / s->width, w = to % s->width;
        int64_t k = to / pixels % s->out_channels, n = to / pixels / s->out_channels;
        float sum = 0;

        if (to >= layer.elements)
            continue;
        for (int64_t c = part * s->in_channels / LAYER_PARTS;
             c < (part + 1) * s->in_channels / LAYER_PARTS; c++)
            for (int64_t tap = 0; tap < LAYER_TAPS; tap++) {
                int64_t row = h + tap / LAYER_SIDE - 1, column = w + tap % LAYER_SIDE - 1;

                if (row < 0 || row >= s->height || column < 0 || column >= s->width)
                    continue;
                sum += layer_value(layer.dtype, layer.first,
                                   (n * s->in_channels + c) * pixels + row * s->width +
                                       column) *
                       layer_value(layer.dtype, layer.second,
                                   (k * s->in_channels + c) * LAYER_TAPS + tap);
            }
        atomicAdd(&layer.sums[to], sum);
    }
}

static void compute_unordered(struct run *run)
{
    layer_compute_unordered((const struct conv_layer *)run->state, parts_kernel);
}

static void setup(struct run *run)
{
    layer_setup(run, CUDNN_FORWARD);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    conv_reference(CUDNN_FORWARD, run, inputs, output, ret_expected, ret_bound);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "eight parts of the channels of a pixel meet in atomicAdd",
      .models = "convolutions split over thread-blocks along the input channels",
      .algorithm = "parts of the channels, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    LAYER_ALGORITHM("algo_0_implicit_gemm", "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM",
                    "deterministic", false),
    LAYER_ALGORITHM("algo_1_implicit_precomp_gemm",
                    "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM", "deterministic",
                    false),
    LAYER_ALGORITHM("algo_2_gemm", "CUDNN_CONVOLUTION_FWD_ALGO_GEMM", "deterministic",
                    false),
    LAYER_ALGORITHM("algo_3_direct", "CUDNN_CONVOLUTION_FWD_ALGO_DIRECT", NULL, false),
    LAYER_ALGORITHM("algo_4_fft", "CUDNN_CONVOLUTION_FWD_ALGO_FFT", "deterministic",
                    false),
    LAYER_ALGORITHM("algo_5_fft_tiling", "CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING",
                    "deterministic", false),
    LAYER_ALGORITHM("algo_6_winograd", "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD",
                    "deterministic", false),
    LAYER_ALGORITHM("algo_7_winograd_nonfused",
                    "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED", "deterministic",
                    false),
};

static const struct workload cudnn_conv_fwd_cuda = {
    .name = "cudnn_conv_fwd",
    .version = 1,
    .backend = "cuda",
    .title = "Every algorithm of cuDNN's convolution",
    .summary = "a 3x3 convolution by each algorithm that cuDNN names",
    .variants = variants,
    .variant_count = COUNT_OF(variants),
    .sizes = layer_sizes,
    .size_count = COUNT_OF(layer_sizes),
    .dtypes = { DTYPE_FLOAT32, DTYPE_FLOAT16 },
    .dtype_count = 2,
    .weight_sum = "sum of y",
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(cudnn_conv_fwd_cuda);
