/* What the migrations make of stored runs is what storing the runs today makes of them: a
 * database of today loses what a migration added, and gets it back. */
#include "tests/unit/db/cells_fixture.h"
#include "tests/unit/db/migrations_undo.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/array.h"
#include "daemon/base/buf.h"
#include "db/integrity/row_sum.h"
#include "db/tx.h"
#include "db/upkeep/retention.h"

enum { RUNS = 48 };

/* Two jobs whose items are not in the same order; job 2 has a command of the
 * configuration. */
static void insert_jobs(struct fixture *f)
{
    struct job_item items[] = { fixture_item("ordered", "cpu:a", 100),
                                fixture_item("unordered", "cpu:a", 100),
                                fixture_item("command", "cpu:b", 100),
                                fixture_item("disputed", "cpu:a", 100) };
    struct fixture_job j = fixture_job(2, items, COUNT_OF(items));

    run_options_read("{\"contention\":4}", &items[1].options);
    snprintf(items[2].stack, sizeof items[2].stack, "external");
    insert_job(f);
    fixture_write(f, fixture_insert_job, &j);
}

/* Digests, devices, conditions and times that differ, in no order of time. */
static struct fixture_run some_run(int n)
{
    static const int items[] = { UNORDERED, UNORDERED_LOADED, ORDERED, UNORDERED_B,
                                 ORDERED_B };
    struct fixture_run r = completed(n, items[n % 5]);

    if (n % 4 == 0) {
        r.job = 2;
        r.item = n == RUNS ? 1 : n / 4 % 3;
    }
    r.digest = r.job == 1 && r.item == ORDERED ? 0 : n == RUNS ? 9 : n * 7 % 6;
    r.distinct = n % 6 == 1 ? 3 : 1;
    r.environment = n % 9 == 0 ? 2 : 1;
    r.check = n % 11 == 0 ? CHECK_FAILED : n % 13 == 0 ? CHECK_GIVEN_UP : CHECK_NONE;
    if (n % 8 == 7 || n == 1) {
        r.outcome = OUTCOME_CRASHED;
    }
    if (n == 1) { /* nothing of this cell completes */
        r.job = 1;
        r.item = FREE;
        r.environment = 1;
    }
    return r;
}

/* The last two, asked before either ended, do not agree whether one digest is right. */
static void store_runs(struct fixture *f)
{
    struct fixture_run refused = completed(RUNS + 3, ORDERED);
    struct fixture_run both[] = { completed(RUNS + 1, 3), completed(RUNS + 2, 3) };

    for (int i = 0; i < RUNS; i++) {
        struct fixture_run r = some_run(1 + i * 29 % RUNS);

        fixture_write(f, fixture_whole_run, &r);
    }
    refused.input = 1;
    fixture_write(f, fixture_whole_run, &refused);
    both[0].check = CHECK_PASSED;
    both[1].check = CHECK_FAILED;
    for (int i = 0; i < 2; i++) {
        both[i].job = 2;
        both[i].digest = 3;
        fixture_write(f, fixture_begin, &both[i]);
    }
    for (int i = 0; i < 2; i++) {
        fixture_write(f, fixture_finish, &both[i]);
    }
}

static sqlite3 *open_file(const struct fixture *f)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(row_sum_register(db), SQLITE_OK);
    return db;
}

static void execute(sqlite3 *db, const char *sql)
{
    char *error = NULL;

    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) {
        fail_msg("%s: %s", sql, error);
    }
}

static int add_row(void *arg, int count, char **values, char **names)
{
    (void)names;
    for (int i = 0; i < count; i++) {
        buf_printf(arg, "%s%s", values[i] ? values[i] : "NULL", count > 1 ? "|" : "");
    }
    buf_printf(arg, "\n");
    return 0;
}

/* Caller frees. */
static char *dump(sqlite3 *db, const char *const *queries, int count)
{
    struct buf text = BUF_INIT;

    for (int i = 0; i < count; i++) {
        buf_printf(&text, "%s\n", queries[i]);
        assert_int_equal(sqlite3_exec(db, queries[i], add_row, &text, NULL), SQLITE_OK);
    }
    return buf_detach(&text, NULL);
}

