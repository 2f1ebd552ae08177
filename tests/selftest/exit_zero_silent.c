/* A workload that tests the rest: exits with 0 and no event. */
#include <unistd.h>

#include "tests/selftest/selftest.h"

static void setup(struct run *run)
{
    if (!selftest_is_control(run)) {
        _exit(0);
    }
    selftest_setup(run);
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("ordered", "exits with 0, having written nothing"),
      .compute = selftest_compute },
};
static const struct workload selftest_exit_zero_silent = {
    SELFTEST_WORKLOAD(selftest_exit_zero_silent, "exits with 0 and no event", variants),
    .setup = setup,
};
WORKLOAD_REGISTER(selftest_exit_zero_silent);
