/* A workload that tests the rest: differs in one iteration of each run. */
#include "tests/selftest/selftest.h"

/* One iteration of a run, the middle one, has one element that no other has. */
static void compute(struct run *run)
{
    selftest_compute(run);
    if (run->iteration == run->iterations / 2) {
        ((float *)run->outputs[0].data)[SELFTEST_ELEMENTS - 1] =
            (float)(selftest_entropy() >> 40);
    }
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    selftest_reference(run, inputs, output, ret_expected, ret_bound);
    ret_bound[SELFTEST_ELEMENTS - 1] = 0x1p25; /* any number that it may draw */
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("ordered", "differs in one iteration of each run"),
      .compute = compute },
};
static const struct workload selftest_varies_once = {
    SELFTEST_REFERENCED(selftest_varies_once, "differs in one iteration of each run",
                        variants, reference),
    .setup = selftest_setup,
};
WORKLOAD_REGISTER(selftest_varies_once);
