/* Every algorithm of cudnnConvolutionBackwardData; CUDA only.  conv_dgrad is the row of
 * the documents, with the two algorithms that it is about. */
#include "cuda/kernels/conv_layer.h"

/* A pixel of dx collects from dy: a tap reached it from the pixel on its other side. */
__device__ static float part_sum(const struct conv_layer *layer, int64_t to, int64_t part)
{
    const struct layer_shape *s = &layer->shape;
    int64_t pixels = s->height * s->width;
    int64_t h = to % pixels / s->width, w = to % s->width;
    int64_t c = to / pixels % s->in_channels, n = to / pixels / s->in_channels;
    float sum = 0;

    for (int64_t k = part * s->out_channels / LAYER_PARTS;
         k < (part + 1) * s->out_channels / LAYER_PARTS; k++) {
        for (int64_t tap = 0; tap < LAYER_TAPS; tap++) {
            int64_t row = h - tap / LAYER_SIDE + 1, column = w - tap % LAYER_SIDE + 1;

            if (layer_inside(s, row, column)) {
                sum += layer_value(layer->dtype, layer->first,
                                   (k * s->in_channels + c) * LAYER_TAPS + tap) *
                       layer_value(layer->dtype, layer->second,
                                   (n * s->out_channels + k) * pixels + row * s->width +
                                       column);
            }
        }
    }
    return sum;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "eight parts of the upstream channels of a pixel meet in atomicAdd",
      .models = "convolutions split over thread-blocks along the output channels",
      .algorithm = "parts of the channels, atomicAdd",
      .control = true,
      .compute = layer_compute_unordered<part_sum> },
    LAYER_ALGORITHM("algo_0", "CUDNN_CONVOLUTION_BWD_DATA_ALGO_0", "non-deterministic",
                    true),
    LAYER_ALGORITHM("algo_1", "CUDNN_CONVOLUTION_BWD_DATA_ALGO_1", "deterministic",
                    false),
    LAYER_ALGORITHM("algo_2_fft", "CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT", "deterministic",
                    false),
    LAYER_ALGORITHM("algo_3_fft_tiling", "CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING",
                    "deterministic", false),
    LAYER_ALGORITHM("algo_4_winograd", "CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD",
                    "deterministic", false),
    LAYER_ALGORITHM("algo_5_winograd_nonfused",
                    "CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED", "deterministic",
                    false),
};

LAYER_WORKLOAD(
    cudnn_conv_dgrad, CUDNN_BACKWARD_DATA,
    "Every algorithm of cuDNN's convolution backprop to data gradients",
    "the data gradient of a 3x3 convolution by each algorithm that cuDNN names",
    "sum of dx");
