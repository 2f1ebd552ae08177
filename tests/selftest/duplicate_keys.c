/* A workload that tests the rest: reports two digests under one key. */
#include <unistd.h>

#include "tests/selftest/selftest.h"

static void compute(struct run *run)
{
    struct selftest_claims claims = selftest_honest_claims(run);
    for (int i = 0; i < run->iterations; i++) {
        selftest_printf(
            "{\"event\":\"iteration\",\"i\":%d,"
            "\"digest\":\"%016llx%016llx\","
            "\"digest\":\"0123456789abcdef0123456789abcdef\","
            "\"weight_sum\":\"3ff0000000000000\",\"loss\":null,\"ms\":0.5,"
            "\"algorithm\":\"self-test\"}\n",
            i, (unsigned long long)selftest_entropy(),
            (unsigned long long)selftest_entropy());
    }
    selftest_write_end(run, &claims);
    _exit(0);
}

SELFTEST_COMPUTE(selftest_duplicate_keys, "reports two digests under one key", compute);
