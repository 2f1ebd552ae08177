/* A workload that tests the rest: wants too much memory. */
#include "tests/selftest/selftest.h"

static void setup(struct run *run)
{
    int64_t shape[] = { (int64_t)1 << 50, 1024 };
    selftest_setup(run);
    if (!selftest_is_control(run)) {
        run_output(run, "z", DTYPE_FLOAT32, 2, shape);
    }
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("ordered", "wants 2^62 bytes"), .compute = selftest_compute },
};
static const struct workload selftest_out_of_memory = {
    SELFTEST_WORKLOAD(selftest_out_of_memory, "wants too much memory", variants),
    .setup = setup,
};
WORKLOAD_REGISTER(selftest_out_of_memory);
