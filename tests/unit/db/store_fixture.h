/* What tests of db/ share: a store in a folder of its own, jobs and runs in a few words.
 * Functions assert success themselves; a test that expects a failure calls the store. */
#ifndef TESTS_UNIT_DB_STORE_FIXTURE_H
#define TESTS_UNIT_DB_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "db/cells.h"
#include "db/cells_rows.h"
#include "db/integrity/checksums.h"
#include "db/jobs.h"
#include "db/runs.h"
#include "db/store.h"

struct fixture {
    char directory[64];
    char path[96];
    struct store *store;
};

static const struct store_options fixture_options = { .readers = 2,
                                                      .busy_timeout_ms = 2000 };

static inline void fixture_open(struct fixture *f)
{
    struct err err = { .message = "" };

    if (store_open(f->path, &fixture_options, &f->store, &err) != ERR_OK) {
        fail_msg("store_open: %s", err.message);
    }
}

static inline void fixture_close(struct fixture *f)
{
    store_close(f->store);
    f->store = NULL;
}

/* Makes the folder, in $TMPDIR if that is short; opens nothing. */
static inline struct fixture *fixture_new(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    const char *folder = getenv("TMPDIR");

    assert_non_null(f);
    snprintf(f->directory, sizeof f->directory, "%s/reprod-test-XXXXXX",
             folder && strlen(folder) < 30 ? folder : "/tmp");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->path, sizeof f->path, "%s/reprod.db", f->directory);
    return f;
}

static inline void fixture_free(struct fixture *f)
{
    char command[96];

    fixture_close(f);
    snprintf(command, sizeof command, "rm -rf %s", f->directory);
    assert_int_equal(system(command), 0);
    free(f);
}

/* Of one that is closed: the next one that is opened is new. */
static inline void fixture_remove(const struct fixture *f)
{
    char witness[112];

    snprintf(witness, sizeof witness, "%s-seq", f->path);
    remove(f->path);
    remove(witness);
}