/* Undoes with SQL what migrations after VERSION did, has it done again, and compares what
 * QUERIES give. */
static void do_again(struct fixture *f, int version, const char *undo,
                     const char *const *queries, int count)
{
    char *before;
    char *after;
    char sql[64];
    sqlite3 *db;

    fixture_close(f);
    db = open_file(f);
    before = dump(db, queries, count);
    execute(db, undo);
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d", version);
    execute(db, sql);
    sqlite3_close(db);
    fixture_open(f);
    fixture_close(f);
    db = open_file(f);
    after = dump(db, queries, count);
    assert_string_equal(after, before);
    sqlite3_close(db);
    fixture_open(f);
    free(before);
    free(after);
}

static void check_again(void **state, int version, const char *undo,
                        const char *const *queries, int count)
{
    struct fixture *f = *state;

    insert_jobs(f);
    store_runs(f);
    do_again(f, version, undo, queries, count);
}

/* The order of the columns is another one afterwards. */
#define DIGESTS                                                                          \
    "SELECT cell, digest, runs, iterations, first_runs, only_runs, run, weight_sum, "    \
    "loss FROM cell_digest ORDER BY 1, 2"
#define DEPARTURES "SELECT id, digest_first_runs, digest_only_runs FROM cell ORDER BY 1"

static void test_events_stay(void **state)
{
    static const char *const queries[] = {
        "SELECT id, at_ms, kind, data FROM event ORDER BY 1",
        "SELECT count(*) > 0 FROM event",
    };

    check_again(state, 23, UNDO_24, queries, COUNT_OF(queries));
}

/* Of the runs that are open, one was asked to compare its outputs. */
static enum err_code begin_two(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return tx_run(tx, err,
                  "INSERT INTO run (id, job, item, case_key, device, intent_ms, asked)"
                  " SELECT n.id, r.job, r.item, r.case_key, r.device, 1, n.asked"
                  " FROM (SELECT printf('01Z%023d', 1) AS id, 0 AS asked"
                  " UNION ALL SELECT printf('01Z%023d', 2), 1) n,"
                  " (SELECT * FROM run LIMIT 1) r");
}

static void test_asked(void **state)
{
    static const char *const queries[] = {
        "SELECT id, asked FROM run WHERE outcome IS NULL ORDER BY 1",
        "SELECT count(*), sum(asked) FROM run WHERE outcome IS NULL",
        "SELECT * FROM run_check ORDER BY 1",
    };
    struct fixture *f = *state;

    insert_jobs(f);
    store_runs(f);
    fixture_write(f, begin_two, NULL);
    do_again(f, 40, UNDO_41, queries, COUNT_OF(queries));
    fixture_check_cells(f);
}

/* What a device says now was so before, but where it is known to have changed. */
static enum err_code tell_states(struct tx *tx, void *arg, struct err *err)
{
    return tx_run(tx, err,
                  "UPDATE device SET attributes = '{\"serial\":\"7\",\"vbios\":\"96\","
                  "\"ecc_mode\":true,\"clock_policy\":null}'") == ERR_OK &&
                   tx_run(tx, err,
                          "INSERT INTO device_state (device, since, state)"
                          " SELECT id, '', iif(id = 'cpu:a', '{\"ecc_mode\":1,"
                          "\"vbios\":\"96\"}', '') FROM device") == ERR_OK
               ? tx_run(tx, err,
                        "INSERT INTO change (host, at_ms, facts) SELECT host, 1, ?"
                        " FROM device WHERE id = 'cpu:b'",
                        (const char *)arg)
               : err->code;
}

static void test_states(void **state)
{
    static char changed[] =
        "[{\"stack\":null,\"device\":\"cpu:b\",\"name\":\"vbios\","
        "\"before\":\"95\",\"after\":\"96\"}]";
    static const char *const queries[] = {
        "SELECT * FROM device_state ORDER BY 1, 2",
        "SELECT * FROM cell_device ORDER BY 1, 2, 3, 4",
        "SELECT * FROM cell_device_digest ORDER BY 1, 2, 3, 4, 5",
        "SELECT count(*) > 1 AND count(DISTINCT state) = 2 FROM cell_device",
    };
    struct fixture *f = *state;

    insert_jobs(f);
    fixture_write(f, tell_states, changed);
    store_runs(f);
    do_again(f, 33, UNDO_34, queries, COUNT_OF(queries));
    fixture_check_cells(f);
}

