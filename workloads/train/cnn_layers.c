#include "workloads/train/cnn_layers.h"

#include <math.h>

enum { SIDE_TAPS = 3, TAPS = 9, TILE_OUT = 8, TILE_PIXELS = 4, TILE_IN = 4 };

typedef float lanes __attribute__((vector_size(TILE_OUT * sizeof(float)),
                                   aligned(sizeof(float)), may_alias));

static int64_t tap_offset(int64_t side, int64_t tap)
{
    return tap / SIDE_TAPS * (side + 2) + tap % SIDE_TAPS;
}

/* Four neighbouring pixels by eight output channels, which stay in registers. */
static void tile_convolve(const struct convolution *conv, const float *x, int64_t channel,
                          float *y)
{
    int64_t in = conv->in, out = conv->out;
    lanes sum0 = { 0 }, sum1 = { 0 }, sum2 = { 0 }, sum3 = { 0 };

    if (conv->bias) {
        sum0 = sum1 = sum2 = sum3 = *(const lanes *)(conv->bias + channel);
    }
    for (int64_t tap = conv->first_tap; tap < conv->end_tap; tap++) {
        const float *from = x + tap_offset(conv->side, tap) * in;
        const float *weights = conv->weights + tap * in * out + channel;

        for (int64_t c = 0; c < in; c++, weights += out) {
            lanes weight = *(const lanes *)weights;

            sum0 += from[c] * weight;
            sum1 += from[c + in] * weight;
            sum2 += from[c + 2 * in] * weight;
            sum3 += from[c + 3 * in] * weight;
        }
    }
    *(lanes *)y = sum0;
    *(lanes *)(y + out) = sum1;
    *(lanes *)(y + 2 * out) = sum2;
    *(lanes *)(y + 3 * out) = sum3;
}

void convolve(const struct convolution *conv, const float *x, float *y)
{
    int64_t side = conv->side, elements = side * side * conv->out;

    for (int64_t pixel = 0; pixel < side * side; pixel += TILE_PIXELS) {
        int64_t corner = pixel / side * (side + 2) + pixel % side;

        for (int64_t channel = 0; channel < conv->out; channel += TILE_OUT) {
            tile_convolve(conv, x + corner * conv->in, channel,
                          y + pixel * conv->out + channel);
        }
    }
    for (int64_t i = 0; conv->bias && i < elements; i++) {
        y[i] = y[i] > 0 ? y[i] : 0;
    }
}

/* Four input channels by eight output channels of one tap. */
static void tile_weights(const struct convolution *conv, const float *x, const float *dy,
                         float *dw)
{
    int64_t side = conv->side, in = conv->in, out = conv->out;
    lanes sum0 = { 0 }, sum1 = { 0 }, sum2 = { 0 }, sum3 = { 0 };

    for (int64_t row = 0; row < side; row++) {
        for (int64_t pixel = row * (side + 2); pixel < row * (side + 2) + side; pixel++) {
            const float *from = x + pixel * in;
            lanes gradient = *(const lanes *)(dy + (pixel + side + 3) * out);

            sum0 += from[0] * gradient;
            sum1 += from[1] * gradient;
            sum2 += from[2] * gradient;
            sum3 += from[3] * gradient;
        }
    }
    *(lanes *)dw = sum0;
    *(lanes *)(dw + out) = sum1;
    *(lanes *)(dw + 2 * out) = sum2;
    *(lanes *)(dw + 3 * out) = sum3;
}

/* One input channel by eight output channels of one tap. */
static void column_weights(const struct convolution *conv, const float *x,
                           const float *dy, float *dw)
{
    int64_t side = conv->side;
    lanes sum = { 0 };

    for (int64_t row = 0; row < side; row++) {
        for (int64_t pixel = row * (side + 2); pixel < row * (side + 2) + side; pixel++) {
            sum += x[pixel * conv->in] *
                   *(const lanes *)(dy + (pixel + side + 3) * conv->out);
        }
    }
    *(lanes *)dw = sum;
}

void convolve_weights(const struct convolution *conv, const float *x, const float *dy,
                      float *dw)
{
    for (int64_t tap = 0; tap < TAPS; tap++) {
        for (int64_t channel = 0; channel < conv->out; channel += TILE_OUT) {
            const float *from = x + tap_offset(conv->side, tap) * conv->in;
            float *to = dw + tap * conv->in * conv->out + channel;
            int64_t c = 0;

            for (; c + TILE_IN <= conv->in; c += TILE_IN) {
                tile_weights(conv, from + c, dy + channel, to + c * conv->out);
            }
            for (; c < conv->in; c++) {
                column_weights(conv, from + c, dy + channel, to + c * conv->out);
            }
        }
    }
}

static void window_pool(int64_t side, int64_t channels, const float *x, int64_t row,
                        int64_t column, float *y, uint8_t *winners)
{
    for (int64_t c = 0; c < channels; c++) {
        y[c] = -INFINITY;
    }
    for (int tap = 0; tap < TAPS; tap++) {
        int64_t h = 2 * row + tap / SIDE_TAPS - 1, w = 2 * column + tap % SIDE_TAPS - 1;
        const float *from = x + (h * side + w) * channels;

        if (h < 0 || w < 0) { /* side is even: no window ends beyond it */
            continue;
        }
        for (int64_t c = 0; c < channels; c++) {
            winners[c] = from[c] > y[c] ? (uint8_t)tap : winners[c];
            y[c] = from[c] > y[c] ? from[c] : y[c];
        }
    }
}

void pool(int64_t side, int64_t channels, const float *x, float *y, uint8_t *winners)
{
    for (int64_t row = 0; row < side / 2; row++) {
        for (int64_t column = 0; column < side / 2; column++) {
            int64_t i = (row * (side / 2) + column) * channels;

            window_pool(side, channels, x, row, column, y + padded(side / 2, channels, i),
                        winners + i);
        }
    }
}
