/* A workload that tests the rest: computes nothing but NaN. */
#include <math.h>

#include "tests/selftest/selftest.h"

static void compute(struct run *run)
{
    float *y = run->outputs[0].data;
    for (int i = 0; i < SELFTEST_ELEMENTS; i++) {
        y[i] = NAN;
    }
}

SELFTEST_COMPUTE(selftest_nan_everywhere, "computes nothing but NaN", compute);