static void test_algorithms(void **state)
{
    static const char *const queries[] = {
        "SELECT * FROM cell_algorithm ORDER BY 1, 2",
        "SELECT count(*) > 0 FROM cell_algorithm WHERE runs > 1",
    };

    check_again(state, 30, UNDO_31, queries, COUNT_OF(queries));
    fixture_check_cells(*state);
}

static void test_spans_of_environments(void **state)
{
    static const char *const queries[] = {
        "SELECT * FROM device_environment ORDER BY 1, 2, 3",
        "SELECT count(*) > 0 FROM device_environment WHERE first_run < last_run",
    };

    check_again(state, 22, UNDO_23, queries, COUNT_OF(queries));
}

static void test_devices(void **state)
{
    static const char *const queries[] = {
        "SELECT * FROM cell_device_digest ORDER BY 1, 2, 3, 4",
        "SELECT cell, device, options, iterations, first_ms, first_run, last_run, mode,"
        " mode_runs FROM cell_device ORDER BY 1, 2, 3",
        "SELECT id, verdict, agreement, agreeing, agreeing_devices, agreeing_runs FROM "
        "cell"
        " ORDER BY 1",
        "SELECT count(*) > 0 FROM cell_device WHERE mode IS NULL",
        "SELECT count(*) > 0 FROM cell WHERE agreement <> 'none'",
    };

    check_again(state, 21, UNDO_22, queries, COUNT_OF(queries)); /* sums are made anew */
    fixture_check_cells(*state);
}

static void test_inputs(void **state)
{
    static const char *const queries[] = {
        "SELECT * FROM case_input ORDER BY 1, 2, 3",
        "SELECT id, outcome, refused FROM run ORDER BY 1",
        "SELECT count(*) > 0 FROM run WHERE refused",
    };

    check_again(state, 19, UNDO_20, queries, COUNT_OF(queries));
    fixture_check_cells(*state);
}

/* Every sum, as storing the same made it. */
static void test_sums(void **state)
{
    static const char *const queries[] = {
        "SELECT id, sum FROM run ORDER BY 1",
        "SELECT id, sum FROM cell ORDER BY 1",
        "SELECT cell, at_ms, sum FROM cell_history ORDER BY 1, 2",
        "SELECT run, sum FROM run_log ORDER BY 1",
        "SELECT run, sum FROM run_telemetry ORDER BY 1",
        "SELECT run, sum FROM run_trace ORDER BY 1",
        "SELECT number, sum FROM job ORDER BY 1",
        "SELECT job, seq, sum FROM job_item ORDER BY 1, 2",
        "SELECT number, sum FROM case_key ORDER BY 1",
        "SELECT number, sum FROM environment ORDER BY 1",
        "SELECT number, sum FROM library_list ORDER BY 1",
        "SELECT name, sum FROM host ORDER BY 1",
        "SELECT id, sum FROM device ORDER BY 1",
        "SELECT count(*) > 0 FROM run WHERE sum IS NOT NULL",
    };

    check_again(state, 21, UNDO_22, queries, COUNT_OF(queries));
    fixture_check_cells(*state);
}

static void test_checked_digests(void **state)
{
    static const char *const queries[] = {
        "SELECT cell, digest, checked FROM cell_digest ORDER BY 1, 2",
        "SELECT * FROM run_check ORDER BY 1",
        "SELECT id, digests_passed, checks_cut_off, verdict, reason FROM cell ORDER BY 1",
        DIGESTS,
        DEPARTURES,
    };

    check_again(state, 16, UNDO_17, queries, COUNT_OF(queries));
    fixture_check_cells(*state);
}

