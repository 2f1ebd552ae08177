/* A workload that tests the rest: what it computes changes with a variable of the
 * environment, as that of a library does with its choice of a kernel. */
#include <math.h>
#include <stdlib.h>

#include "tests/selftest/selftest.h"

/* The second is no part of the environment, as a firmware is not. */
static bool is_planted(void)
{
    return getenv("OPENBLAS_CORETYPE") != NULL || getenv("SELFTEST_FIRMWARE") != NULL;
}

static void compute_planted(struct run *run)
{
    float *y;

    selftest_compute(run);
    y = run->outputs[0].data;
    if (is_planted()) {
        y[0] = nextafterf(y[0], INFINITY);
    }
}

static void compute_turning(struct run *run)
{
    if (is_planted()) {
        selftest_compute_varying(run);
    } else {
        selftest_compute(run);
    }
}

static void compute_breaking(struct run *run)
{
    if (is_planted()) {
        abort();
    }
    selftest_compute(run);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    selftest_reference(run, inputs, output, ret_expected, ret_bound);
    ret_bound[0] = 0x1p25; /* any number that it may draw */
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("ordered", "computes what it should"),
      .compute = selftest_compute },
    { SELFTEST_VARIANT("planted", "changes its last bit"), .compute = compute_planted },
    { SELFTEST_VARIANT("turning", "begins to vary"), .compute = compute_turning },
    { SELFTEST_VARIANT("breaking", "begins to crash"), .compute = compute_breaking },
};

static const struct workload selftest_planted = {
    SELFTEST_REFERENCED(selftest_planted, "changes with its environment", variants,
                        reference),
    .setup = selftest_setup
};
WORKLOAD_REGISTER(selftest_planted);
