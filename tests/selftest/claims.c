/* A workload that tests the rest: libraries that promise something. */
#include "tests/selftest/selftest.h"

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("broken", "claims to be deterministic, and varies"),
      .claim = "deterministic", .compute = selftest_compute_varying },
    { SELFTEST_VARIANT("kept", "claims to be deterministic, and is"),
      .claim = "deterministic", .compute = selftest_compute },
    { SELFTEST_VARIANT("honest", "claims not to be deterministic, and varies"),
      .claim = "non-deterministic", .compute = selftest_compute_varying },
    { SELFTEST_VARIANT("warned", "claims not to be deterministic, and does not vary"),
      .claim = "non-deterministic", .compute = selftest_compute },
};

static const struct workload selftest_claims = {
    SELFTEST_WORKLOAD(selftest_claims, "libraries that promise something", variants),
    .setup = selftest_setup
};
WORKLOAD_REGISTER(selftest_claims);
