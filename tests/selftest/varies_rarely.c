/* A workload that tests the rest: differs in one iteration of 64. */
#include "tests/selftest/selftest.h"

enum { ONE_IN = 64 };

static void compute(struct run *run)
{
    selftest_compute(run);
    if (selftest_entropy() % ONE_IN == 0) {
        ((float *)run->outputs[0].data)[0] += 1;
    }
}

SELFTEST_COMPUTE(selftest_varies_rarely, "differs in one iteration of 64", compute);
