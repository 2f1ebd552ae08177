#include "cuda/train/layers.h"

#include "cuda/kernels/kernel.h"
#include "workloads/train/cnn.h"
#include "workloads/train/cnn_image.h"

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

__host__ __device__ static int64_t pixel_count(const struct pooling *pooling)
{
    return pooling->side * pooling->side * pooling->channels;
}

__host__ __device__ static int64_t window_count(const struct pooling *pooling)
{
    return pixel_count(pooling) / 4;
}

__device__ static int64_t padded_count(int64_t side, int64_t channels)
{
    return (side + 2) * (side + 2) * channels;
}

__global__ static void pool_kernel(struct pooling p)
{
    KERNEL_FOR(i, p.images * window_count(&p))
    {
        int64_t image = i / window_count(&p), window = i % window_count(&p);
        int64_t pixel = window / p.channels, half = p.side / 2;
        const float *x = p.x + image * pixel_count(&p) + i % p.channels;
        float most = -INFINITY;
        uint8_t winner = TAPS / 2;

        for (int tap = 0; tap < TAPS; tap++) {
            int64_t h = 2 * (pixel / half) + tap / SIDE_TAPS - 1;
            int64_t w = 2 * (pixel % half) + tap % SIDE_TAPS - 1;

            if (h >= 0 && w >= 0 && x[(h * p.side + w) * p.channels] > most) {
                most = x[(h * p.side + w) * p.channels];
                winner = (uint8_t)tap;
            }
        }
        p.y[image * padded_count(half, p.channels) + padded(half, p.channels, window)] =
            most;
        p.winners[i] = winner;
    }
}

void pool(const struct pooling *pooling)
{
    LAUNCH_ITEMS(pool_kernel, pooling->images * window_count(pooling), *pooling);
}

/* What the windows around pixel (H, W) give back to it; the first one is WINDOWS[0]. */
__device__ static float pixel_gather(const struct pooling *p, int64_t windows, int64_t h,
                                     int64_t w)
{
    int64_t half = p->side / 2;
    float sum = 0;

    for (int64_t r = h / 2; r <= (h + 1) / 2 && r < half; r++) {
        for (int64_t q = w / 2; q <= (w + 1) / 2 && q < half; q++) {
            int64_t window = windows + (r * half + q) * p->channels;
            int64_t tap = (h - 2 * r + 1) * SIDE_TAPS + w - 2 * q + 1;

            sum += p->winners[window] == tap ? p->dy[window] : 0.0f;
        }
    }
    return sum;
}

__global__ static void gather_kernel(struct pooling p)
{
    KERNEL_FOR(i, p.images * pixel_count(&p))
    {
        int64_t image = i / pixel_count(&p), at = i % pixel_count(&p);
        int64_t pixel = at / p.channels;
        int64_t windows = image * window_count(&p) + at % p.channels;

        p.dx[image * padded_count(p.side, p.channels) + padded(p.side, p.channels, at)] =
            p.x[i] > 0 ? pixel_gather(&p, windows, pixel / p.side, pixel % p.side) : 0.0f;
    }
}

__global__ static void scatter_kernel(struct pooling p)
{
    KERNEL_FOR(i, p.images * window_count(&p))
    {
        int64_t image = i / window_count(&p);
        int64_t at = pool_winner(p.side, p.channels, i % window_count(&p), p.winners[i]);

        atomicAdd(&p.dx[image * padded_count(p.side, p.channels) + at], p.dy[i]);
    }
}

__global__ static void mask_kernel(struct pooling p)
{
    KERNEL_FOR(i, p.images * pixel_count(&p))
    {
        int64_t image = i / pixel_count(&p);
        int64_t at = padded(p.side, p.channels, i % pixel_count(&p));

        if (!(p.x[i] > 0)) {
            p.dx[image * padded_count(p.side, p.channels) + at] = 0;
        }
    }
}

void unpool(const struct pooling *pooling, bool atomically)
{
    int64_t padded_pixels = (pooling->side + 2) * (pooling->side + 2);
    size_t bytes =
        (size_t)(pooling->images * padded_pixels * pooling->channels) * sizeof(float);

    if (!atomically) {
        LAUNCH_ITEMS(gather_kernel, pooling->images * pixel_count(pooling), *pooling);
        return;
    }
    CUDA_TRY(cudaMemsetAsync(pooling->dx, 0, bytes));
    LAUNCH_ITEMS(scatter_kernel, pooling->images * window_count(pooling), *pooling);
    LAUNCH_ITEMS(mask_kernel, pooling->images * pixel_count(pooling), *pooling);
}

/* One row of one channel of an image. */
__device__ static float row_sum(const struct pooling *p, int64_t i)
{
    int64_t channel = i % p->channels, row = i / p->channels % p->side;
    int64_t image = i / p->channels / p->side;
    const float *from = p->dx + image * padded_count(p->side, p->channels) +
                        ((row + 1) * (p->side + 2) + 1) * p->channels + channel;
    float sum = 0;

    for (int64_t w = 0; w < p->side; w++) {
        sum += from[w * p->channels];
    }
    return sum;
}

__global__ static void row_kernel(struct pooling p, float *rows)
{
    KERNEL_FOR(i, p.images * p.side * p.channels)
    {
        rows[i] = row_sum(&p, i);
    }
}

__global__ static void image_kernel(struct pooling p, const float *rows, float *parts,
                                    int64_t stride)
{
    KERNEL_FOR(i, p.images * p.channels)
    {
        int64_t channel = i % p.channels, image = i / p.channels;
        float sum = 0;

        for (int64_t row = 0; row < p.side; row++) {
            sum += rows[(image * p.side + row) * p.channels + channel];
        }
        parts[image * stride + channel] = sum;
    }
}

