/* What the workloads that run every algorithm of cuDNN's convolutions share: tensors,
 * the library's variants, and a control of ours.  cudnn/conv_algorithms.h has shapes and
 * reference.
 *
 * Tensors are in cuDNN's order, so that an iteration is one call of cuDNN and nothing
 * else.  float16 is data of 16 bits whose products are summed in float32, by Tensor Cores
 * where there are some.  Its inputs are all uniform: exponents as wide as FILL_WIDE's
 * would overflow the result.  TF32 is not a dtype: data stay float32, and only how an
 * algorithm computes changes; those variants end in "_tf32". */
#ifndef CUDA_KERNELS_CONV_LAYER_H
#define CUDA_KERNELS_CONV_LAYER_H

#include "cuda/cudnn/conv_algorithms.h"
#include "cuda/cudnn/usable.h"
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/tf32.h"
#include "workloads/instruments/half.h"

/* The control sums an element's products in so many parts. */
enum { LAYER_PARTS = 8 };

struct conv_layer {
    struct layer_shape shape;
    enum dtype dtype;
    const void *first, *second; /* the inputs */
    void *result;
    int64_t elements; /* of the result */
    float *sums;      /* of the control: as many */
    struct cudnn_conv cudnn;
};

__device__ static inline float layer_value(enum dtype dtype, const void *data, int64_t i)
{
    return dtype == DTYPE_FLOAT16 ? f32_from_f16(((const uint16_t *)data)[i])
                                  : ((const float *)data)[i];
}

/* Neighbouring blocks have the parts of the same elements, so that they meet. */
__device__ static inline int64_t layer_element(int64_t i)
{
    return i / KERNEL_THREADS / LAYER_PARTS * KERNEL_THREADS + i % KERNEL_THREADS;
}

__device__ static inline int64_t layer_part(int64_t i)
{
    return i / KERNEL_THREADS % LAYER_PARTS;
}

/* Whether a tap hits the image, not its padding. */
__device__ static inline bool layer_inside(const struct layer_shape *s, int64_t row,
                                           int64_t column)
{
    return row >= 0 && row < s->height && column >= 0 && column < s->width;
}

__host__ __device__ static inline int64_t layer_items(const struct conv_layer *layer)
{
    return ceil_div(layer->elements, KERNEL_THREADS) * KERNEL_THREADS * LAYER_PARTS;
}

__global__ static void layer_round_kernel(struct conv_layer layer)
{
    KERNEL_FOR(i, layer.elements)
    {
        if (layer.dtype == DTYPE_FLOAT16) {
            ((uint16_t *)layer.result)[i] = f16_from_f32(layer.sums[i]);
        } else {
            ((float *)layer.result)[i] = layer.sums[i];
        }
    }
}

/* The sum of the products of part PART of the result's element TO. */
typedef float layer_part_sum(const struct conv_layer *layer, int64_t to, int64_t part);

template <layer_part_sum PART_SUM>
__global__ static void layer_parts_kernel(struct conv_layer layer)
{
    KERNEL_FOR(i, layer_items(&layer))
    {
        int64_t to = layer_element(i);

        if (to < layer.elements) {
            atomicAdd(&layer.sums[to], PART_SUM(&layer, to, layer_part(i)));
        }
    }
}

/* The control: the parts of an element meet in atomicAdd. */
template <layer_part_sum PART_SUM> static void layer_compute_unordered(struct run *run)
{
    const struct conv_layer *layer = (const struct conv_layer *)run->state;

    CUDA_TRY(cudaMemsetAsync(layer->sums, 0, (size_t)layer->elements * sizeof(float)));
    LAUNCH_ITEMS(layer_parts_kernel<PART_SUM>, layer_items(layer), *layer);
    LAUNCH_ITEMS(layer_round_kernel, layer->elements, *layer);
}

static void layer_compute_cudnn(struct run *run)
{
    cudnn_conv_compute(run, &((const struct conv_layer *)run->state)->cudnn);
}

static const char *layer_tf32_unsupported(const struct run *run)
{
    if (run->dtype != DTYPE_FLOAT32) {
        return "TF32 is how float32 is computed with; another dtype has the variant "
               "without _tf32";
    }
    return cudnn_unsupported(run);
}

static inline void layer_take_algorithm(struct run *run, struct conv_layer *layer,
                                        enum cudnn_pass pass, void *x, void *w, void *y)
{
    const struct layer_shape *s = &layer->shape;
    struct cudnn_conv *cudnn = &layer->cudnn;

    cudnn->pass = pass;
    cudnn->images = (int)s->images;
    cudnn->height = (int)s->height;
    cudnn->width = (int)s->width;
    cudnn->in_channels = (int)s->in_channels;
    cudnn->out_channels = (int)s->out_channels;
    cudnn->side = LAYER_SIDE;
    cudnn->stride = cudnn->groups = 1;
    cudnn->dtype = run->dtype;
    cudnn->arithmetic = conv_arithmetic(run);
    cudnn->x = x;
    cudnn->w = w;
    cudnn->y = y;
    if (cudnn->arithmetic == CUDNN_ARITHMETIC_TF32) {
        tf32_need_device(run);
    }
    cudnn_conv_describe(run, cudnn);
    cudnn_conv_take_variant(run, cudnn);
}

