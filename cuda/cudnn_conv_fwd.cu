/* Every algorithm of cudnnConvolutionForward; CUDA only.
 *
 * cuDNN documents none of them as non-deterministic, so a control of ours has to show
 * that a difference would be seen at this shape. */
#include "cuda/kernels/conv_layer.h"

__device__ static float part_sum(const struct conv_layer *layer, int64_t to, int64_t part)
{
    const struct layer_shape *s = &layer->shape;
    int64_t pixels = s->height * s->width;
    int64_t h = to % pixels / s->width, w = to % s->width;
    int64_t k = to / pixels % s->out_channels, n = to / pixels / s->out_channels;
    float sum = 0;

    for (int64_t c = part * s->in_channels / LAYER_PARTS;
         c < (part + 1) * s->in_channels / LAYER_PARTS; c++) {
        for (int64_t tap = 0; tap < LAYER_TAPS; tap++) {
            int64_t row = h + tap / LAYER_SIDE - 1, column = w + tap % LAYER_SIDE - 1;

            if (layer_inside(s, row, column)) {
                sum += layer_value(layer->dtype, layer->first,
                                   (n * s->in_channels + c) * pixels + row * s->width +
                                       column) *
                       layer_value(layer->dtype, layer->second,
                                   (k * s->in_channels + c) * LAYER_TAPS + tap);
            }
        }
    }
    return sum;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "eight parts of the channels of a pixel meet in atomicAdd",
      .models = "convolutions split over thread-blocks along the input channels",
      .algorithm = "parts of the channels, atomicAdd",
      .control = true,
      .compute = layer_compute_unordered<part_sum> },
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

LAYER_WORKLOAD(cudnn_conv_fwd, CUDNN_FORWARD, "Every algorithm of cuDNN's convolution",
               "a 3x3 convolution by each algorithm that cuDNN names", "sum of y");
