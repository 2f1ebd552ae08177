/* A workload that tests the rest: miscounts its iterations. */
#include <string.h>
#include <unistd.h>

#include "tests/selftest/selftest.h"

static void compute(struct run *run)
{
    struct selftest_claims claims = selftest_honest_claims(run);
    int written = run->iterations;
    if (strcmp(run->variant->name, "ordered") == 0) {
        written--;
    } else if (strcmp(run->variant->name, "extra") == 0) {
        written++;
    } else {
        claims.iterations++;
    }
    for (int i = 0; i < written; i++) {
        selftest_write_iteration(i);
    }
    selftest_write_end(run, &claims);
    _exit(0);
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("ordered", "one iteration fewer than claimed"),
      .compute = compute },
    { SELFTEST_VARIANT("extra", "one iteration more than claimed"), .compute = compute },
    { SELFTEST_VARIANT("claimed", "claims one iteration more than asked for"),
      .compute = compute },
};
static const struct workload selftest_wrong_count = {
    SELFTEST_WORKLOAD(selftest_wrong_count, "miscounts its iterations", variants),
    .setup = selftest_setup,
};
WORKLOAD_REGISTER(selftest_wrong_count);
