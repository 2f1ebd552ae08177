/* A workload that tests the rest: with one seed its reference takes long. */
#include <unistd.h>

#include "tests/selftest/selftest.h"

enum { SLOW_SEED = 99, SLOW_SECONDS = 3 };

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    if (run->seed == SLOW_SEED) {
        sleep(SLOW_SECONDS);
    }
    selftest_reference(run, inputs, output, ret_expected, ret_bound);
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("ordered", "computes what it should"),
      .compute = selftest_compute },
};
static const struct workload selftest_slow_reference = {
    SELFTEST_REFERENCED(selftest_slow_reference, "with seed 99 its reference takes long",
                        variants, reference),
    .setup = selftest_setup,
};
WORKLOAD_REGISTER(selftest_slow_reference);
