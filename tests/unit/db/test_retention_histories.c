/* Runs that are folded count as they did: whatever is stored before or after, in whatever
 * order, a database in which runs are folded says the same as its twin. */
#include "tests/unit/db/orders_fixture.h"
#include "tests/unit/db/retention_fixture.h"

#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "db/inputs.h"
#include "db/upkeep/retention.h"
#include "db/upkeep/summaries.h"

enum {
    DATABASES = 2,  /* at most; REPROD_TEST_DATABASES: so many */
    HISTORIES = 20, /* in each, of cases of their own */
    JOBS = 3,
    JOB_ITEMS = 4,
    RUNS_MAX = 150,
    STEPS_MAX = 2 * RUNS_MAX
};

/* A small generator, so that a failure can be repeated. */
static bool one_in(uint32_t *state, uint32_t n)
{
    return next_random(state) % n == 0;
}

/* All rows of what is not a run. */
static const char *const tables[] = {
    "cell",       "cell_digest",  "cell_device",
    "cell_alike", "cell_time",    "cell_history",
    "case_input", "job",          "job_item",
    "event",      "environment",  "input_decision",
    "case_key",   "localisation", "device_stack_environment"
};

static enum err_code print_table(struct tx *tx, const char *table, struct buf *out,
                                 struct err *err)
{
    char sql[96];
    sqlite3_stmt *rows;
    int rc;

    snprintf(sql, sizeof sql, "SELECT * FROM %s ORDER BY 1, 2, 3", table);
    rc = sqlite3_prepare_v2(tx->db, sql, -1, &rows, NULL);
    if (rc != SQLITE_OK) {
        return tx_error(tx->db, rc, err);
    }
    while (sqlite3_step(rows) == SQLITE_ROW) {
        buf_printf(out, "%s:", table);
        for (int i = 0; i < sqlite3_column_count(rows); i++) {
            const char *text = (const char *)sqlite3_column_text(rows, i);

            buf_printf(out, " %s", text ? text : "NULL");
        }
        buf_putc(out, '\n');
    }
    rc = sqlite3_finalize(rows);
    return rc == SQLITE_OK ? ERR_OK : tx_error(tx->db, rc, err);
}

