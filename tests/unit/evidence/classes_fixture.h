/* What tests of digest classes share: columns and cells in a few words. */
#ifndef TESTS_UNIT_EVIDENCE_CLASSES_FIXTURE_H
#define TESTS_UNIT_EVIDENCE_CLASSES_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/mem.h"
#include "daemon/evidence/classes.h"

/* COUNT environments, each with another driver. */
static inline struct classes fixture_classes(int count)
{
    struct class_column *columns = xcalloc((size_t)count + 1, sizeof *columns);
    struct classes classes;

    for (int i = 0; i < count; i++) {
        snprintf(columns[i].id, sizeof columns[i].id, "%032d", i);
        columns[i].facts = json_pack("{s:s, s:o}", "backend", "cuda", "driver",
                                     json_sprintf("%d.1", 600 - i));
        columns[i].first_ms = INT64_C(1800000000000) - i;
        columns[i].members = 1;
    }
    classes_init(&classes, columns, count);
    return classes;
}

/* COUNT devices, PER_HOST on each host. */
static inline struct classes fixture_devices(int count, int per_host)
{
    struct class_column *columns = xcalloc((size_t)count + 1, sizeof *columns);
    struct classes classes;

    for (int i = 0; i < count; i++) {
        snprintf(columns[i].id, sizeof columns[i].id, "GPU-%04d", i);
        snprintf(columns[i].host, sizeof columns[i].host, "host-%04d", i / per_host);
        snprintf(columns[i].model, sizeof columns[i].model, "NVIDIA H100");
        columns[i].members = 1;
    }
    classes_init(&classes, columns, count);
    return classes;
}

/* Case number N; DIGEST 0: it varies. */
static inline void fixture_add(struct classes *classes, int column, int n, int digest,
                               enum verdict verdict)
{
    struct class_cell cell = { .id = 1000 * n + column + 1,
                               .verdict = verdict,
                               .runs = 5,
                               .distinct_digests = digest ? 1 : 2,
                               .key = { .version = 1, .seed = 1 } };

    snprintf(cell.key.workload, sizeof cell.key.workload, "workload_%03d", n / 4);
    snprintf(cell.key.variant, sizeof cell.key.variant, "variant_%d", n % 4);
    snprintf(cell.key.size, sizeof cell.key.size, "small");
    snprintf(cell.key.dtype, sizeof cell.key.dtype, "float32");
    if (digest) {
        snprintf(cell.digest, sizeof cell.digest, "%032x", digest);
    }
    classes_add(classes, column, &cell);
}

#endif
