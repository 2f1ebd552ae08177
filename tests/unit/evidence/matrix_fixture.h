/* What tests of the matrix share: the built-in tables, and cells to put into them. */
#ifndef TESTS_UNIT_EVIDENCE_MATRIX_FIXTURE_H
#define TESTS_UNIT_EVIDENCE_MATRIX_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/mem.h"
#include "daemon/evidence/matrix.h"

enum { DAY_MS = 86400000 };
static const int64_t now_ms = INT64_C(1800000000000);

static struct profile_set *set;

static inline int load_profiles(void **state)
{
    struct err err;

    (void)state;
    return profile_set_load(NULL, &set, &err);
}

static inline int free_profiles(void **state)
{
    (void)state;
    profile_set_free(set);
    return 0;
}

static inline struct cell cell_of(const char *workload, const char *variant,
                                  enum verdict verdict, int64_t id)
{
    struct cell c = {
        .id = id, .verdict = verdict, .median_ns_sum = 5000000 * 5, .times.runs = 5
    };

    copy_text(c.key.workload, sizeof c.key.workload, workload);
    copy_text(c.key.variant, sizeof c.key.variant, variant);
    copy_text(c.key.size, sizeof c.key.size, "small");
    copy_text(c.key.dtype, sizeof c.key.dtype, "float32");
    copy_text(c.reason, sizeof c.reason, "because it is so");
    copy_text(c.digest, sizeof c.digest, "00112233445566778899aabbccddeeff");
    c.key.version = 1;
    c.key.seed = 1;
    c.evidence.runs[OUTCOME_COMPLETED] = 5;
    c.evidence.iterations = 50;
    c.evidence.devices = 1;
    c.evidence.distinct_digests = verdict == VERDICT_VARIES ? 9 : 1;
    c.evidence.varied = verdict == VERDICT_VARIES;
    c.evidence.challenges.passed = 1; /* it is a command, since it has no reference */
    c.evidence.last_completed_ms = now_ms - DAY_MS;
    c.vouched_ms = c.evidence.last_completed_ms;
    c.changed_ms = now_ms - 2 * (int64_t)DAY_MS;
    return c;
}

static inline struct matrix begin(bool historic, int64_t stale_after_ms)
{
    struct matrix m;

    matrix_init(&m, profile_set_find(set, "documents-2020"), NULL, now_ms, historic,
                stale_after_ms);
    return m;
}

static inline void add(struct matrix *m, const char *workload, const char *variant,
                       enum verdict verdict, int64_t id)
{
    struct cell c = cell_of(workload, variant, verdict, id);

    matrix_add(m, &c);
}

/* The row of our model of it. */
static inline int row_of(const struct matrix *m, const char *workload)
{
    for (int r = 0; r < m->table->row_count; r++) {
        if (m->table->rows[r].subject == SUBJECT_MODEL &&
            strcmp(m->table->rows[r].workload, workload) == 0) {
            return r;
        }
    }
    fail_msg("no row %s", workload);
    return -1;
}

static inline const struct solution *at(const struct matrix *m, const char *workload,
                                        int column)
{
    return matrix_solution(m, row_of(m, workload), column);
}

#endif