static inline int fixture_setup(void **state)
{
    struct fixture *f = fixture_new();

    fixture_open(f);
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

/* TEST gets a store of its own. */
#define STORE_TEST(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

static inline void fixture_write(struct fixture *f, store_fn fn, void *arg)
{
    struct err err = { .message = "" };

    if (store_write_sync(f->store, fn, arg, &err) != ERR_OK) {
        fail_msg("write: %s", err.message);
    }
}

static inline void fixture_read(struct fixture *f, store_fn fn, void *arg)
{
    struct err err = { .message = "" };

    if (store_read_sync(f->store, fn, arg, &err) != ERR_OK) {
        fail_msg("read: %s", err.message);
    }
}

/* After a test edited cells: as if reprod had stored them so. */
#define FIXTURE_SEAL_CELLS "UPDATE cell SET sum = reprod_sum(" CELL_SUM("") ")"

/* The Nth id of its KIND (a letter). */
static inline void fixture_id(char kind, int n, char ret_id[ID_SIZE])
{
    snprintf(ret_id, ID_SIZE, "01%c%023d", kind, n);
}

static inline struct job_item fixture_item(const char *variant, const char *device,
                                           int runs)
{
    struct job_item item = { .key = { .version = 1, .seed = 1 }, .runs_wanted = runs };

    snprintf(item.key.workload, sizeof item.key.workload, "conv_wgrad");
    snprintf(item.key.variant, sizeof item.key.variant, "%s", variant);
    snprintf(item.key.size, sizeof item.key.size, "small");
    snprintf(item.key.dtype, sizeof item.key.dtype, "float32");
    snprintf(item.device, sizeof item.device, "%s", device);
    snprintf(item.stack, sizeof item.stack, "cpu");
    item.is_control = strcmp(variant, "unordered") == 0;
    return item;
}

struct fixture_job {
    struct job job;
    const char *key; /* idempotency key, or NULL */
    char existing[ID_SIZE];
};

static inline enum err_code fixture_insert_job(struct tx *tx, void *arg, struct err *err)
{
    struct fixture_job *j = arg;

    return jobs_insert(tx, &j->job, j->key, j->existing, err);
}

/* Job N, made at second N. */
static inline struct fixture_job fixture_job(int n, struct job_item *items, int count)
{
    static char request[] = "{}";
    struct fixture_job j = { .job = { .iterations = 10,
                                      .timeout_ms = 60000,
                                      .created_ms = n * 1000,
                                      .request = request,
                                      .items = items,
                                      .item_count = count } };

    fixture_id('J', n, j.job.id);
    return j;
}

/* A run: number N (its id, and its times in seconds), of item ITEM of job JOB. */
struct fixture_run {
    int n, job, item;
    enum outcome outcome;
    int environment; /* 0: never said */
    int digest;      /* of the first iteration; the others follow it */
    int distinct;    /* how many; 0: as 1 */
    int input;       /* its input digest */
    int sum, loss;   /* added to the bits of its sums; loss 0: none */
    int elements;    /* 0: 64 */
    bool untimed;    /* its iterations took no time that could be measured */
    const char *telemetry_start, *telemetry_end;
    const struct trace *trace; /* NULL: none */
    const char *circumstances; /* NULL: none */
    const char *algorithm;     /* NULL: "tree"; "": it says none */
    const char *claim;         /* of the library; NULL: none */
    const struct captured_tensor *tensors;
    int tensor_count;
    enum check_state check;        /* if it was asked; CHECK_NONE: it passed */
    char passed[DIGEST_TEXT_SIZE]; /* told when it began */
    uint64_t seed;                 /* of a challenge, if it is due; 0: none */
    bool is_challenge;             /* it was due */
    struct run_effect effect;
};

enum { FIXTURE_ITERATIONS = 10, FIXTURE_DISTINCT_MAX = 10 };

static inline enum err_code fixture_begin(struct tx *tx, void *arg, struct err *err)
{
    struct fixture_run *r = arg;
    struct run_intent intent = { .item = r->item,
                                 .intent_ms = r->n * 1000,
                                 .offer = { .seed = r->seed, .needed = true } };

    fixture_id('R', r->n, intent.id);
    fixture_id('J', r->job, intent.job);
    if (runs_begin(tx, &intent, err) != ERR_OK) {
        return err->code;
    }
    snprintf(r->passed, sizeof r->passed, "%s", intent.passed);
    r->is_challenge = intent.challenge != 0;
    return ERR_OK;
}

static inline enum err_code fixture_start(struct tx *tx, void *arg, struct err *err)
{
    const struct fixture_run *r = arg;
    char id[ID_SIZE];

    fixture_id('R', r->n, id);
    return runs_started(tx, id, 100 + r->n, 7, "boot", r->n * 1000 + 10, err);
}

/* As a worker does it: of the first digest that did not pass before. */
static inline struct run_check fixture_check(const struct fixture_run *r)
{
    struct run_check check = { .state = r->check ? r->check : CHECK_PASSED };

    if (check.state == CHECK_PASSED || check.state == CHECK_FAILED) {
        snprintf(check.digest, sizeof check.digest, "%032x", r->digest);
        if (strcmp(check.digest, r->passed) == 0 && r->distinct < 2) {
            return (struct run_check){ .state = CHECK_KNOWN };
        }
        if (strcmp(check.digest, r->passed) == 0) {
            snprintf(check.digest, sizeof check.digest, "%032x", r->digest + 1);
        }
    }
    check.share_ppm = check.state == CHECK_PASSED ? 1000 * r->n : 0;
    snprintf(check.words, sizeof check.words, "y[%d]", r->n);
    return check;
}

static inline struct run_record fixture_result(const struct fixture_run *r,
                                               const char *device,
                                               struct run_digest *ret_digests,
                                               int *ret_count)
{
    struct run_record run = { .outcome = r->outcome, .finished_ms = r->n * 1000 + 900 };
    int distinct = r->distinct ? r->distinct : 1;

    fixture_id('R', r->n, run.id);
    snprintf(run.circumstances, sizeof run.circumstances, "%s",
             r->circumstances ? r->circumstances : "");
    if (r->environment) {
        snprintf(run.environment, sizeof run.environment, "%032x", r->environment);
    }
    if (r->outcome != OUTCOME_COMPLETED) {
        snprintf(run.cause, sizeof run.cause, "because of \"%s\"",
                 outcome_name(r->outcome));
        run.check.state = r->check;
        run.iterations = 3; /* so far it came */
        *ret_count = 0;
        return run;
    }
    run.check = fixture_check(r);
    run.iterations = FIXTURE_ITERATIONS;
    run.distinct_digests = distinct;
    for (int i = 0; i < distinct; i++) {
        snprintf(ret_digests[i].digest, DIGEST_TEXT_SIZE, "%032x", r->digest + i);
        ret_digests[i].first_iteration = i;
        ret_digests[i].iterations = i ? 1 : FIXTURE_ITERATIONS - distinct + 1;
    }
    *ret_count = distinct;
    snprintf(run.digest, sizeof run.digest, "%032x", r->digest);
    snprintf(run.input_digest, sizeof run.input_digest, "%032x", 0x100 + r->input);
    snprintf(run.weight_sum, sizeof run.weight_sum, "%016x", r->digest + r->sum);
    snprintf(run.loss, r->loss ? sizeof run.loss : 1, "%016x", r->loss);
    snprintf(run.algorithm, sizeof run.algorithm, "%s",
             r->algorithm ? r->algorithm : "tree");
    snprintf(run.claim, sizeof run.claim, "%s", r->claim ? r->claim : "");
    snprintf(run.device_read_back, sizeof run.device_read_back, "%s", device);
    run.min_ns = r->untimed ? 0 : 1000 + r->n;
    run.median_ns = r->untimed ? 0 : 2000 + r->n;
    run.max_ns = r->untimed ? 0 : 3000 + r->n;
    run.elements = r->elements ? r->elements : 64;
    run.bytes_hashed = 2560;
    run.wall_ns = 5000000;
    run.max_rss_kb = 1000;
    return run;
}

static inline enum err_code fixture_finish(struct tx *tx, void *arg, struct err *err)
{
    struct fixture_run *r = arg;
    struct run_digest digests[FIXTURE_DISTINCT_MAX];
    struct run_record before;
    struct run_record run;
    struct run_result result = { .run = &run,
                                 .digests = digests,
                                 .environment_title = "this machine",
                                 .telemetry_start = r->telemetry_start,
                                 .telemetry_end = r->telemetry_end,
                                 .trace = r->trace,
                                 .tensors = r->tensors,
                                 .tensor_count = r->tensor_count,
                                 .log = "hello",
                                 .log_length = 5,
                                 .log_bytes = 5 };
    char id[ID_SIZE];

    fixture_id('R', r->n, id);
    if (runs_get(tx, id, &before, err) != ERR_OK) {
        return err->code;
    }
    run = fixture_result(r, before.device, digests, &result.digest_count);
    if (r->environment) {
        result.environment_json = "{\"backend\":\"cpu\"}";
        result.libraries_json = "[]";
    }
    return runs_finish(tx, &result, &r->effect, err);
}

static inline enum err_code fixture_whole_run(struct tx *tx, void *arg, struct err *err)
{
    if (fixture_begin(tx, arg, err) != ERR_OK) {
        return err->code;
    }
    return fixture_finish(tx, arg, err);
}

struct fixture_cell {
    int64_t id; /* 0: by variant, in environment 1 */
    const char *variant;
    struct cell cell;
    bool found;
};

static inline void fixture_match_cell(void *arg, const struct cell *cell)
{
    struct fixture_cell *c = arg;

    if (strcmp(cell->key.variant, c->variant) == 0) {
        c->cell = *cell;
        c->found = true;
    }
}

static inline enum err_code fixture_find_cell(struct tx *tx, void *arg, struct err *err)
{
    return cells_each(tx, "00000000000000000000000000000001", 0, fixture_match_cell, arg,
                      err);
}

/* The cell of VARIANT in environment 1. */
static inline struct cell fixture_cell(struct fixture *f, const char *variant)
{
    struct fixture_cell c = { .variant = variant };

    fixture_read(f, fixture_find_cell, &c);
    assert_true(c.found);
    return c.cell;
}

static inline void fixture_print_difference(void *arg, int64_t cell, const char *what)
{
    (void)arg;
    printf("cell %ld: %s\n", (long)cell, what);
}

static inline enum err_code fixture_recompute(struct tx *tx, void *arg, struct err *err)
{
    int64_t *counts = arg;

    return cells_recompute(tx, fixture_print_difference, NULL, &counts[0], &counts[1],
                           err);
}

/* Cells as stored are what the stored runs give. */
static inline void fixture_damaged(void *arg, const char *table, const char *key,
                                   int64_t cell)
{
    (void)arg;
    (void)cell;
    fail_msg("%s %s is not what was stored", table, key);
}

static inline enum err_code fixture_check_sums(struct tx *tx, void *arg, struct err *err)
{
    return checksums_check(tx, fixture_damaged, NULL, arg, err);
}

static inline void fixture_check_cells(struct fixture *f)
{
    int64_t counts[2];

    fixture_read(f, fixture_check_sums, counts);
    assert_true(counts[0] > 0);
    fixture_read(f, fixture_recompute, counts);
    assert_int_equal(counts[1], 0);
}

#endif
