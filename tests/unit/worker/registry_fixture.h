/* What tests of the registry share: workloads that are sound, to be broken one by one. */
#ifndef TESTS_UNIT_WORKER_REGISTRY_FIXTURE_H
#define TESTS_UNIT_WORKER_REGISTRY_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workloads/worker/registry.h"

static inline void setup(struct run *run)
{
    (void)run;
}

static inline void reference(const struct run *run, const struct tensor *inputs,
                             const struct tensor *output, double *ret_expected,
                             double *ret_bound)
{
    (void)run;
    (void)inputs;
    (void)output;
    (void)ret_expected;
    (void)ret_bound;
}

/* A sound workload, every part of which a test may break. */
struct sample {
    struct workload workload;
    struct workload_variant variants[2];
    struct workload_size sizes[2];
    struct workload_reference references[2];
};

static inline void sample_init(struct sample *s, const char *name)
{
    *s = (struct sample){
        .variants = { { .name = "unordered",
                        .summary = "s",
                        .models = "m",
                        .algorithm = "a",
                        .control = true,
                        .compute = setup },
                      { .name = "ordered",
                        .summary = "s",
                        .models = "m",
                        .algorithm = "a",
                        .compute = setup } },
        .sizes = { { .name = "small", .description = "d" },
                   { .name = "large", .description = "d" } },
        .references = { { .kind = "issue", .id = "i", .title = "t", .url = "https://u" },
                        { .kind = "commit",
                          .id = "j",
                          .title = "t",
                          .url = "https://u",
                          .state = "open 2020-06" } },
        .workload = { .name = name,
                      .version = 1,
                      .backend = "cpu",
                      .title = "t",
                      .summary = "s",
                      .variant_count = 2,
                      .size_count = 2,
                      .dtypes = { DTYPE_FLOAT32, DTYPE_FLOAT64 },
                      .dtype_count = 2,
                      .weight_sum = "w",
                      .reference_count = 2,
                      .setup = setup,
                      .reference = reference },
    };
    s->workload.variants = s->variants;
    s->workload.sizes = s->sizes;
    s->workload.references = s->references;
}

/* The number of defects of LIST; their text in ret_text. */
static inline int defects_of(const struct workload *const *list, int count,
                             char ret_text[4096])
{
    struct registry registry;
    FILE *out = fmemopen(ret_text, 4096, "w");
    int defects;
    assert_non_null(out);
    defects = registry_init(&registry, list, list + count, out);
    fclose(out);
    registry_release(&registry);
    return defects;
}

static inline void expect_defect(const struct sample *s, const char *text)
{
    char found[4096] = "";
    const struct workload *list[] = { &s->workload };
    int defects = defects_of(list, 1, found);
    if (defects != 1 || !strstr(found, text)) {
        fail_msg("wanted one defect '%s', got %d: %s", text, defects, found);
    }
}

static inline void other_setup(struct run *run)
{
    (void)run;
}

/* As a .cu file declares it: variants and setup, the rest from the CPU. */
static inline void sample_init_cuda(struct sample *s, const char *name)
{
    sample_init(s, name);
    s->workload = (struct workload){ .name = name,
                                     .version = 3,
                                     .backend = "cuda",
                                     .variants = s->variants,
                                     .variant_count = 2,
                                     .setup = other_setup };
}

#endif