static enum err_code print_tables(struct tx *tx, void *arg, struct err *err)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (print_table(tx, tables[i], arg, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

static char *tables_of(struct fixture *f)
{
    struct buf out = BUF_INIT;

    fixture_read(f, print_tables, &out);
    return buf_detach(&out, NULL);
}

static void assert_twins(struct fixture *whole, struct fixture *folded, uint32_t seed)
{
    char *a = tables_of(whole);
    char *b = tables_of(folded);

    if (strcmp(a, b) != 0) {
        size_t at = 0;

        while (a[at] == b[at]) {
            at++;
        }
        while (at > 0 && a[at - 1] != '\n') {
            at--;
        }
        fail_msg("history %u: %.300s\n... instead of %.300s", seed, b + at, a + at);
    }
    free(a);
    free(b);
}

/* What happens, the same to both. */

struct history {
    uint32_t random, seed;
    int nth; /* of those in the same database */
    struct fixture *whole, *folded;
    struct fixture_run runs[RUNS_MAX];
    int count;
    struct step {
        enum { STEP_RUN, STEP_DECIDE, STEP_FOLD } kind;
        struct fixture_run run;
        const char *inputs; /* decided */
        struct retention retention;
    } steps[STEPS_MAX];
    int step_count;
    int64_t runs_folded;
};

static void both(struct history *h, store_fn fn, void *arg)
{
    fixture_write(h->whole, fn, arg);
    fixture_write(h->folded, fn, arg);
}

static void insert_jobs(struct history *h)
{
    static const char *const variants[] = { "unordered", "ordered", "free" };
    static const char *const options[] = { "", "", "", "{\"contention\":4}" };

    for (int n = 1; n <= JOBS; n++) {
        struct job_item items[JOB_ITEMS];
        int number = h->nth * JOBS + n;
        struct fixture_job j = fixture_job(number, items, JOB_ITEMS);

        for (int i = 0; i < JOB_ITEMS; i++) {
            const char *variant = variants[i % 3];
            int wanted = 3 + (int)(next_random(&h->random) % 18);

            items[i] =
                fixture_item(variant, one_in(&h->random, 6) ? "cpu:b" : "cpu:a", wanted);
            items[i].seq = i;
            items[i].key.seed = h->seed;
            run_options_read(options[next_random(&h->random) % 4], &items[i].options);
            if (i % 3 == 2) {
                snprintf(items[i].no_control, sizeof items[i].no_control, "none");
            }
            j.job.runs_total += wanted;
            for (int r = 0; r < wanted && h->count < RUNS_MAX; r++) {
                h->runs[h->count++] = (struct fixture_run){ .job = number, .item = i };
            }
        }
        both(h, fixture_insert_job, &j);
    }
}

/* Of some variant: mostly alike, sometimes not. */
static void make_run(struct history *h, struct fixture_run *r)
{
    static const enum outcome others[] = { OUTCOME_CRASHED, OUTCOME_LOST, OUTCOME_TIMEOUT,
                                           OUTCOME_INVALID, OUTCOME_INFRA };
    int variant = r->item % 3;

    r->outcome =
        one_in(&h->random, 30) ? others[next_random(&h->random) % 5] : OUTCOME_COMPLETED;
    r->environment = one_in(&h->random, 15) ? 2 : 1;
    r->circumstances = one_in(&h->random, 15) ? "{\"contention\":4}" : NULL;
    r->input = one_in(&h->random, h->seed % 3 ? 60 : 4);
    if (variant == 0) {
        r->digest = (int)(next_random(&h->random) % 3);
        r->distinct = one_in(&h->random, 15) ? 2 : 1;
    } else if (one_in(&h->random, 25)) {
        r->digest = 1;
    }
    r->check = one_in(&h->random, 20) ? CHECK_GIVEN_UP : CHECK_NONE;
}

/* The ids ascend with time, the ends do not: a run ends long after later ones. */
static void shuffle(struct history *h)
{
    int n = DAY / HISTORIES;

    for (int i = h->count - 1; i > 0; i--) {
        int j = (int)(next_random(&h->random) % (uint32_t)(i + 1));
        struct fixture_run kept = h->runs[i];

        h->runs[i] = h->runs[j];
        h->runs[j] = kept;
    }
    for (int i = 0; i < h->count; i++) {
        n += (int)(next_random(&h->random) % (DAY / 8 / HISTORIES)) + 1;
        h->runs[i].n = n * HISTORIES + h->nth;
    }
    for (int i = 0; i + 6 < h->count; i++) { /* and their order of arrival */
        int j = i + (int)(next_random(&h->random) % 6);
        struct fixture_run kept = h->runs[i];

        if (one_in(&h->random, 3)) {
            h->runs[i] = h->runs[j];
            h->runs[j] = kept;
        }
    }
}

static enum err_code fold_all(struct tx *tx, const struct retention *retention,
                              int64_t *runs_folded, struct err *err)
{
    struct retention_place place = { .finished = false };

    while (!place.finished) {
        if (retention_fold(tx, retention, FAR_MS, &place, err) != ERR_OK) {
            return err->code;
        }
    }
    *runs_folded += place.folded;
    return ERR_OK;
}

static enum err_code decide(struct tx *tx, int64_t seed, const char *digest,
                            struct err *err)
{
    struct err ignored;
    int64_t siblings = 0;

    /* Refused where no run has such inputs, before anything is changed. */
    if (tx_fetch_int(tx, &siblings, err,
                     "SELECT min(siblings) FROM case_key WHERE seed = ?",
                     seed) != ERR_OK) {
        return err->code;
    }
    return case_inputs_decide(tx, siblings, digest, "seen", 5000, &ignored) == ERR_OK ||
                   strncmp(ignored.message, "no run of case", 14) == 0
               ? ERR_OK
               : (*err = ignored).code;
}

static void plan(struct history *h)
{
    static const char *const inputs[] = { "", "00000000000000000000000000000100",
                                          "00000000000000000000000000000101" };

    for (int i = 0; i < h->count; i++) {
        make_run(h, &h->runs[i]);
        h->steps[h->step_count++] = (struct step){ .kind = STEP_RUN, .run = h->runs[i] };
        if (one_in(&h->random, 12)) {
            h->steps[h->step_count++] = (struct step){
                .kind = STEP_FOLD,
                .retention = { .days = 1 + (int)(next_random(&h->random) % 3),
                               .runs = 1 + (int)(next_random(&h->random) % 4),
                               .at_once = 3 + (int)(next_random(&h->random) % 40) }
            };
        } else if (one_in(&h->random, 30)) {
            h->steps[h->step_count++] =
                (struct step){ .kind = STEP_DECIDE,
                               .inputs = inputs[next_random(&h->random) % 3] };
        }
    }
    h->steps[h->step_count++] =
        (struct step){ .kind = STEP_FOLD, .retention = { 1, 1, 50 } };
}

static enum err_code whole_run(struct tx *tx, const struct fixture_run *r,
                               struct err *err)
{
    struct fixture_run run = *r;

    if (fixture_begin(tx, &run, err) != ERR_OK) {
        return err->code == ERR_CONFLICT ? ERR_OK : err->code; /* the job is over */
    }
    return fixture_finish(tx, &run, err);
}

/* Part of a history, in one transaction. */
struct part {
    struct history *history;
    int from, end;
    bool folds;
};

static enum err_code take_steps(struct tx *tx, void *arg, struct err *err)
{
    const struct part *part = arg;
    enum err_code code = ERR_OK;

    for (int i = part->from; i < part->end && code == ERR_OK; i++) {
        const struct step *step = &part->history->steps[i];

        if (step->kind == STEP_RUN) {
            code = whole_run(tx, &step->run, err);
        } else if (step->kind == STEP_DECIDE) {
            code = decide(tx, part->history->seed, step->inputs, err);
        } else if (part->folds) {
            code = fold_all(tx, &step->retention, &part->history->runs_folded, err);
        }
    }
    return code;
}

struct id_list {
    char ids[HISTORIES * RUNS_MAX][ID_SIZE];
    int count;
};

static enum err_code list_ids(struct tx *tx, void *arg, struct err *err)
{
    struct id_list *list = arg;
    struct query q;

    query_begin(&q, tx, "SELECT id FROM run ORDER BY id");
    while (query_step(&q) && list->count < HISTORIES * RUNS_MAX) {
        query_take_text(&q, list->ids[list->count++], ID_SIZE);
    }
    return query_end(&q, err);
}

/* Each run is there, or in a summary, and no other is. */
static enum err_code find_each(struct tx *tx, void *arg, struct err *err)
{
    const struct id_list *list = arg;
    struct run_summary *summary = xcalloc(1, sizeof *summary);
    struct run_record run;
    struct err ignored;

    for (int i = 0; i < list->count; i++) {
        bool stored = runs_get(tx, list->ids[i], &run, &ignored) == ERR_OK;
        bool in_summary = summaries_find(tx, list->ids[i], summary, &ignored) == ERR_OK;

        if (stored == in_summary) {
            free(summary);
            return err_set(err, ERR_INTERNAL, "run %s", list->ids[i]);
        }
    }
    if (summaries_find(tx, "01R00000000000000000000007", summary, &ignored) !=
        ERR_NOT_FOUND) {
        err_set(err, ERR_INTERNAL, "a run that never was");
    }
    free(summary);
    return ERR_OK;
}

static void check_ids(struct fixture *whole, struct fixture *folded)
{
    struct id_list *list = xcalloc(1, sizeof *list);

    fixture_read(whole, list_ids, list);
    fixture_read(folded, find_each, list);
    free(list);
}

static int64_t live_through(struct fixture *whole, struct fixture *folded, int nth,
                            uint32_t seed)
{
    struct history *h = xcalloc(1, sizeof *h);
    int64_t runs_folded;

    *h = (struct history){
        .random = seed, .seed = seed, .nth = nth, .whole = whole, .folded = folded
    };
    insert_jobs(h);
    shuffle(h);
    plan(h);
    for (int from = 0, end; from < h->step_count; from = end) {
        end = from + 1 + (int)(next_random(&h->random) % STEPS_MAX);
        end = end < h->step_count ? end : h->step_count;
        fixture_write(whole, take_steps, &(struct part){ h, from, end, false });
        fixture_write(folded, take_steps, &(struct part){ h, from, end, true });
        assert_twins(whole, folded, seed);
    }
    runs_folded = h->runs_folded;
    free(h);
    return runs_folded;
}

static int64_t fill_database(uint32_t seed)
{
    struct fixture *whole, *folded;
    int64_t runs_folded = 0;
    void *state;

    fixture_setup(&state);
    whole = state;
    fixture_setup(&state);
    folded = state;
    for (int i = 0; i < HISTORIES; i++) {
        runs_folded += live_through(whole, folded, i, seed + (uint32_t)i);
    }
    assert_clean(whole, seed);
    assert_clean(folded, seed);
    check_ids(whole, folded);
    fixture_write(whole, rebuild_all, NULL);
    fixture_write(folded, rebuild_all, NULL);
    assert_twins(whole, folded, seed);
    assert_clean(folded, seed);
    fixture_free(whole);
    fixture_free(folded);
    return runs_folded;
}

static void test_folded_histories_say_the_same(void **state)
{
    const char *more = getenv("REPROD_TEST_DATABASES");
    uint32_t databases =
        more ? (uint32_t)strtoul(more, NULL, 10) : (uint32_t)how_many(1, DATABASES);
    int64_t folded = 0;

    (void)state;
    for (uint32_t i = 0; i < databases; i++) {
        folded += fill_database(1 + i * HISTORIES);
    }
    assert_true(folded > 5 * HISTORIES * (int64_t)databases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folded_histories_say_the_same),
    };

    return cmocka_run_group_tests_name("retention histories", tests, NULL, NULL);
}
