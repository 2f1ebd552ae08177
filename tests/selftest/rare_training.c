/* A training of forty operations a step, one of which gives other bits in one run of
 * twenty, in one step only: what a localisation has to find. */
#include <stdio.h>

#include "tests/selftest/selftest.h"

enum {
    OPS = 40,
    STEPS = 50,
    RARE_OP = 23,
    RARE_STEP = 37,
    ONE_IN = 20,
    N = SELFTEST_ELEMENTS
};

/* Operation OP of a step, on element I of what the one before wrote. */
#define OPERATION(values, op, i)                                                         \
    (0.5F * (values)[i] + 0.25F * (values)[((i) + (op) + 1) % N] + 0.01F * (float)(op))

static float values[OPS + 1][N]; /* what each operation reads, and the last one writes */
static float updated[N];

static void probe(struct run *run, int64_t step)
{
    char place[32];
    struct probe_value weights = { DTYPE_FLOAT32, N, values[0], "w" };
    struct probe_value read[] = { weights, { DTYPE_FLOAT32, N, values[OPS], "y" } };
    struct probe_value written = { DTYPE_FLOAT32, N, updated, "w" };

    if (!run_probing(run, step)) {
        return;
    }
    run_probe(run, step, "variable/w/before", NULL, 0, &weights, 1);
    for (int op = 0; op < OPS; op++) {
        struct probe_value in = { DTYPE_FLOAT32, N, values[op], "x" };
        struct probe_value out = { DTYPE_FLOAT32, N, values[op + 1], "y" };
        snprintf(place, sizeof place, "op%02d/forward", op);
        run_probe(run, step, place, &in, 1, &out, 1);
    }
    run_probe(run, step, "variable/w/after", read, 2, &written, 1);
}

static void train_step(bool rare)
{
    for (int op = 0; op < OPS; op++) {
        for (int i = 0; i < N; i++) {
            values[op + 1][i] = OPERATION(values[op], op, i);
        }
        if (rare && op == RARE_OP) {
            values[op + 1][N / 2] += 0x1p-20F;
            values[op + 1][N / 4] += 0x1p-20F;
        }
    }
    for (int i = 0; i < N; i++) {
        updated[i] = 0.875F * values[0][i] + 0.125F * values[OPS][i];
    }
}

static void compute(struct run *run)
{
    bool rare = selftest_entropy() % ONE_IN == 0;
    float *y = run->outputs[0].data;
    const float *x = run->inputs[0].data;
    for (int i = 0; i < N; i++) {
        values[0][i] = x[i];
    }
    for (int64_t step = 0; step < STEPS; step++) {
        train_step(rare && step == RARE_STEP);
        probe(run, step);
        for (int i = 0; i < N; i++) {
            values[0][i] = updated[i];
        }
    }
    for (int i = 0; i < N; i++) {
        y[i] = updated[i];
    }
}

/* Contractive, so that rounding stays what it is in one step. */
static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const float *x = inputs[0].data;
    double w[N], a[N], b[N];
    (void)run;
    (void)output;
    for (int i = 0; i < N; i++) {
        w[i] = x[i];
    }
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < N; i++) {
            a[i] = w[i];
        }
        for (int op = 0; op < OPS; op++) {
            for (int i = 0; i < N; i++) {
                b[i] = OPERATION(a, op, i);
            }
            for (int i = 0; i < N; i++) {
                a[i] = b[i];
            }
        }
        for (int i = 0; i < N; i++) {
            w[i] = 0.875 * w[i] + 0.125 * a[i];
        }
    }
    for (int i = 0; i < N; i++) {
        ret_expected[i] = w[i];
        ret_bound[i] = 1e-4;
    }
}

static const struct workload_variant variants[] = {
    { SELFTEST_VARIANT("unordered", "differs at one place in one run of twenty"),
      .control = true, .compute = compute },
};

static const struct workload selftest_rare_training = {
    .name = "selftest_rare_training",
    .version = 1,
    .backend = "cpu",
    .title = "selftest_rare_training",
    .summary = "a training that parts rarely, at one place",
    WORKLOAD_VARIANTS(variants),
    .sizes = selftest_sizes,
    .size_count = 1,
    WORKLOAD_DTYPES(DTYPE_FLOAT32),
    .weight_sum = "sum of y",
    .setup = selftest_setup,
    .reference = reference,
};
WORKLOAD_REGISTER(selftest_rare_training);
