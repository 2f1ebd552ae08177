/* A workload that tests the rest: reads memory that nobody wrote. */
#include <stdlib.h>
#include <string.h>

#include "tests/selftest/selftest.h"

/* Bytes, and not floats: no pattern may make a NaN of them. */
static void compute_from(struct run *run, const volatile unsigned char *bytes)
{
    float *y = run->outputs[0].data;
    for (int i = 0; i < SELFTEST_ELEMENTS; i++) {
        y[i] = bytes[i];
    }
}

static void compute_scratch(struct run *run)
{
    static const unsigned char *scratch;
    if (!scratch) {
        scratch = run_alloc(run, SELFTEST_ELEMENTS);
    }
    compute_from(run, scratch);
}

/* The allocator keeps its own notes in the first bytes of what is free. */
static void compute_recycled(struct run *run)
{
    enum { NOTES = 32, BYTES = NOTES + SELFTEST_ELEMENTS };
    unsigned char *memory = run_host_alloc(BYTES);
    memset(memory, 1, BYTES);
    selftest_keep(memory);
    free(memory);
    memory = run_host_alloc(BYTES);
    compute_from(run, memory + NOTES);
    free(memory);
}

/* Whatever was there: bytes. */
static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    bool control = selftest_is_control(run);

    selftest_reference(run, inputs, output, ret_expected, ret_bound);
    for (int i = 0; i < SELFTEST_ELEMENTS && !control; i++) {
        ret_expected[i] = ret_bound[i] = 128;
    }
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("scratch", "computes from scratch that nobody wrote"),
      .compute = compute_scratch },
    { SELFTEST_VARIANT("recycled", "computes from memory that was freed before"),
      .compute = compute_recycled },
};
static const struct workload selftest_memory = {
    SELFTEST_REFERENCED(selftest_memory, "reads memory that nobody wrote", variants,
                        reference),
    .setup = selftest_setup,
};
WORKLOAD_REGISTER(selftest_memory);
