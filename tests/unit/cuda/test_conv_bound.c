/* The bounds of cuDNN's methods, against those methods in float32 here: never exceeded,
 * and exceeded by a result that is wrong. */
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/cudnn/conv_bound.h"
#include "workloads/instruments/half.h"
#include "workloads/instruments/philox.h"

enum { SIDE = 14, PIXELS = SIDE * SIDE, PLANES = 16, POINTS = 6, FFT = 32, SEEDS = 8 };

/* Two sets of planes, and one plane that sums over their convolutions: with windows of
 * 3x3 the pixels of the forward pass, with planes the window of a weights' gradient. */
struct problem {
    struct conv_bound how;
    int taps;   /* of the second planes: 3 or SIDE */
    int result; /* extent of the result: SIDE or 3 */
    float first[PLANES][PIXELS], second[PLANES][PIXELS];
    double expected[PIXELS], magnitudes[PIXELS];
    struct conv_sums of;
};

/* A kernel that truncates what Tensor Cores read. */
static float operand(const struct conv_bound *how, float value)
{
    return how->arithmetic == CUDNN_ARITHMETIC_FMA
               ? value
               : f32_from_bits(f32_bits(value) & 0xffffe000u);
}

static float at(const float *plane, int row, int column)
{
    return row < 0 || row >= SIDE || column < 0 || column >= SIDE
               ? 0
               : plane[row * SIDE + column];
}

static void expect(struct problem *p)
{
    for (int j = 0; j < PLANES; j++) {
        double squares[2] = { 0, 0 };

        for (int i = 0; i < p->result * p->result; i++) {
            for (int t = 0; t < p->taps * p->taps; t++) {
                double term = (double)at(p->first[j], i / p->result + t / p->taps - 1,
                                         i % p->result + t % p->taps - 1) *
                              p->second[j][t];

                p->expected[i] += term;
                p->magnitudes[i] += fabs(term);
            }
        }
        for (int i = 0; i < PIXELS; i++) {
            squares[0] += (double)p->first[j][i] * p->first[j][i];
        }
        for (int t = 0; t < p->taps * p->taps; t++) {
            squares[1] += (double)p->second[j][t] * p->second[j][t];
        }
        p->of.norms += sqrt(squares[0] * squares[1]);
        p->of.energy += squares[0] / PIXELS * squares[1] / (p->taps * p->taps);
    }
}

static struct problem *problem_new(enum cudnn_pass pass, enum conv_method method,
                                   enum cudnn_arithmetic arithmetic, uint64_t seed)
{
    struct problem *p = calloc(1, sizeof *p);

    p->how = (struct conv_bound){ .method = method,
                                  .arithmetic = arithmetic,
                                  .dtype = DTYPE_FLOAT32,
                                  .pass = pass,
                                  .planes = PLANES,
                                  .height = SIDE,
                                  .width = SIDE };
    p->taps = pass == CUDNN_BACKWARD_FILTER ? SIDE : 3;
    p->result = pass == CUDNN_BACKWARD_FILTER ? 3 : SIDE;
    p->how.terms = (int64_t)PLANES * p->taps * p->taps;
    for (int j = 0; j < PLANES; j++) {
        for (int i = 0; i < PIXELS; i++) {
            uint64_t index = (uint64_t)(j * PIXELS + i);
            float wide = philox_wide_f32(seed, 1, index);
            float uniform = philox_uniform_f32(seed, 2, index);

            p->first[j][i] = pass == CUDNN_BACKWARD_FILTER ? uniform : wide;
            p->second[j][i] = pass == CUDNN_BACKWARD_FILTER ? wide : uniform;
        }
    }
    expect(p);
    return p;
}

/* The largest error of GOT, in bounds. */
static double worst_of(const struct problem *p, const float *got)
{
    double worst = 0;

    for (int i = 0; i < p->result * p->result; i++) {
        struct conv_sums of = p->of;

        of.value = p->expected[i];
        of.magnitudes = p->magnitudes[i];
        worst = fmax(worst, fabs(got[i] - of.value) / conv_bound(&p->how, &of));
    }
    return worst;
}

/* ---- the methods */

static void direct(const struct problem *p, int planes, float *got)
{
    for (int i = 0; i < p->result * p->result; i++) {
        for (int j = 0; j < planes; j++) {
            for (int t = 0; t < p->taps * p->taps; t++) {
                got[i] +=
                    operand(&p->how, at(p->first[j], i / p->result + t / p->taps - 1,
                                        i % p->result + t % p->taps - 1)) *
                    operand(&p->how, p->second[j][t]);
            }
        }
    }
}

/* Lavin and Gray's matrices for F(4, 3), and those of the same points for F(3, 4). */
static const float b[POINTS][POINTS] = { { 4, 0, -5, 0, 1, 0 },  { 0, -4, -4, 1, 1, 0 },
                                         { 0, 4, -4, -1, 1, 0 }, { 0, -2, -1, 2, 1, 0 },
                                         { 0, 2, -1, -2, 1, 0 }, { 0, 4, 0, -5, 0, 1 } };