void bias_gradients(const struct pooling *pooling, float *rows, float *parts,
                    int64_t stride)
{
    LAUNCH_ITEMS(row_kernel, pooling->images * pooling->side * pooling->channels,
                 *pooling, rows);
    LAUNCH_ITEMS(image_kernel, pooling->images * pooling->channels, *pooling, rows, parts,
                 stride);
}

__global__ static void row_atomic_kernel(struct pooling p, float *gradient)
{
    KERNEL_FOR(i, p.images * p.side * p.channels)
    {
        atomicAdd(&gradient[i % p.channels], row_sum(&p, i));
    }
}

void bias_gradients_atomically(const struct pooling *pooling, float *gradient)
{
    LAUNCH_ITEMS(row_atomic_kernel, pooling->images * pooling->side * pooling->channels,
                 *pooling, gradient);
}

enum { AHEAD = 8 /* features that a thread loads before it adds them */ };

__host__ __device__ static int64_t feature_count(const struct dense *dense)
{
    return dense->side * dense->side * dense->channels;
}

__global__ static void dropout_kernel(struct dense dense)
{
    KERNEL_FOR(i, dense.images * feature_count(&dense))
    {
        int64_t image = i / feature_count(&dense), f = i % feature_count(&dense);
        const float *pooled =
            dense.pooled + image * (dense.side + 2) * (dense.side + 2) * dense.channels;

        dense.features[i] =
            dense.drops[i]
                ? pooled[padded(dense.side, dense.channels, f)] * CNN_KEEP_SCALE
                : 0.0f;
    }
}

/* Many threads of few features each would be faster, in another order. */
__global__ static void logit_kernel(struct dense dense)
{
    KERNEL_FOR(i, dense.images * CNN_CLASSES)
    {
        const float *features = dense.features + i / CNN_CLASSES * feature_count(&dense);
        const float *weights = dense.weights + i % CNN_CLASSES;
        float sum = dense.bias[i % CNN_CLASSES];

        for (int64_t f = 0; f < feature_count(&dense); f += AHEAD) {
            float products[AHEAD];

            for (int j = 0; j < AHEAD; j++) {
                products[j] = features[f + j] * weights[(f + j) * CNN_CLASSES];
            }
            for (int j = 0; j < AHEAD; j++) {
                sum += products[j];
            }
        }
        dense.d_logits[i] = sum;
    }
}

__global__ static void loss_kernel(struct dense dense)
{
    KERNEL_FOR(image, dense.images)
    {
        float *logits = dense.d_logits + image * CNN_CLASSES, own[CNN_CLASSES];

        for (int c = 0; c < CNN_CLASSES; c++) {
            own[c] = logits[c];
        }
        dense.losses[image] = cross_entropy(
            own, CNN_CLASSES, dense.labels[dense.order[image]], dense.images);
        for (int c = 0; c < CNN_CLASSES; c++) {
            logits[c] = own[c];
        }
    }
}

void dense_forward(const struct dense *dense)
{
    LAUNCH_ITEMS(dropout_kernel, dense->images * feature_count(dense), *dense);
    LAUNCH(logit_kernel, kernel_blocks(dense->images * CNN_CLASSES * 8), WARP_LANES, 0, 0,
           *dense);
    LAUNCH_ITEMS(loss_kernel, dense->images, *dense);
}

__global__ static void back_kernel(struct dense dense)
{
    KERNEL_FOR(i, dense.images * feature_count(&dense))
    {
        const float *d_logits = dense.d_logits + i / feature_count(&dense) * CNN_CLASSES;
        const float *weights = dense.weights + i % feature_count(&dense) * CNN_CLASSES;
        float sum = 0;

        for (int c = 0; c < CNN_CLASSES; c++) {
            sum += d_logits[c] * weights[c];
        }
        dense.d_features[i] = dense.drops[i] ? sum * CNN_KEEP_SCALE : 0.0f;
    }
}

/* Weights and, as of a feature that is 1, bias. */
__global__ static void part_kernel(struct dense dense, float *parts, int64_t stride)
{
    int64_t weights = feature_count(&dense) * CNN_CLASSES, part = weights + CNN_CLASSES;

    KERNEL_FOR(i, dense.images * part)
    {
        int64_t image = i / part, at = i % part;
        float d_logit = dense.d_logits[image * CNN_CLASSES + at % CNN_CLASSES];

        if (at < weights) {
            d_logit *= dense.features[image * feature_count(&dense) + at / CNN_CLASSES];
        }
        parts[image * stride + at] = d_logit;
    }
}

void dense_backward(const struct dense *dense, float *parts, int64_t stride)
{
    int64_t features = feature_count(dense);

    LAUNCH_ITEMS(back_kernel, dense->images * features, *dense);
    LAUNCH_ITEMS(part_kernel, dense->images * (features + 1) * CNN_CLASSES, *dense, parts,
                 stride);
}

__global__ static void bias_kernel(struct dense dense, float *gradient)
{
    KERNEL_FOR(i, dense.images * CNN_CLASSES)
    {
        atomicAdd(&gradient[i % CNN_CLASSES], dense.d_logits[i]);
    }
}

void dense_bias_atomically(const struct dense *dense, float *gradient)
{
    LAUNCH_ITEMS(bias_kernel, dense->images * CNN_CLASSES, *dense, gradient);
}
