/* A workload that tests the rest: writes a line that is not an event. */
#include "tests/selftest/selftest.h"

static void compute(struct run *run)
{
    static const char line[] = "this is \0 not \xff JSON\n";
    selftest_write(line, sizeof line - 1);
    selftest_compute(run);
}

SELFTEST_COMPUTE(selftest_garbage, "writes a line that is no event", compute);
