#include "cuda/train/pooling.h"

#include "cuda/kernels/kernel.h"
#include "workloads/train/cnn_image.h"

enum { SIDE_TAPS = 3, TAPS = 9 };

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
