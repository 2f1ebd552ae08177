/* What workloads that try the simulator compute: the sums of the rows of x[sums, terms].
 * Their kernels differ. */
#ifndef TESTS_SIMULATOR_ROW_SUMS_H
#define TESTS_SIMULATOR_ROW_SUMS_H

#include <math.h>

#include "cuda/kernels/kernel.h"
#include "workloads/shared/rounding.h"

struct row_sums {
    const float *x;
    float *sums;
};

/* Sets run->state to a struct row_sums, whose output has the shape SUMS. */
static inline void row_sums_setup(struct run *run, int64_t sums, int64_t terms)
{
    struct row_sums *s = (struct row_sums *)run_host_alloc(sizeof *s);
    int64_t shape[] = { sums, terms };

    s->x = (const float *)run_input(run, "x", run->dtype, 2, shape, FILL_WIDE, 0)->data;
    s->sums = (float *)run_output(run, "sums", run->dtype, 1, shape)->data;
    run->state = s;
}

/* Each in float64; its bound is that of any order of TERMS terms. */
static inline void row_sums_reference(const struct run *run, const struct tensor *inputs,
                                      int64_t sums, int64_t terms, double *ret_expected,
                                      double *ret_bound)
{
    const float *x = (const float *)inputs[0].data;

    for (int64_t sum = 0; sum < sums; sum++) {
        ret_expected[sum] = ret_bound[sum] = 0;
        for (int64_t i = sum * terms; i < (sum + 1) * terms; i++) {
            ret_expected[sum] += x[i];
            ret_bound[sum] += rounding_gamma(run->dtype, terms) * fabs((double)x[i]);
        }
    }
}

#endif
