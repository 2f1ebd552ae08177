/* A workload that tests the rest: writes into its input. */
#include "tests/selftest/selftest.h"

static void compute(struct run *run)
{
    selftest_compute(run);
    ((float *)run->inputs[0].data)[0] += 1;
}

SELFTEST_COMPUTE(selftest_input_scribbler, "writes into its input", compute);
