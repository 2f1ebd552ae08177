/* A workload that tests the rest: never ends. */
#include <unistd.h>

#include "tests/selftest/selftest.h"

static void compute(struct run *run)
{
    (void)run;
    for (;;) {
        pause();
    }
}

SELFTEST_COMPUTE(selftest_hang, "never ends", compute);
