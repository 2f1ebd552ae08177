/* A workload that tests the rest: leaves children behind. */
#include <unistd.h>

#include "tests/selftest/selftest.h"

enum { CHILDREN = 8, SECONDS = 120 };

/* Children of their own session, which hold every descriptor of the worker. */
static void compute(struct run *run)
{
    selftest_compute(run);
    for (int i = 0; run->iteration == 0 && i < CHILDREN; i++) {
        if (fork() == 0) {
            setsid();
            sleep(SECONDS);
            _exit(0);
        }
    }
}

SELFTEST_COMPUTE(selftest_fork_bomb, "leaves children behind", compute);
