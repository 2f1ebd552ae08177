/* Workloads that test the rest: what they compute is wrong. */
#include "tests/selftest/selftest.h"

static void compute_42(struct run *run)
{
    float *y = run->outputs[0].data;

    for (int i = 0; i < SELFTEST_ELEMENTS; i++) {
        y[i] = 42;
    }
}

/* Right in all iterations but the last. */
static void compute_at_first(struct run *run)
{
    selftest_compute(run);
    if (run->iteration == run->iterations - 1) {
        ((float *)run->outputs[0].data)[SELFTEST_ELEMENTS - 1] += 1;
    }
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("ordered", "writes 42 everywhere"), .compute = compute_42 },
    { SELFTEST_VARIANT("at_first", "is right in all iterations but the last"),
      .compute = compute_at_first },
};
static const struct workload selftest_wrong = {
    SELFTEST_WORKLOAD(selftest_wrong, "computes what is wrong", variants),
    .setup = selftest_setup,
};
WORKLOAD_REGISTER(selftest_wrong);

static void compute_rubbish(struct run *run)
{
    float *y = run->outputs[0].data;

    for (int i = 0; i < SELFTEST_ELEMENTS; i++) {
        y[i] = (float)(selftest_entropy() >> 40);
    }
}

static const struct workload_variant rubbish_variants[] = {
    { SELFTEST_VARIANT("unordered", "writes random numbers"), .control = true,
      .compute = compute_rubbish },
    { SELFTEST_VARIANT("ordered", "computes what it should"),
      .compute = selftest_compute },
};
static const struct workload selftest_wrong_control = {
    SELFTEST_WORKLOAD(selftest_wrong_control, "has a control that is no control",
                      rubbish_variants),
    .setup = selftest_setup,
};
WORKLOAD_REGISTER(selftest_wrong_control);
