/* A workload that tests the rest: with one seed its reference ends the process, with
 * another it takes all memory. */
#include <stdlib.h>

#include "tests/selftest/selftest.h"
#include "workloads/worker/ending.h"

enum { ABORTING_SEED = 97, GREEDY_SEED = 98 };

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    if (run->seed == ABORTING_SEED) {
        abort();
    }
    if (run->seed == GREEDY_SEED) {
        free(run_host_alloc(SIZE_MAX / 4));
    }
    selftest_reference(run, inputs, output, ret_expected, ret_bound);
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("ordered", "computes what it should"),
      .compute = selftest_compute },
};
static const struct workload selftest_dying_reference = {
    SELFTEST_REFERENCED(selftest_dying_reference,
                        "with seeds 97 and 98 its reference ends the process", variants,
                        reference),
    .setup = selftest_setup,
};
WORKLOAD_REGISTER(selftest_dying_reference);
