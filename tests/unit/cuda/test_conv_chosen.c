/* The bounds of what a search of cuDNN found, against those of a named algorithm: the
 * same numbers in another order of the tensors (conv_algorithms.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/cudnn/conv_algorithms.h"
#include "cuda/cudnn/conv_chosen.h"
#include "workloads/instruments/philox.h"

enum { IMAGES = 3, CHANNELS = 5, HEIGHT = 6, WIDTH = 7, FEATURES = 8, BRANCHES = 4 };
enum { X, W, Y, TENSORS };
enum { DIRECT = -1 };

static const struct layer_shape shape = { IMAGES, CHANNELS, HEIGHT, WIDTH, FEATURES };
static const int64_t outer[TENSORS] = { IMAGES, 1, IMAGES };
static const int64_t middle[TENSORS] = { HEIGHT * WIDTH, LAYER_TAPS, HEIGHT *WIDTH };
static const int64_t inner[TENSORS] = { CHANNELS, CHANNELS *FEATURES, FEATURES };

static int64_t elements_of(int tensor)
{
    return outer[tensor] * middle[tensor] * inner[tensor];
}

/* Where cuDNN's order has element AT of ours: w's windows are turned, too. */
static int64_t at_cudnn(int tensor, int64_t at)
{
    int64_t in = at % inner[tensor], mid = at / inner[tensor] % middle[tensor];
    int64_t out = at / inner[tensor] / middle[tensor];

    if (tensor == W) {
        in = in % FEATURES * CHANNELS + in / FEATURES;
    }
    return (out * inner[tensor] + in) * middle[tensor] + mid;
}

struct problem {
    float *ours[TENSORS];
    struct tensor cudnn[TENSORS];
};

static struct problem problem_new(void)
{
    static const char *const names[TENSORS] = { "x", "w", "y" };
    struct problem p;

    for (int t = 0; t < TENSORS; t++) {
        int64_t elements = elements_of(t);
        float *data = malloc((size_t)elements * sizeof *data);

        p.ours[t] = malloc((size_t)elements * sizeof *data);
        for (int64_t i = 0; i < elements; i++) {
            p.ours[t][i] = philox_wide_f32(7, (uint64_t)t, (uint64_t)i);
            data[at_cudnn(t, i)] = p.ours[t][i];
        }
        p.cudnn[t] = (struct tensor){ .name = names[t],
                                      .dtype = DTYPE_FLOAT32,
                                      .rank = 1,
                                      .shape = { elements },
                                      .data = data };
    }
    return p;
}

static void problem_free(struct problem *p)
{
    for (int t = 0; t < TENSORS; t++) {
        free(p->ours[t]);
        free(p->cudnn[t].data);
    }
}

/* What conv_algorithms.h bounds the result of PASS by, computed by ALGORITHM. */
static double *named_bounds(const struct problem *p, enum cudnn_pass pass, int result,
                            const char *algorithm)
{
    static const struct workload_size size = { "test", "", &shape };
    struct workload_variant variant = { .name = algorithm };
    struct run run = { .variant = &variant, .size = &size, .dtype = DTYPE_FLOAT32 };
    struct tensor inputs[2];
    size_t bytes = (size_t)elements_of(result) * sizeof(double);
    double *expected = malloc(bytes), *bounds = malloc(bytes);

    for (int t = 0, count = 0; t < TENSORS; t++) {
        if (t != result) {
            inputs[count++] = p->cudnn[t];
        }
    }
    conv_reference(pass, &run, inputs, &p->cudnn[result], expected, bounds);
    free(expected);
    return bounds;
}

static double *chosen_bounds(const struct problem *p, enum cudnn_pass pass, int result,
                             int64_t branches, const char *algorithm)
{
    struct run run = { .algorithm = algorithm };
    struct conv_chosen conv = {
        .pass = pass,
        .images = IMAGES,
        .height = HEIGHT,
        .width = WIDTH,
        .in_channels = CHANNELS,
        .out_channels = FEATURES,
        .branches = branches,
        .x = result == X ? NULL : p->ours[X],
        .w = result == W ? NULL : p->ours[W],
        .y = result == Y ? NULL : p->ours[Y],
    };
    double *bounds = malloc((size_t)elements_of(result) * sizeof *bounds);

    for (int64_t i = 0; i < elements_of(result); i++) {
        bounds[i] = DIRECT;
    }
    conv_chosen_bounds(&conv, &run, bounds);
    return bounds;
}

static void compare(const double *chosen, const double *named, int result, int64_t first,
                    int64_t past)
{
    for (int64_t i = 0; i < elements_of(result); i++) {
        int64_t feature = i % FEATURES;
        double want = named ? named[at_cudnn(result, i)] : DIRECT;

        if (feature >= first && feature < past &&
            !(fabs(chosen[i] - want) <= 1e-12 * fabs(want))) {
            fail_msg("tensor %d, element %ld: %g, not %g", result, (long)i, chosen[i],
                     want);
        }
    }
}

static void test_one_algorithm(void **state)
{
    static const struct {
        const char *chosen, *named;
    } algorithms[] = {
        { "CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING, CUDNN_FMA_MATH, NCHW",
          "algo_fft" },
        { "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT", "algo_fft" },
        { "WINOGRAD_NONFUSED, CUDNN_FMA_MATH", "algo_winograd" },
        { "CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, not FFT, not WINOGRAD", NULL },
        { "gather, taps in row-major order", NULL },
        { "", NULL },
        { "A_NAME_THAT_IS_LONGER_THAN_ANY_OF_CUDNN_AND_SAYS_NOWHERE_THAT_IT_IS_AN_FFT_IS_"
          "CUT",
          NULL },
    };
    static const int results[] = {
        [CUDNN_FORWARD] = Y, [CUDNN_BACKWARD_DATA] = X, [CUDNN_BACKWARD_FILTER] = W
    };
    struct problem p = problem_new();

    (void)state;
    for (int pass = CUDNN_FORWARD; pass <= CUDNN_BACKWARD_FILTER; pass++) {
        for (size_t i = 0; i < COUNT_OF(algorithms); i++) {
            int result = results[pass];
            double *chosen =
                chosen_bounds(&p, (enum cudnn_pass)pass, result, 1, algorithms[i].chosen);
            double *named =
                algorithms[i].named
                    ? named_bounds(&p, (enum cudnn_pass)pass, result, algorithms[i].named)
                    : NULL;

            compare(chosen, named, result, 0, FEATURES);
            free(named);
            free(chosen);
        }
    }
    problem_free(&p);
}

/* Each branch has the bounds of its own. */
static void test_branches(void **state)
{
    struct problem p = problem_new();
    double *chosen = chosen_bounds(&p, CUDNN_FORWARD, Y, BRANCHES,
                                   "GEMM FFT_TILING WINOGRAD FFT, CUDNN_FMA_MATH");
    double *fft = named_bounds(&p, CUDNN_FORWARD, Y, "algo_fft");
    double *winograd = named_bounds(&p, CUDNN_FORWARD, Y, "algo_winograd");

    (void)state;
    compare(chosen, NULL, Y, 0, 2);
    compare(chosen, fft, Y, 2, 4);
    compare(chosen, winograd, Y, 4, 6);
    compare(chosen, fft, Y, 6, 8);
    free(winograd);
    free(fft);
    free(chosen);
    problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_algorithm),
        cmocka_unit_test(test_branches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
