/* Self-test workloads: computations that behave and, mostly, misbehave, to show that
 * nothing but an honest run is ever counted.  Linked into reprod-worker-selftest only.
 *
 * Each has a control that varies from process to process ("unordered"), so that the
 * misbehaving variant is the only thing between its cell and `reproducible`.  Their case
 * is one input x and one output y = 2 x of 64 float32 values. */
#ifndef TESTS_SELFTEST_SELFTEST_H
#define TESTS_SELFTEST_SELFTEST_H

#include "workloads/workload.h"

enum { SELFTEST_ELEMENTS = 64 };

/* Hooks that do what they must. */
void selftest_setup(struct run *run);
void selftest_compute(struct run *run);
void selftest_reference(const struct run *run, const struct tensor *inputs,
                        const struct tensor *output, double *ret_expected,
                        double *ret_bound);

/* selftest_compute, then entropy from the kernel in the first element, which the
 * reference allows. */
void selftest_compute_varying(struct run *run);

uint64_t selftest_entropy(void);

/* As far as the compiler knows, somebody reads MEMORY. */
void selftest_keep(const void *memory);

/* Whether RUN is the control, which behaves. */
bool selftest_is_control(const struct run *run);

/* Bytes to the result descriptor, past the worker. */
void selftest_write(const void *bytes, size_t count);
void selftest_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whole events as the worker would write them, but for what CLAIMS has that is false. */
struct selftest_claims {
    const char *device; /* NULL: the right one */
    int iterations;
    int64_t elements, bytes;
};
struct selftest_claims selftest_honest_claims(struct run *run);
/* What stands behind "telemetry" in the whole events, JSON; NULL: they have none. */
extern const char *selftest_telemetry;
void selftest_write_start(struct run *run, const char *device);
void selftest_write_iteration(int index);
void selftest_write_end(struct run *run, const struct selftest_claims *claims);

extern const struct workload_size selftest_sizes[1];

#define SELFTEST_CONTROL                                                                 \
    {                                                                                    \
        .name = "unordered", .summary = "correct but for one random element",            \
        .models = "a healthy control", .algorithm = "random", .control = true,           \
        .compute = selftest_compute_varying                                              \
    }

#define SELFTEST_VARIANT(variant, does)                                                  \
    .name = (variant), .summary = (does), .models = "self-test", .algorithm = "self-test"

#define SELFTEST_WORKLOAD(ident, does, variants_)                                        \
    SELFTEST_REFERENCED(ident, does, variants_, selftest_reference)
#define SELFTEST_REFERENCED(ident, does, variants_, reference_)                          \
    .name = #ident, .version = 1, .backend = "cpu", .title = #ident, .summary = (does),  \
    .variants = (variants_), .variant_count = COUNT_OF(variants_),                       \
    .sizes = selftest_sizes, .size_count = 1, .dtypes = { DTYPE_FLOAT32 },               \
    .dtype_count = 1, .weight_sum = "sum of y", .reference = (reference_)

/* The whole of a workload whose variant "ordered" misbehaves in its compute hook. */
#define SELFTEST_COMPUTE(ident, does, compute_)                                          \
    static const struct workload_variant ident##_variants[] = {                          \
        SELFTEST_CONTROL,                                                                \
        { SELFTEST_VARIANT("ordered", does), .compute = (compute_) },                    \
    };                                                                                   \
    static const struct workload ident = {                                               \
        SELFTEST_WORKLOAD(ident, does, ident##_variants), .setup = selftest_setup        \
    };                                                                                   \
    WORKLOAD_REGISTER(ident)

#endif
