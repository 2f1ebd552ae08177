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

SELFTEST_COMPUTE(selftest_varies_once, "differs in one iteration of each run", compute);
