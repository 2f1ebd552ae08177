/* A workload that tests the rest: ran on another device. */
#include <string.h>
#include <unistd.h>

#include "tests/selftest/selftest.h"

static const char elsewhere[] = "cpu:somewhere-else";

static void write_rest(struct run *run, const struct selftest_claims *claims)
{
    for (int i = 0; i < run->iterations; i++) {
        selftest_write_iteration(i);
    }
    selftest_write_end(run, claims);
    _exit(0);
}

static void setup(struct run *run)
{
    selftest_setup(run);
    if (strcmp(run->variant->name, "start") == 0) {
        struct selftest_claims claims = selftest_honest_claims(run);
        selftest_write_start(run, elsewhere);
        write_rest(run, &claims);
    }
}

static void compute(struct run *run)
{
    struct selftest_claims claims = selftest_honest_claims(run);
    claims.device = elsewhere;
    write_rest(run, &claims);
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("ordered", "another device in its end event"),
      .compute = compute },
    { SELFTEST_VARIANT("start", "another device in its start event"),
      .compute = compute },
};
static const struct workload selftest_wrong_device = {
    SELFTEST_WORKLOAD(selftest_wrong_device, "ran on another device", variants),
    .setup = setup,
};
WORKLOAD_REGISTER(selftest_wrong_device);
