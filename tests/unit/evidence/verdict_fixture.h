/* What tests of verdicts share: evidence and controls in a few words. */
#ifndef TESTS_UNIT_EVIDENCE_VERDICT_FIXTURE_H
#define TESTS_UNIT_EVIDENCE_VERDICT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/evidence/verdict.h"

static inline struct evidence completed(int64_t runs, int64_t digests)
{
    struct evidence e = { .iterations = runs * 10,
                          .distinct_digests = digests,
                          .devices = 1 };

    e.runs[OUTCOME_COMPLETED] = runs;
    e.completed_since_failure = runs;
    e.checks = (struct checks){ .has_reference = true, .passed = 1 };
    return e;
}

static const struct control control_varied = { .runs = 5,
                                               .differed = true,
                                               .varied = true,
                                               .right = true,
                                               .conditions = "",
                                               .own_runs = 5 };
static const struct control control_flat = { .runs = 5 };
static const struct control control_missing = { .runs = 0 };
static const struct control is_control = { .is_control = true, .runs = 5 };

#endif
