/* A workload that tests the rest: leaves outputs unwritten. */
#include "tests/selftest/selftest.h"

static void compute_nothing(struct run *run)
{
    (void)run;
}

static void compute_most(struct run *run)
{
    float *y = run->outputs[0].data;
    float last = y[SELFTEST_ELEMENTS - 1];
    selftest_compute(run);
    y[SELFTEST_ELEMENTS - 1] = last;
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("ordered", "writes no element"), .compute = compute_nothing },
    { SELFTEST_VARIANT("partial", "writes every element but one"),
      .compute = compute_most },
};
static const struct workload selftest_stale_output = {
    SELFTEST_WORKLOAD(selftest_stale_output, "leaves outputs unwritten", variants),
    .setup = selftest_setup,
};
WORKLOAD_REGISTER(selftest_stale_output);