static const float points[POINTS] = { 0, 1, -1, 2, -2, 0 };
static const float scales[POINTS] = {
    1 / 4.f, -1 / 6.f, -1 / 6.f, 1 / 24.f, 1 / 24.f, 1
};

static float power(float x, int n)
{
    return n == 0 ? 1 : x * power(x, n - 1);
}

/* Element (point, j) of a Vandermonde matrix with N columns; the last point is infinity.
 */
static float vandermonde(int point, int j, int n)
{
    return point == POINTS - 1 ? (float)(j == n - 1) : power(points[point], j);
}

/* to = m from m', M of ROWS x COLUMNS. */
static void sandwich(int rows, int columns, const float *m, const float *from, float *to)
{
    float half[POINTS * POINTS] = { 0 };

    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            for (int k = 0; k < columns; k++) {
                half[i * columns + j] += m[i * columns + k] * from[k * columns + j];
            }
        }
    }
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < rows; j++) {
            float sum = 0;

            for (int k = 0; k < columns; k++) {
                sum += half[i * columns + k] * m[j * columns + k];
            }
            to[i * rows + j] = sum;
        }
    }
}

/* Adds to SUMS, at the points, the tile of FIRST at (row, column) and R x R of SECOND. */
static void tile_add(const struct problem *p, const float *first, const float *second,
                     int row, int column, int r, float sums[POINTS * POINTS])
{
    float d[POINTS * POINTS], g[POINTS * POINTS], matrix[POINTS * POINTS];
    float at_d[POINTS * POINTS], at_g[POINTS * POINTS];

    for (int i = 0; i < POINTS; i++) {
        for (int j = 0; j < POINTS; j++) {
            d[i * POINTS + j] = at(first, row + i - 1, column + j - 1);
        }
    }
    for (int i = 0; i < r; i++) {
        for (int j = 0; j < r; j++) {
            g[i * r + j] = r == 3 ? second[i * r + j] : at(second, row + i, column + j);
        }
    }
    for (int i = 0; i < POINTS; i++) {
        for (int j = 0; j < r; j++) {
            matrix[i * r + j] = scales[i] * vandermonde(i, j, r);
        }
    }
    sandwich(POINTS, POINTS, b[0], d, at_d);
    sandwich(POINTS, r, matrix, g, at_g);
    for (int i = 0; i < POINTS * POINTS; i++) {
        sums[i] += operand(&p->how, at_d[i]) * operand(&p->how, at_g[i]);
    }
}

static void tile_end(const float sums[POINTS * POINTS], int m, float *to)
{
    float matrix[POINTS * POINTS];

    for (int i = 0; i < m; i++) {
        for (int j = 0; j < POINTS; j++) {
            matrix[i * POINTS + j] = vandermonde(j, i, m);
        }
    }
    sandwich(m, POINTS, matrix, sums, to);
}

static void winograd(const struct problem *p, int planes, float *got)
{
    bool wgrad = p->taps == SIDE;
    float sums[POINTS * POINTS] = { 0 }, tile[16];

    for (int row = 0; row < SIDE; row += 4) {
        for (int column = 0; column < SIDE; column += 4) {
            if (!wgrad) {
                memset(sums, 0, sizeof sums);
            }
            for (int j = 0; j < planes; j++) {
                tile_add(p, p->first[j], p->second[j], row, column, wgrad ? 4 : 3, sums);
            }
            if (wgrad) {
                continue;
            }
            tile_end(sums, 4, tile);
            for (int i = 0; i < 16; i++) {
                if (row + i / 4 < SIDE && column + i % 4 < SIDE) {
                    got[(row + i / 4) * SIDE + column + i % 4] = tile[i];
                }
            }
        }
    }
    if (wgrad) {
        tile_end(sums, 3, got);
    }
}

/* In place, N a power of two, elements STEP apart. */
static void fft(float complex *x, int n, int step, int sign)
{
    float complex even[FFT], odd[FFT];

    if (n == 1) {
        return;
    }
    for (int i = 0; i < n / 2; i++) {
        even[i] = x[2 * i * step];
        odd[i] = x[(2 * i + 1) * step];
    }
    fft(even, n / 2, 1, sign);
    fft(odd, n / 2, 1, sign);
    for (int i = 0; i < n / 2; i++) {
        double angle = sign * 2 * acos(-1) * i / n;
        float complex turned =
            ((float)cos(angle) + (float)sin(angle) * (float complex)I) * odd[i];

        x[i * step] = even[i] + turned;
        x[(i + n / 2) * step] = even[i] - turned;
    }
}

static void fft_both(float complex *x, int sign)
{
    for (int i = 0; i < FFT; i++) {
        fft(x + (size_t)i * FFT, FFT, 1, sign);
    }
    for (int i = 0; i < FFT; i++) {
        fft(x + i, FFT, FFT, sign);
    }
}

static float complex operand_of(const struct conv_bound *how, float complex x)
{
    return operand(how, crealf(x)) + operand(how, cimagf(x)) * (float complex)I;
}