/* The hooks `setup` and `reference` of PASS.  What is called a gradient is a result or
 * comes from above, and has a wide range of magnitudes there; so has x of the forward
 * pass. */
template <enum cudnn_pass PASS> static void layer_setup(struct run *run)
{
    const struct layer_shape *s = (const struct layer_shape *)run->size->params;
    struct conv_layer *layer = (struct conv_layer *)run_host_alloc(sizeof *layer);
    enum fill wide = run->dtype == DTYPE_FLOAT16 ? FILL_UNIFORM : FILL_WIDE;
    bool forward = PASS == CUDNN_FORWARD;
    int64_t x_shape[] = { s->images, s->in_channels, s->height, s->width };
    int64_t w_shape[] = { s->out_channels, s->in_channels, LAYER_SIDE, LAYER_SIDE };
    int64_t y_shape[] = { s->images, s->out_channels, s->height, s->width };
    struct tensor *x, *w, *y, *result;

    x = PASS == CUDNN_BACKWARD_DATA ? run_output(run, "dx", run->dtype, 4, x_shape)
                                    : run_input(run, "x", run->dtype, 4, x_shape,
                                                forward ? wide : FILL_UNIFORM, 0);
    w = PASS == CUDNN_BACKWARD_FILTER
            ? run_output(run, "dw", run->dtype, 4, w_shape)
            : run_input(run, "w", run->dtype, 4, w_shape, FILL_UNIFORM, 0);
    y = forward ? run_output(run, "y", run->dtype, 4, y_shape)
                : run_input(run, "dy", run->dtype, 4, y_shape, wide, 0);
    result = &run->outputs[0];
    *layer = {};
    layer->shape = *s;
    layer->dtype = run->dtype;
    layer->first = run->inputs[0].data;
    layer->second = run->inputs[1].data;
    layer->result = result->data;
    layer->elements = tensor_elements(result);
    if (run->variant->compute == layer_compute_cudnn) {
        layer_take_algorithm(run, layer, PASS, x->data, w->data, y->data);
    } else {
        layer->sums =
            (float *)run_alloc(run, (size_t)layer->elements * sizeof *layer->sums);
    }
    run->state = layer;
}

template <enum cudnn_pass PASS>
static void layer_reference(const struct run *run, const struct tensor *inputs,
                            const struct tensor *output, double *ret_expected,
                            double *ret_bound)
{
    conv_reference(PASS, run, inputs, output, ret_expected, ret_bound);
}

/* `small` fits a check on the CPU.  The other two are layers of a ResNet-50: few channels
 * and many pixels, many channels and few pixels. */
static const struct layer_shape layer_shapes[] = { { 8, 16, 14, 14, 32 },
                                                   { 64, 256, 14, 14, 256 },
                                                   { 64, 64, 56, 56, 64 } };
static const struct workload_size layer_sizes[] = {
    { "small", "x[8,16,14,14] w[32,16,3,3] y[8,32,14,14]", &layer_shapes[0] },
    { "medium", "x[64,256,14,14] w[256,256,3,3] y[64,256,14,14]", &layer_shapes[1] },
    { "large", "x[64,64,56,56] w[64,64,3,3] y[64,64,56,56]", &layer_shapes[2] },
};

/* Two variants: an algorithm of cuDNN's, and the same where it may round to TF32.
 * PROMISE is what cuDNN's documentation says of it; a run reports what the library says
 * itself.  One that is not promised to be deterministic has to be seen to vary: a
 * control. */
#define LAYER_ALGORITHM(variant, real, promise, is_control)                              \
    { .name = variant,                                                                   \
      .summary = "cuDNN's " real,                                                        \
      .models = "a framework that has cuDNN take this algorithm",                        \
      .algorithm = real,                                                                 \
      .claim = promise,                                                                  \
      .control = is_control,                                                             \
      .compute = layer_compute_cudnn,                                                    \
      .library = "cuDNN",                                                                \
      .unsupported = cudnn_unsupported },                                                \
    {                                                                                    \
        .name = variant "_tf32", .summary = "the same where float32 may become TF32",    \
        .models = "what frameworks permit cuDNN by default or by allow_tf32",            \
        .algorithm = real ", TF32 permitted", .claim = promise, .control = is_control,   \
        .compute = layer_compute_cudnn, .library = "cuDNN",                              \
        .unsupported = layer_tf32_unsupported                                            \
    }

/* Registers the workload NAME: PASS by each of `variants`. */
#define LAYER_WORKLOAD(name_, pass, title_, summary_, weight_sum_)                       \
    static const struct workload name_##_cuda = {                                        \
        .name = #name_,                                                                  \
        .version = 1,                                                                    \
        .backend = "cuda",                                                               \
        .title = (title_),                                                               \
        .summary = (summary_),                                                           \
        WORKLOAD_VARIANTS(variants),                                                     \
        WORKLOAD_SIZES(layer_sizes),                                                     \
        .dtypes = { DTYPE_FLOAT32, DTYPE_FLOAT16 },                                      \
        .dtype_count = 2,                                                                \
        .weight_sum = (weight_sum_),                                                     \
        .setup = layer_setup<pass>,                                                      \
        .reference = layer_reference<pass>,                                              \
    };                                                                                   \
    WORKLOAD_REGISTER(name_##_cuda)

#endif
