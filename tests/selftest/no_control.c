/* A workload that tests the rest: has no control. */
#include "tests/selftest/selftest.h"

static const struct workload_variant variants[] = {
    { SELFTEST_VARIANT("ordered", "computes what it should"),
      .compute = selftest_compute },
};
static const struct workload selftest_no_control = {
    SELFTEST_WORKLOAD(selftest_no_control, "has no control", variants),
    .setup = selftest_setup,
    .no_control = "every element is one multiplication",
};
WORKLOAD_REGISTER(selftest_no_control);