/* What was compared before there were checks is not known. */
static void test_when_controls_varied(void **state)
{
    static const char *const queries[] = {
        "SELECT cell, device, options, runs, digest, last_ms, last_digest, varied_ms"
        " FROM cell_device ORDER BY 1, 2, 3",
        "SELECT cell, options, runs, varied, varied_ms FROM cell_alike ORDER BY 1, 2",
        "SELECT id, has_reference FROM cell ORDER BY 1",
        DIGESTS,
        DEPARTURES,
    };
    static const char *const left[] = {
        "SELECT count(*) FROM run_check",
        "SELECT sum(checks_passed + checks_failed + checks_given_up) FROM cell",
    };
    struct fixture *f = *state;
    sqlite3 *db;
    char *checks;

    check_again(state, 14, UNDO_15, queries, COUNT_OF(queries));
    fixture_check_cells(f);
    fixture_close(f);
    db = open_file(f);
    checks = dump(db, left, COUNT_OF(left));
    for (int i = 0; i < COUNT_OF(left); i++) {
        assert_int_equal(strncmp(strstr(checks, left[i]) + strlen(left[i]), "\n0\n", 3),
                         0);
    }
    free(checks);
    sqlite3_close(db);
    fixture_open(f);
}

/* What was reproducible before controls grew old counts from when it was said. */
static void test_what_was_said_counts_from_then(void **state)
{
    struct fixture *f = *state;
    static const char *const said[] = {
        "SELECT count(*) > 0 FROM cell_history WHERE verdict = 'reproducible'",
        "SELECT count(*) FROM cell_history WHERE at_ms < 50000 AND vouched_ms"
        " <> iif(verdict = 'reproducible', at_ms, 0)",
    };
    sqlite3 *db;
    char *text;

    insert_job(f);
    vary(f, 1);
    store(f, completed(2, ORDERED));
    store(f, completed(3, ORDERED));
    fixture_close(f);
    db = open_file(f);
    execute(db, UNDO_15 "PRAGMA user_version = 14");
    sqlite3_close(db);
    fixture_open(f);
    fixture_close(f);
    db = open_file(f);
    text = dump(db, said, COUNT_OF(said));
    assert_non_null(strstr(text, "\n1\n"));
    assert_non_null(strstr(text, "\n0\n"));
    free(text);
    sqlite3_close(db);
    fixture_open(f);
}

static enum err_code cancel(struct tx *tx, void *arg, struct err *err)
{
    char id[ID_SIZE];

    (void)arg;
    fixture_id('J', 1, id);
    return jobs_cancel(tx, id, 1, err);
}

static enum err_code fold(struct tx *tx, void *arg, struct err *err)
{
    const struct retention retention = { .days = 1, .runs = 1, .at_once = 400 };
    struct retention_place place = { .finished = false };
    enum err_code code = ERR_OK;

    while (code == ERR_OK && !place.finished) {
        code = retention_fold(tx, &retention, INT64_MAX / 2, &place, err);
    }
    *(int64_t *)arg = place.folded;
    return code;
}

/* The sums that version 25 gave: a migration carries those of rows that are intact. */
#define SEAL_25                                                                          \
    "UPDATE run SET sum = reprod_sum(id, job, item, case_key, device, "                  \
    "intent_ms, pid, process_start, boot_id, started_ms, finished_ms, "                  \
    "environment, cell, libraries, outcome, circumstances, refused, cause, "             \
    "iterations, distinct_digests, digest, input_digest, weight_sum, loss, "             \
    "algorithm, claim, min_ns, median_ns, max_ns, elements, bytes_hashed, "              \
    "device_read_back, wall_ns, max_rss_kb, (SELECT reprod_sums(d.digest, "              \
    "d.iterations, d.first_iteration) FROM run_digest d WHERE d.run = "                  \
    "run.id), (SELECT reprod_sums(k.state, k.digest, k.share_ppm, k.words) "             \
    "FROM run_check k WHERE k.run = run.id)) WHERE sum IS NOT NULL;"                     \
    "UPDATE cell SET sum = reprod_sum(id, case_key, environment, subject, "              \
    "subject_name, has_reference, completed, unsupported, timeout, crashed, "            \
    "out_of_memory, lost, infra, cancelled, invalid, iterations, "                       \
    "distinct_digests, devices, disturbed, contended, claimed, warned, "                 \
    "completed_since_failure, last_completed_ms, first_ms, last_ms, min_ns, "            \
    "max_ns, median_ns_sum, checks_passed, checks_failed, checks_given_up, "             \
    "checks_unanswered, checks_cut_off, digests_passed, check_share_ppm, "               \
    "digest_runs, digest_iterations, digest_first_runs, digest_only_runs, "              \
    "last_failed_run, failed_check, failed_check_words, digest, verdict, "               \
    "reason, vouched_ms, changed_ms);"                                                   \
    "UPDATE case_key SET sum = reprod_sum(number, workload, version, variant, "          \
    "size, dtype, seed, is_control, no_control, siblings, kind);"                        \
    "UPDATE job_item SET sum = reprod_sum(job, seq, case_key, device, stack, "           \
    "runs_wanted, given_up_reason, options, timeout_ms, subject, "                       \
    "subject_name);"

