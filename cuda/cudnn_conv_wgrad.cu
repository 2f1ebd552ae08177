/* Every algorithm of cudnnConvolutionBackwardFilter; CUDA only.  conv_wgrad is the row of
 * the documents, with the three algorithms that it is about. */
#include "cuda/kernels/conv_layer.h"

/* A weight sums over the images of its part. */
__device__ static float part_sum(const struct conv_layer *layer, int64_t to, int64_t part)
{
    const struct layer_shape *s = &layer->shape;
    int64_t pixels = s->height * s->width, tap = to % LAYER_TAPS;
    int64_t c = to / LAYER_TAPS % s->in_channels, k = to / LAYER_TAPS / s->in_channels;
    float sum = 0;

    for (int64_t n = part * s->images / LAYER_PARTS;
         n < (part + 1) * s->images / LAYER_PARTS; n++) {
        for (int64_t pixel = 0; pixel < pixels; pixel++) {
            int64_t row = pixel / s->width + tap / LAYER_SIDE - 1;
            int64_t column = pixel % s->width + tap % LAYER_SIDE - 1;

            if (layer_inside(s, row, column)) {
                sum += layer_value(layer->dtype, layer->first,
                                   (n * s->in_channels + c) * pixels + row * s->width +
                                       column) *
                       layer_value(layer->dtype, layer->second,
                                   (n * s->out_channels + k) * pixels + pixel);
            }
        }
    }
    return sum;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "eight parts of the images meet in atomicAdd",
      .models = "convolutions split over thread-blocks along the images",
      .algorithm = "parts of the images, atomicAdd",
      .control = true,
      .compute = layer_compute_unordered<part_sum> },
    LAYER_ALGORITHM("algo_0", "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0", "non-deterministic",
                    true),
    LAYER_ALGORITHM("algo_1", "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1", "deterministic",
                    false),
    LAYER_ALGORITHM("algo_2_fft", "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT",
                    "deterministic", false),
    LAYER_ALGORITHM("algo_3", "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3", "non-deterministic",
                    true),
    LAYER_ALGORITHM("algo_4_winograd", "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD", NULL,
                    false),
    LAYER_ALGORITHM("algo_5_winograd_nonfused",
                    "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED",
                    "deterministic", false),
    LAYER_ALGORITHM("algo_6_fft_tiling", "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING",
                    "deterministic", false),
};

LAYER_WORKLOAD(
    cudnn_conv_wgrad, CUDNN_BACKWARD_FILTER,
    "Every algorithm of cuDNN's convolution backprop to weight gradients",
    "the weight gradient of a 3x3 convolution by each algorithm that cuDNN names",
    "sum of dw");