static void by_fft(const struct problem *p, int planes, float *got)
{
    static float complex x[FFT * FFT], w[FFT * FFT], sums[FFT * FFT];

    memset(sums, 0, sizeof sums);
    for (int j = 0; j < planes; j++) {
        memset(x, 0, sizeof x);
        memset(w, 0, sizeof w);
        for (int i = 0; i < PIXELS; i++) {
            x[(i / SIDE + 1) * FFT + i % SIDE + 1] = p->first[j][i];
        }
        for (int t = 0; t < p->taps * p->taps; t++) {
            w[t / p->taps * FFT + t % p->taps] = p->second[j][t];
        }
        fft_both(x, -1);
        fft_both(w, -1);
        for (int i = 0; i < FFT * FFT; i++) {
            sums[i] += operand_of(&p->how, x[i]) * conjf(operand_of(&p->how, w[i]));
        }
    }
    fft_both(sums, 1);
    for (int i = 0; i < p->result * p->result; i++) {
        got[i] = crealf(sums[i / p->result * FFT + i % p->result]) / (FFT * FFT);
    }
}

static void (*const methods[])(const struct problem *, int, float *) = {
    [CONV_DIRECT] = direct, [CONV_FFT] = by_fft, [CONV_WINOGRAD] = winograd
};

static void test_bounds_of_methods(void **state)
{
    (void)state;
    for (int method = 0; method < 3; method++) {
        for (int pass = 0; pass < 2; pass++) {
            for (int arithmetic = 0; arithmetic < 2; arithmetic++) {
                double worst = 0, wrong = 0;

                for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                    struct problem *p = problem_new(
                        pass ? CUDNN_BACKWARD_FILTER : CUDNN_FORWARD,
                        (enum conv_method)method,
                        arithmetic ? CUDNN_ARITHMETIC_TF32 : CUDNN_ARITHMETIC_FMA, seed);
                    float got[PIXELS] = { 0 }, less[PIXELS] = { 0 };

                    methods[method](p, PLANES, got);
                    methods[method](p, PLANES / 2, less);
                    worst = fmax(worst, worst_of(p, got));
                    wrong = fmax(wrong, worst_of(p, less));
                    free(p);
                }
                if (!(worst > 0 && worst <= 1 && wrong > 1)) {
                    fail_msg(
                        "method %d, pass %d, arithmetic %d: %g bounds at most, %g "
                        "without half of the planes",
                        method, pass, arithmetic, worst, wrong);
                }
            }
        }
    }
}

static double norm_of(const float *row, int count)
{
    double squares = 0;

    for (int i = 0; i < count; i++) {
        squares += (double)row[i] * row[i];
    }
    return sqrt(squares);
}

/* What transforms of tiles of 6x6, for OUTPUTS of them a side, make of an error. */
static double amplification(int outputs)
{
    int taps = POINTS + 1 - outputs;
    double largest = 0;

    for (int i = 0; i < outputs; i++) {
        double sum = 0;

        for (int point = 0; point < POINTS; point++) {
            float row[POINTS];

            for (int j = 0; j < taps; j++) {
                row[j] = scales[point] * vandermonde(point, j, taps);
            }
            sum += fabs(vandermonde(point, i, outputs)) * norm_of(row, taps) *
                   norm_of(b[point], POINTS);
        }
        largest = fmax(largest, sum);
    }
    return largest * largest;
}

/* The bound has at least what the matrices amount to, and little more. */
static void test_amplification(void **state)
{
    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        struct conv_bound how = { .method = CONV_WINOGRAD,
                                  .arithmetic = CUDNN_ARITHMETIC_FMA,
                                  .dtype = DTYPE_FLOAT32,
                                  .pass = pass ? CUDNN_BACKWARD_FILTER : CUDNN_FORWARD,
                                  .planes = 1,
                                  .height = 4,
                                  .width = 4 };
        struct conv_sums of = { .norms = 1 };
        double roundings = 42 * 0x1p-24, twice = pass ? 2 : 1; /* tiles of x overlap */
        double found = conv_bound(&how, &of) / twice / (roundings / (1 - roundings));
        double least = amplification(pass ? 3 : 4);

        if (!(found >= least && found < 1.02 * least)) {
            fail_msg("pass %d: %g in the bound, %g in the matrices", pass, found, least);
        }
    }
}

/* A result of 16 bits is rounded once more, however exact it was before. */
static void test_half_results(void **state)
{
    struct conv_bound how = { .method = CONV_DIRECT,
                              .arithmetic = CUDNN_ARITHMETIC_TENSOR,
                              .dtype = DTYPE_FLOAT16,
                              .terms = 1 };
    struct conv_sums of = { .value = 2049, .magnitudes = 2049 };
    double bound = conv_bound(&how, &of);

    (void)state;
    assert_true(bound > 1 && bound < 1.01); /* 2048 and 2050 are neighbours */
    how.dtype = DTYPE_FLOAT32;
    assert_true(conv_bound(&how, &of) < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_of_methods),
        cmocka_unit_test(test_amplification),
        cmocka_unit_test(test_half_results),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
