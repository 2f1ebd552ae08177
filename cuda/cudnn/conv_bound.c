#include "cuda/cudnn/conv_bound.h"

#include <math.h>

#include "workloads/shared/tf32.h"

/* Unit roundoffs: of float32, of sums on Tensor Cores, of the operands they read. */
#define UNIT         0x1p-24
#define UNIT_TENSOR  TF32_UNIT_SUM
#define UNIT_OPERAND TF32_UNIT_OPERAND
#define UNIT_HALF    0x1p-11
#define LEAST_HALF   0x1p-24

/* Two dimensions of up to 256 points, and two stages for real data as complex. */
enum { FFT_STAGES = 18 };

/* How much the transforms of 6x6 tiles amplify, which is more than those of 4x4 do: for
 * each element the sum over points of |a| |g| |b|, with the 2-norms of the rows of G and
 * B; and its root of the sum of squares.  Squared, for two dimensions. */
static const double amplified = 19.6 * 19.6, amplified_wgrad = 20.1 * 20.1;
static const double spread = 9.75 * 9.75, spread_wgrad = 9.85 * 9.85;

enum {
    WINOGRAD_ROUNDINGS = 40, /* of an element in all its transforms */
    WINOGRAD_STEP = 4,       /* from a tile to the next, at least 2: see tiles_of */
    FFT_STEP = 16,           /* tiles of 32 share at most half of their pixels */
    DEVIATIONS = 6,          /* of the probable bound: 1 element in 10^8 goes beyond */
    CLUSTERED = 2            /* how far a tile's inputs may lie above their mean */
};

static double gamma_of(double n, double unit)
{
    double nu = (n + 1) * unit;

    return nu < 1 ? nu / (1 - nu) : INFINITY;
}

static bool is_reduced(const struct conv_bound *how)
{
    return how->arithmetic != CUDNN_ARITHMETIC_FMA;
}

static double unit_of_sums(const struct conv_bound *how)
{
    return is_reduced(how) ? UNIT_TENSOR : UNIT;
}

/* Tiles that the result sums over: only gradients of weights sum over pixels.  Smaller
 * tiles are more, but amplify by so much less that larger ones bound them too. */
static double tiles_of(const struct conv_bound *how, int64_t step)
{
    int64_t down = (how->height + step - 1) / step;
    int64_t across = (how->width + step - 1) / step;

    return how->pass == CUDNN_BACKWARD_FILTER ? (double)(down * across) : 1;
}

/* Tiles of x overlap, so that a pixel counts up to four times in a sum of squares. */
static double overlap_of(const struct conv_bound *how)
{
    return how->pass == CUDNN_BACKWARD_FILTER ? 2 : 1;
}

/* TF32 rounds both factors; float16 is read as it is. */
static double bound_direct(const struct conv_bound *how, const struct conv_sums *of)
{
    double operand = how->arithmetic == CUDNN_ARITHMETIC_TF32 ? UNIT_OPERAND : 0;

    return ((1 + operand) * (1 + operand) *
                (1 + gamma_of((double)how->terms, unit_of_sums(how))) -
            1) *
           of->magnitudes;
}

/* The inverse transform errs by a share of the result's 2-norm, which the smaller one of
 * two convolved planes bounds by the root of its elements. */
static double bound_fft(const struct conv_bound *how, const struct conv_sums *of)
{
    double eta = 4 * UNIT + gamma_of(4, UNIT) * (sqrt(2) + 4 * UNIT);
    double transform = FFT_STAGES * eta / (1 - FFT_STAGES * eta);
    double operand = is_reduced(how) ? UNIT_OPERAND : 0;
    double elements = how->pass == CUDNN_BACKWARD_FILTER
                          ? (double)(how->height * how->width)
                          : (double)9;
    double sums = gamma_of(4 * ((double)how->planes * tiles_of(how, FFT_STEP) + 4),
                           unit_of_sums(how));
    double product = (1 + transform + operand) * (1 + transform + operand) * (1 + sums) *
                     (1 + operand);

    return (product * (1 + transform * sqrt(elements)) - 1) * overlap_of(how) * of->norms;
}

static double bound_winograd(const struct conv_bound *how, const struct conv_sums *of)
{
    bool wgrad = how->pass == CUDNN_BACKWARD_FILTER;
    double tiles = tiles_of(how, WINOGRAD_STEP);
    double roundings = WINOGRAD_ROUNDINGS + (double)how->planes * tiles;

    if (!is_reduced(how)) {
        return gamma_of(roundings, UNIT) * (wgrad ? amplified_wgrad : amplified) *
               overlap_of(how) * of->norms;
    }
    return DEVIATIONS * CLUSTERED * (2 * UNIT_OPERAND + roundings * UNIT_TENSOR) *
           (wgrad ? spread_wgrad : spread) * sqrt(tiles * of->energy);
}

double conv_bound(const struct conv_bound *how, const struct conv_sums *of)
{
    double bound = how->method == CONV_FFT        ? bound_fft(how, of)
                   : how->method == CONV_WINOGRAD ? bound_winograd(how, of)
                                                  : bound_direct(how, of);

    if (how->dtype == DTYPE_FLOAT16) {
        bound += UNIT_HALF * (fabs(of->value) + bound) + LEAST_HALF;
    }
    return bound;
}
