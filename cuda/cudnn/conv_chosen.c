#include "cuda/cudnn/conv_chosen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cudnn/conv_bound.h"

enum { TAPS = 9, NAME_SIZE = 64 };
enum { X, W, Y, TENSORS };

/* A plane is one image's channel of x or y, or one window of w.  They are numbered
 * [image][channel] and [in channel][out channel]: an element of a tensor whose planes are
 * OUTER * INNER is at (outer * plane's elements + element of the plane) * inner + inner.
 */
struct planes {
    int64_t outer, elements, inner;
};

static struct planes planes_of(const struct conv_chosen *conv, int tensor)
{
    int64_t pixels = conv->height * conv->width;

    switch (tensor) {
    case X:
        return (struct planes){ conv->images, pixels, conv->in_channels };
    case W:
        return (struct planes){ 1, TAPS, conv->in_channels * conv->out_channels };
    default:
        return (struct planes){ conv->images, pixels, conv->out_channels };
    }
}

static int64_t plane_at(struct planes planes, int64_t element)
{
    return element / planes.inner / planes.elements * planes.inner +
           element % planes.inner;
}

static double *zeros(int64_t count)
{
    double *found = run_host_alloc((size_t)count * sizeof *found);

    memset(found, 0, (size_t)count * sizeof *found);
    return found;
}

/* The sum of squares of each plane; the caller frees it. */
static double *squares_of(struct planes planes, const float *values)
{
    double *squares = zeros(planes.outer * planes.inner);

    for (int64_t i = 0; i < planes.outer * planes.elements * planes.inner; i++) {
        squares[plane_at(planes, i)] += (double)values[i] * values[i];
    }
    return squares;
}

static int result_of(enum cudnn_pass pass)
{
    return pass == CUDNN_FORWARD ? Y : pass == CUDNN_BACKWARD_DATA ? X : W;
}

/* For each plane of the result: the products of the 2-norms of what is convolved for it,
 * added up; the caller frees it. */
static double *norms_of(const struct conv_chosen *conv)
{
    const float *values[TENSORS] = { conv->x, conv->w, conv->y };
    int result = result_of(conv->pass), first = result == X, second = 3 - result - first;
    struct planes planes = planes_of(conv, result);
    double *a = squares_of(planes_of(conv, first), values[first]);
    double *b = squares_of(planes_of(conv, second), values[second]);
    double *norms = zeros(planes.outer * planes.inner);

    for (int64_t n = 0; n < conv->images; n++) {
        for (int64_t c = 0; c < conv->in_channels; c++) {
            for (int64_t k = 0; k < conv->out_channels; k++) {
                int64_t plane[TENSORS] = { n * conv->in_channels + c,
                                           c * conv->out_channels + k,
                                           n * conv->out_channels + k };

                norms[plane[result]] += sqrt(a[plane[first]] * b[plane[second]]);
            }
        }
    }
    free(b);
    free(a);
    return norms;
}

/* Of word BRANCH of ALGORITHM. */
static enum conv_method method_of(const char *algorithm, int64_t branch)
{
    char name[NAME_SIZE];
    size_t length;

    for (; branch > 0; branch--) {
        algorithm += strcspn(algorithm, " ");
        algorithm += strspn(algorithm, " ");
    }
    length = strcspn(algorithm, " ,");
    if (length >= sizeof name) {
        length = sizeof name - 1;
    }
    memcpy(name, algorithm, length);
    name[length] = '\0';
    return strstr(name, "FFT")        ? CONV_FFT
           : strstr(name, "WINOGRAD") ? CONV_WINOGRAD
                                      : CONV_DIRECT;
}

/* The branch of a plane of the result. */
static int64_t branch_of(const struct conv_chosen *conv, int64_t plane)
{
    return conv->branches == 1
               ? 0
               : plane % conv->out_channels / (conv->out_channels / conv->branches);
}

void conv_chosen_bounds(const struct conv_chosen *conv, const struct run *run,
                        double *bounds)
{
    struct conv_bound how = { .arithmetic = CUDNN_ARITHMETIC_FMA,
                              .dtype = DTYPE_FLOAT32,
                              .pass = conv->pass,
                              .height = conv->height,
                              .width = conv->width };
    struct planes planes = planes_of(conv, result_of(conv->pass));
    double *norms = norms_of(conv);

    how.planes = conv->pass == CUDNN_FORWARD         ? conv->in_channels
                 : conv->pass == CUDNN_BACKWARD_DATA ? conv->out_channels
                                                     : conv->images;
    for (int64_t plane = 0; plane < planes.outer * planes.inner; plane++) {
        int64_t first =
            plane / planes.inner * planes.elements * planes.inner + plane % planes.inner;
        struct conv_sums of = { .norms = norms[plane] };

        how.method = method_of(run->algorithm, branch_of(conv, plane));
        for (int64_t i = 0; i < planes.elements && how.method != CONV_DIRECT; i++) {
            bounds[first + i * planes.inner] = conv_bound(&how, &of);
        }
    }
    free(norms);
}
