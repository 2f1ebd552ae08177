/* A workload that tests the rest: computes what it should. */
#include "tests/selftest/selftest.h"

SELFTEST_COMPUTE(selftest_pass, "computes what it should", selftest_compute);
