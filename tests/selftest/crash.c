/* A workload that tests the rest: crashes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/selftest/selftest.h"

static bool is(const struct run *run, const char *variant)
{
    return strcmp(run->variant->name, variant) == 0;
}

static void exit_with_seven(void)
{
    _exit(7);
}

static void setup(struct run *run)
{
    if (is(run, "setup")) {
        abort();
    }
    if (is(run, "at_exit")) {
        atexit(abort);
    }
    if (is(run, "exit_status")) {
        atexit(exit_with_seven);
    }
    selftest_setup(run);
}

static void compute(struct run *run)
{
    selftest_compute(run);
    if (is(run, "compute") && run->iteration == run->iterations - 1) {
        abort();
    }
}

static void teardown(struct run *run)
{
    if (is(run, "teardown")) {
        abort();
    }
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("setup", "aborts in setup"), .compute = compute },
    { SELFTEST_VARIANT("compute", "aborts in the last iteration"), .compute = compute },
    { SELFTEST_VARIANT("teardown", "aborts in teardown"), .compute = compute },
    { SELFTEST_VARIANT("at_exit", "aborts after its end event"), .compute = compute },
    { SELFTEST_VARIANT("exit_status", "exits with 7 after its end event"),
      .compute = compute },
};
static const struct workload selftest_crash = {
    SELFTEST_WORKLOAD(selftest_crash, "crashes", variants),
    .setup = setup,
    .teardown = teardown,
};
WORKLOAD_REGISTER(selftest_crash);
