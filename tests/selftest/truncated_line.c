/* A workload that tests the rest: ends in the middle of its last line. */
#include <unistd.h>

#include "tests/selftest/selftest.h"

static void compute(struct run *run)
{
    for (int i = 0; i < run->iterations; i++) {
        selftest_write_iteration(i);
    }
    selftest_printf("{\"event\":\"end\",\"outcome\":\"completed\",\"cause\":null,");
    _exit(0);
}

SELFTEST_COMPUTE(selftest_truncated_line, "ends in the middle of its last line", compute);
