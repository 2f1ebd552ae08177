/* A workload that tests the rest: writes lines that are too long. */
#include <string.h>

#include "tests/selftest/selftest.h"

enum { TEXT_BYTES = 70000 }; /* a line may have 65536 */

static void compute(struct run *run)
{
    static char text[TEXT_BYTES];
    memset(text, 'x', sizeof text);
    selftest_printf("{\"event\":\"note\",\"text\":\"");
    selftest_write(text, sizeof text);
    selftest_printf("\"}\n");
    selftest_compute(run);
}

SELFTEST_COMPUTE(selftest_huge_line, "writes lines that are too long", compute);
