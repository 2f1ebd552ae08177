/* What tests of cells share: a job of a few cases, and runs of them in a few words. */
#ifndef TESTS_UNIT_DB_CELLS_FIXTURE_H
#define TESTS_UNIT_DB_CELLS_FIXTURE_H

#include "tests/unit/db/store_fixture.h"

/* Circumstances that a run can have had. */
static const char contention[] = "{\"contention\":4,\"memory_poison\":\"0badcafe\"}";
static const char poison[] = "{\"memory_poison\":\"0badcafe\"}";

enum {
    UNORDERED,
    ORDERED,
    ORDERED_B,
    FREE,
    UNORDERED_B,
    UNORDERED_LOADED,
    ORDERED_LOADED,
    UNORDERED_ONES, /* fixed poison */
    UNORDERED_TWOS,
    ORDERED_ONES,
    ITEMS
};

static const struct {
    const char *variant, *device, *options;
} asked[ITEMS] = {
    [UNORDERED] = { "unordered", "cpu:a", "" },
    [ORDERED] = { "ordered", "cpu:a", "" },
    [ORDERED_B] = { "ordered", "cpu:b", "" },
    [FREE] = { "free", "cpu:a", "" },
    [UNORDERED_B] = { "unordered", "cpu:b", "" },
    [UNORDERED_LOADED] = { "unordered", "cpu:a", "{\"contention\":4}" },
    [ORDERED_LOADED] = { "ordered", "cpu:a", "{\"contention\":4}" },
    [UNORDERED_ONES] = { "unordered", "cpu:a", "{\"memory-poison\":\"11111111\"}" },
    [UNORDERED_TWOS] = { "unordered", "cpu:a", "{\"memory-poison\":\"22222222\"}" },
    [ORDERED_ONES] = { "ordered", "cpu:a", "{\"memory-poison\":\"11111111\"}" },
};

/* Job 1 with an item each. */
static inline void insert_job(struct fixture *f)
{
    struct job_item items[ITEMS];
    struct fixture_job j = fixture_job(1, items, ITEMS);

    for (int i = 0; i < ITEMS; i++) {
        items[i] = fixture_item(asked[i].variant, asked[i].device, 100);
        run_options_read(asked[i].options, &items[i].options);
    }
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

/* Two runs, N and a late one: two digests of the control pass. */
static inline enum verdict vary(struct fixture *f, int n)
{
    store(f, varying(n));
    return store(f, varying(n + 900));
}

static inline enum verdict verdict_of(struct fixture *f, const char *variant)
{
    return fixture_cell(f, variant).verdict;
}

#endif
