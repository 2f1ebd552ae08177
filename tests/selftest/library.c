/* A workload that tests the rest: variants that say whose code computes, and lie. */
#include "tests/selftest/selftest.h"

static void compute_as_library(struct run *run)
{
    run_library_called("libpretend");
    selftest_compute(run);
}

static void compute_as_another(struct run *run)
{
    run_library_called("libother");
    selftest_compute(run);
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("honest", "names the library that computes"),
      .compute = compute_as_library, .library = "libpretend" },
    { SELFTEST_VARIANT("unnamed", "has a library compute, and is said to be a model"),
      .compute = compute_as_library },
    { SELFTEST_VARIANT("uncalled", "names a library, and computes by itself"),
      .compute = selftest_compute, .library = "libpretend" },
    { SELFTEST_VARIANT("another", "names a library, and has another compute"),
      .compute = compute_as_another, .library = "libpretend" },
};
static const struct workload selftest_library = {
    SELFTEST_WORKLOAD(selftest_library, "says whose code computes", variants),
    .setup = selftest_setup,
};
WORKLOAD_REGISTER(selftest_library);
