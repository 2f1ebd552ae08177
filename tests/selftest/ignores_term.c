/* A workload that tests the rest: never ends, and blocks all signals. */
#include <signal.h>
#include <unistd.h>

#include "tests/selftest/selftest.h"

static void compute(struct run *run)
{
    sigset_t all;

    (void)run;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (;;) {
        pause();
    }
}

SELFTEST_COMPUTE(selftest_ignores_term, "never ends, and blocks all signals", compute);
