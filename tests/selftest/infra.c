/* A workload that tests the rest: runs on a broken machine. */
#include <string.h>

#include "tests/selftest/selftest.h"

static void setup(struct run *run)
{
    selftest_setup(run);
    if (strcmp(run->variant->name, "setup") == 0) {
        run_infra(run, "the driver does not answer");
    }
}

/* In the last iteration, so that there are iterations that must not count. */
static void compute(struct run *run)
{
    selftest_compute(run);
    if (run->iteration == run->iterations - 1) {
        run_infra(run, "the device is gone");
    }
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("ordered", "loses its device in the last iteration"),
      .compute = compute },
    { SELFTEST_VARIANT("setup", "finds no usable device"), .compute = compute },
};
static const struct workload selftest_infra = {
    SELFTEST_WORKLOAD(selftest_infra, "runs on a broken machine", variants),
    .setup = setup,
};
WORKLOAD_REGISTER(selftest_infra);
