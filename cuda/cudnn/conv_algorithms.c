#include "cuda/cudnn/conv_algorithms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cudnn/conv_bound.h"
#include "workloads/instruments/half.h"
#include "workloads/shared/tf32.h"

enum { X, W, Y, TENSORS };

/* A pass: the result, and the two factors in order of the inputs. */
struct roles {
    int result, first, second;
};

static struct roles roles_of(enum cudnn_pass pass)
{
    switch (pass) {
    case CUDNN_FORWARD:
        return (struct roles){ Y, X, W };
    case CUDNN_BACKWARD_DATA:
        return (struct roles){ X, W, Y };
    default:
        return (struct roles){ W, X, Y };
    }
}

enum cudnn_arithmetic conv_arithmetic(const struct run *run)
{
    if (strncmp(run->variant->name, "algo_", 5) != 0) {
        return CUDNN_ARITHMETIC_FMA;
    }
    if (run->dtype == DTYPE_FLOAT16) {
        return CUDNN_ARITHMETIC_TENSOR;
    }
    return tf32_is_permitted(run) ? CUDNN_ARITHMETIC_TF32 : CUDNN_ARITHMETIC_FMA;
}

static enum conv_method method_of(const char *variant)
{
    return strstr(variant, "_fft")        ? CONV_FFT
           : strstr(variant, "_winograd") ? CONV_WINOGRAD
                                          : CONV_DIRECT;
}

static double value(const struct tensor *tensor, int64_t at)
{
    return tensor->dtype == DTYPE_FLOAT16
               ? (double)f32_from_f16(((const uint16_t *)tensor->data)[at])
               : (double)((const float *)tensor->data)[at];
}

/* A plane: one image's channel of x or y, one window of w. */
static int64_t plane_elements(const struct layer_shape *s, int tensor)
{
    return tensor == W ? LAYER_TAPS : s->height * s->width;
}

static void planes_of(const struct layer_shape *s, int64_t n, int64_t c, int64_t k,
                      int64_t ret_plane[TENSORS])
{
    ret_plane[X] = n * s->in_channels + c;
    ret_plane[W] = k * s->in_channels + c;
    ret_plane[Y] = n * s->out_channels + k;
}

/* Adds the products of three planes to what is expected, and their magnitudes to
 * MAGNITUDES. */
static void planes_add(const struct layer_shape *s, struct roles roles,
                       const int64_t plane[TENSORS], const struct tensor *inputs,
                       double *expected, double *magnitudes)
{
    for (int64_t i = 0; i < s->height * s->width * LAYER_TAPS; i++) {
        int64_t tap = i % LAYER_TAPS, pixel = i / LAYER_TAPS;
        int64_t row = pixel / s->width + tap / LAYER_SIDE - 1;
        int64_t column = pixel % s->width + tap % LAYER_SIDE - 1;
        int64_t at[TENSORS] = {
            [X] = plane[X] * s->height * s->width + row * s->width + column,
            [W] = plane[W] * LAYER_TAPS + tap,
            [Y] = plane[Y] * s->height * s->width + pixel,
        };
        double term;

        if (row < 0 || row >= s->height || column < 0 || column >= s->width) {
            continue;
        }
        term = value(&inputs[0], at[roles.first]) * value(&inputs[1], at[roles.second]);
        expected[at[roles.result]] += term;
        magnitudes[at[roles.result]] += fabs(term);
    }
}

/* The sum of squares of each plane of TENSOR; the caller frees it. */
static double *squares_of(const struct tensor *tensor, int64_t plane_size)
{
    int64_t elements = tensor_elements(tensor);
    double *squares = run_host_alloc((size_t)(elements / plane_size) * sizeof *squares);

    for (int64_t i = 0; i < elements; i++) {
        double x = value(tensor, i);

        squares[i / plane_size] = (i % plane_size ? squares[i / plane_size] : 0) + x * x;
    }
    return squares;
}

static struct conv_bound bound_of(enum cudnn_pass pass, const struct run *run)
{
    const struct layer_shape *s = run->size->params;
    struct conv_bound how = { .method = method_of(run->variant->name),
                              .arithmetic = conv_arithmetic(run),
                              .dtype = run->dtype,
                              .pass = pass,
                              .height = s->height,
                              .width = s->width };

    how.planes = pass == CUDNN_FORWARD         ? s->in_channels
                 : pass == CUDNN_BACKWARD_DATA ? s->out_channels
                                               : s->images;
    how.terms =
        how.planes * (pass == CUDNN_BACKWARD_FILTER ? s->height * s->width : LAYER_TAPS);
    return how;
}

void conv_reference(enum cudnn_pass pass, const struct run *run,
                    const struct tensor *inputs, const struct tensor *output,
                    double *ret_expected, double *ret_bound)
{
    const struct layer_shape *s = run->size->params;
    struct roles roles = roles_of(pass);
    struct conv_bound how = bound_of(pass, run);
    int64_t size[2] = { plane_elements(s, roles.first), plane_elements(s, roles.second) };
    int64_t result_size = plane_elements(s, roles.result);
    int64_t elements = tensor_elements(output);
    double *first = squares_of(&inputs[0], size[0]);
    double *second = squares_of(&inputs[1], size[1]);
    struct conv_sums *sums =
        run_host_alloc((size_t)(elements / result_size) * sizeof *sums);

    memset(sums, 0, (size_t)(elements / result_size) * sizeof *sums);
    for (int64_t i = 0; i < elements; i++) {
        ret_expected[i] = ret_bound[i] = 0;
    }
    for (int64_t i = 0; i < s->images * s->in_channels * s->out_channels; i++) {
        int64_t plane[TENSORS];
        struct conv_sums *of;
        double a, b;

        planes_of(s, i / s->out_channels / s->in_channels,
                  i / s->out_channels % s->in_channels, i % s->out_channels, plane);
        planes_add(s, roles, plane, inputs, ret_expected, ret_bound);
        of = &sums[plane[roles.result]];
        a = first[plane[roles.first]];
        b = second[plane[roles.second]];
        of->norms += sqrt(a * b);
        of->energy += a / (double)size[0] * b / (double)size[1];
    }
    for (int64_t i = 0; i < elements; i++) {
        struct conv_sums of = sums[i / result_size];

        of.value = ret_expected[i];
        of.magnitudes = ret_bound[i];
        ret_bound[i] = conv_bound(&how, &of);
    }
    free(sums);
    free(second);
    free(first);
}
