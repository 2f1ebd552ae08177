/* What tests of cells share: a job of four cases, and runs of them in a few words. */
#ifndef TESTS_UNIT_CELLS_FIXTURE_H
#define TESTS_UNIT_CELLS_FIXTURE_H

#include "tests/unit/store_fixture.h"

enum { UNORDERED, ORDERED, ORDERED_B, FREE };

/* Circumstances that a run can have had. */
static const char contention[] = "{\"contention\":4,\"memory_poison\":\"0badcafe\"}";
static const char poison[] = "{\"memory_poison\":\"0badcafe\"}";

/* Items 0 … 3 of job 1: the control, two of `ordered`, and one that has no control. */
static inline void insert_job(struct fixture *f)
{
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 100),
                                fixture_item("ordered", "cpu:a", 100),
                                fixture_item("ordered", "cpu:b", 100),
                                fixture_item("free", "cpu:a", 100) };
    struct fixture_job j = fixture_job(1, items, 4);

    snprintf(items[FREE].no_control, sizeof items[FREE].no_control, "nothing can vary");
    fixture_write(f, fixture_insert_job, &j);
}

static inline struct fixture_run completed(int n, int item)
{
    return (struct fixture_run){
        .n = n, .job = 1, .item = item, .outcome = OUTCOME_COMPLETED, .environment = 1
    };
}

static inline enum verdict store(struct fixture *f, struct fixture_run r)
{
    fixture_write(f, fixture_whole_run, &r);
    return r.effect.verdict;
}

static inline struct fixture_run varying(int n)
{
    struct fixture_run r = completed(n, UNORDERED);

    r.distinct = 3;
    return r;
}

static inline enum verdict verdict_of(struct fixture *f, const char *variant)
{
    return fixture_cell(f, variant).verdict;
}

#endif
