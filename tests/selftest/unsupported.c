/* A workload that tests the rest: cannot compute its case. */
#include <string.h>

#include "tests/selftest/selftest.h"

static const char *refuse(const struct run *run)
{
    (void)run;
    return "this variant supports nothing";
}

static void setup(struct run *run)
{
    selftest_setup(run);
    if (strcmp(run->variant->name, "setup") == 0) {
        run_unsupported(run, "setup found no algorithm \"%d\"", 3);
    }
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("ordered", "refuses every case"), .compute = selftest_compute,
      .unsupported = refuse },
    { SELFTEST_VARIANT("setup", "finds out in setup"), .compute = selftest_compute },
};
static const struct workload selftest_unsupported = {
    SELFTEST_WORKLOAD(selftest_unsupported, "cannot compute its case", variants),
    .setup = setup,
};
WORKLOAD_REGISTER(selftest_unsupported);