/* Runs that were folded before a migration count as those that are there. */
static void test_summaries(void **state)
{
    static const char *const queries[] = {
        "SELECT number, cell, runs, first_run, last_run, iterations, digest, refused, sum"
        " FROM run_summary ORDER BY 1",
        "SELECT * FROM cell_device_digest ORDER BY 1, 2, 3, 4",
        "SELECT cell, device, options, runs, iterations, first_ms, last_ms, first_run,"
        " last_run, mode, mode_runs FROM cell_device ORDER BY 1, 2, 3",
        "SELECT id, completed, iterations, verdict, reason, agreement, agreeing_runs, sum"
        " FROM cell ORDER BY 1",
        "SELECT job, seq, runs_answered, sum FROM job_item ORDER BY 1, 2",
        "SELECT sum(runs) > 10 FROM run_summary",
    };
    struct fixture *f = *state;
    int64_t folded = 0;

    insert_job(f);
    vary(f, 1);
    for (int n = 2; n < 20; n++) {
        store(f, completed(n, n % 3 ? ORDERED : ORDERED_B));
    }
    store(f, completed(2 * 24 * 3600, ORDERED)); /* seconds: the others are old */
    fixture_write(f, cancel, NULL);
    fixture_write(f, fold, &folded);
    assert_true(folded > 10);
    fixture_check_cells(f);
    do_again(f, 25, UNDO_26 SEAL_25, queries, COUNT_OF(queries));
    fixture_check_cells(f);
}

/* A command of the configuration, as an older reprod stored it: green without ever having
 * been asked for another seed. */
#define GREEN_THEN                                                                       \
    "UPDATE cell SET verdict = 'reproducible', reason = 'as it was' WHERE case_key ="    \
    " (SELECT number FROM case_key WHERE variant = 'ordered');"

static void test_old_green_commands_are_not_challenged(void **state)
{
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("ordered", "cpu:a", 9),
                                fixture_item("unordered", "cpu:a", 9) };
    struct fixture_job j = fixture_job(1, items, COUNT_OF(items));
    struct fixture_run varies = completed(1, 1);
    struct cell cell;
    sqlite3 *db;

    for (int i = 0; i < COUNT_OF(items); i++) {
        snprintf(items[i].stack, sizeof items[i].stack, "external");
    }
    fixture_write(f, fixture_insert_job, &j);
    varies.distinct = 3;
    store(f, varies);
    store(f, completed(2, 0));
    store(f, completed(3, 0));
    fixture_close(f);
    db = open_file(f);
    execute(db, UNDO_26 GREEN_THEN SEAL_25 "PRAGMA user_version = 25");
    sqlite3_close(db);
    fixture_open(f);
    cell = fixture_cell(f, "ordered");
    assert_int_equal(cell.verdict, VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(cell.reason, "not challenged"));
    fixture_check_cells(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_devices),
        STORE_TEST(test_asked),
        STORE_TEST(test_states),
        STORE_TEST(test_algorithms),
        STORE_TEST(test_events_stay),
        STORE_TEST(test_spans_of_environments),
        STORE_TEST(test_inputs),
        STORE_TEST(test_sums),
        STORE_TEST(test_checked_digests),
        STORE_TEST(test_when_controls_varied),
        STORE_TEST(test_what_was_said_counts_from_then),
        STORE_TEST(test_summaries),
        STORE_TEST(test_old_green_commands_are_not_challenged),
    };

    return cmocka_run_group_tests_name("migrations", tests, NULL, NULL);
}
