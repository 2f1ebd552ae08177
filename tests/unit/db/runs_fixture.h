/* What tests of runs share: a job of three cases, and runs in a few words. */
#ifndef TESTS_UNIT_DB_RUNS_FIXTURE_H
#define TESTS_UNIT_DB_RUNS_FIXTURE_H

#include "tests/unit/db/store_fixture.h"

static inline void insert_job(struct fixture *f)
{
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 50),
                                fixture_item("ordered", "cpu:a", 50),
                                fixture_item("ordered", "cpu:b", 50) };
    struct fixture_job j = fixture_job(1, items, 3);

    fixture_write(f, fixture_insert_job, &j);
}

static inline struct fixture_run completed(int n, int item)
{
    return (struct fixture_run){
        .n = n, .job = 1, .item = item, .outcome = OUTCOME_COMPLETED, .environment = 1
    };
}

struct got {
    int n;
    struct run_record run;
    struct run_digest digests[FIXTURE_DISTINCT_MAX];
    int digest_count;
    char *log;
    int64_t log_length, log_written;
};

static inline void collect_digest(void *arg, const struct run_digest *digest)
{
    struct got *g = arg;

    g->digests[g->digest_count++] = *digest;
}

static inline enum err_code get(struct tx *tx, void *arg, struct err *err)
{
    struct got *g = arg;
    char id[ID_SIZE];

    fixture_id('R', g->n, id);
    if (runs_get(tx, id, &g->run, err) != ERR_OK ||
        runs_each_digest(tx, id, collect_digest, g, err) != ERR_OK) {
        return err->code;
    }
    return runs_log(tx, id, &g->log, &g->log_length, &g->log_written, err);
}

#endif
