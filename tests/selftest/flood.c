/* A workload that tests the rest: writes without end. */
#include <stdio.h>
#include <string.h>

#include "tests/selftest/selftest.h"

static void compute(struct run *run)
{
    bool log = strcmp(run->variant->name, "log") == 0;
    for (long i = 0;; i++) {
        if (log) {
            printf("line %ld of a log that does not end\n", i);
        } else {
            selftest_printf("{\"event\":\"note\",\"i\":%ld}\n", i);
        }
    }
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("ordered", "events without end"), .compute = compute },
    { SELFTEST_VARIANT("log", "standard output without end"), .compute = compute },
};
static const struct workload selftest_flood = {
    SELFTEST_WORKLOAD(selftest_flood, "writes without end", variants),
    .setup = selftest_setup,
};
WORKLOAD_REGISTER(selftest_flood);
