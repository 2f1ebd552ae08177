#include "cuda/train/dense.h"

#include "cuda/kernels/kernel.h"
#include "workloads/train/cnn.h"
#include "workloads/train/cnn_image.h"

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
