#include "cuda/train/convolution.h"

#include "cuda/kernels/kernel.h"

enum { SIDE_TAPS = 3, TAPS = 9, PIXELS = 4, CHANNELS_IN = 4 /* of a thread */ };

__device__ static int64_t padded_pixels(const struct convolution *conv)
{
    return (conv->side + 2) * (conv->side + 2);
}

__device__ static int64_t tap_offset(const struct convolution *conv, int64_t tap)
{
    return tap / SIDE_TAPS * (conv->side + 2) + tap % SIDE_TAPS;
}

/* Channel K of the four neighbouring pixels that begin with PIXEL of the batch. */
__device__ static void pixels_convolve(const struct convolution *conv, int64_t pixel,
                                       int64_t k, int first_tap, int end_tap, float *sums)
{
    int64_t side = conv->side, in = conv->in, out = conv->out;
    int64_t at = pixel % (side * side);
    int64_t corner =
        pixel / (side * side) * padded_pixels(conv) + at / side * (side + 2) + at % side;

    for (int p = 0; p < PIXELS; p++) {
        sums[p] = conv->bias ? conv->bias[k] : 0;
    }
    for (int tap = first_tap; tap < end_tap; tap++) {
        const float *from = conv->x + (corner + tap_offset(conv, tap)) * in;
        const float *weights = conv->weights + tap * in * out + k;

        for (int64_t c = 0; c < in; c++) {
            for (int p = 0; p < PIXELS; p++) {
                sums[p] += from[p * in + c] * weights[c * out];
            }
        }
    }
}

__global__ static void convolve_kernel(struct convolution conv, float *y)
{
    KERNEL_FOR(i, conv.images * conv.side * conv.side / PIXELS * conv.out)
    {
        int64_t k = i % conv.out, pixel = i / conv.out * PIXELS;
        float sums[PIXELS];

        pixels_convolve(&conv, pixel, k, 0, TAPS, sums);
        for (int p = 0; p < PIXELS; p++) {
            y[(pixel + p) * conv.out + k] = sums[p] > 0 || !conv.bias ? sums[p] : 0.0f;
        }
    }
}

void convolve(const struct convolution *conv, float *y)
{
    LAUNCH_ITEMS(convolve_kernel,
                 conv->images * conv->side * conv->side / PIXELS * conv->out, *conv, y);
}

__global__ static void atomic_kernel(struct convolution conv, float *y)
{
    int64_t items = conv.images * conv.side * conv.side / PIXELS * conv.out;

    KERNEL_FOR(i, SIDE_TAPS * items)
    {
        int64_t k = i % conv.out, pixel = i % items / conv.out * PIXELS;
        int tap = (int)(i / items) * SIDE_TAPS;
        float sums[PIXELS];

        pixels_convolve(&conv, pixel, k, tap, tap + SIDE_TAPS, sums);
        for (int p = 0; p < PIXELS; p++) {
            atomicAdd(&y[(pixel + p) * conv.out + k], sums[p]);
        }
    }
}

void convolve_atomically(const struct convolution *conv, float *y)
{
    int64_t pixels = conv->images * conv->side * conv->side;

    CUDA_TRY(cudaMemsetAsync(y, 0, (size_t)(pixels * conv->out) * sizeof(float)));
    LAUNCH_ITEMS(atomic_kernel, SIDE_TAPS * pixels / PIXELS * conv->out, *conv, y);
}

/* The gradient of IN weights of one image: of tap TAP, channels C and on to K. */
template <int IN>
__device__ static void weights_sum(const struct convolution *conv, const float *dy,
                                   int64_t image, int64_t tap, int64_t c, int64_t k,
                                   float *sums)
{
    int64_t side = conv->side, in = conv->in, out = conv->out;
    int64_t first = image * padded_pixels(conv);
    const float *x = conv->x + (first + tap_offset(conv, tap)) * in + c;

    dy += (first + side + 3) * out + k;
    for (int j = 0; j < IN; j++) {
        sums[j] = 0;
    }
    for (int64_t row = 0; row < side; row++) {
        for (int64_t pixel = row * (side + 2); pixel < row * (side + 2) + side; pixel++) {
            for (int j = 0; j < IN; j++) {
                sums[j] += x[pixel * in + j] * dy[pixel * out];
            }
        }
    }
}

/* STRIDE 0: all images meet in atomicAdd. */
template <int IN>
__device__ static void weights_items(const struct convolution *conv, const float *dy,
                                     float *to, int64_t stride)
{
    int64_t tiles = conv->in / IN;

    KERNEL_FOR(i, conv->images * TAPS * tiles * conv->out)
    {
        int64_t k = i % conv->out, c = i / conv->out % tiles * IN;
        int64_t tap = i / conv->out / tiles % TAPS;
        int64_t image = i / conv->out / tiles / TAPS;
        float *first = to + image * stride + (tap * conv->in + c) * conv->out + k;
        float sums[IN];

        weights_sum<IN>(conv, dy, image, tap, c, k, sums);
        for (int j = 0; j < IN; j++) {
            if (stride == 0) {
                atomicAdd(&first[j * conv->out], sums[j]);
            } else {
                first[j * conv->out] = sums[j];
            }
        }
    }
}

__global__ static void weights_kernel(struct convolution conv, const float *dy, float *to,
                                      int64_t stride)
{
    if (conv.in % CHANNELS_IN == 0) {
        weights_items<CHANNELS_IN>(&conv, dy, to, stride);
    } else {
        weights_items<1>(&conv, dy, to, stride);
    }
}

void convolve_weights(const struct convolution *conv, const float *dy, float *parts,
                      int64_t stride)
{
    int64_t tiles = conv->in % CHANNELS_IN == 0 ? conv->in / CHANNELS_IN : conv->in;

    LAUNCH_ITEMS(weights_kernel, conv->images * TAPS * tiles * conv->out, *conv, dy,
                 parts, stride);
}

void convolve_weights_atomically(const struct convolution *conv, const float *dy,
                                 float *gradient)
{
    convolve_weights(conv, dy, gradient, 0);
}
