/* A workload that tests the rest: closes the descriptor of its events. */
#include <stdlib.h>
#include <unistd.h>

#include "tests/selftest/selftest.h"

static void compute(struct run *run)
{
    const char *number = getenv("REPROD_RESULT_FD");
    selftest_compute(run);
    close(number ? (int)strtol(number, NULL, 10) : 3);
}

SELFTEST_COMPUTE(selftest_closes_fd3, "closes the descriptor of its events", compute);
