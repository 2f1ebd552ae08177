/* A workload that tests the rest: claims success over no elements. */
#include <unistd.h>

#include "tests/selftest/selftest.h"

static void compute(struct run *run)
{
    struct selftest_claims claims = selftest_honest_claims(run);
    claims.elements = 0;
    claims.bytes = 0;
    for (int i = 0; i < run->iterations; i++) {
        selftest_write_iteration(i);
    }
    selftest_write_end(run, &claims);
    _exit(0);
}

SELFTEST_COMPUTE(selftest_zero_elements, "claims success over no elements", compute);
