/* Rows that another program took away or added are told, in every table that states
 * facts. */
#include "tests/unit/db/cells_fixture.h"
#include "tests/unit/db/edit_fixture.h"

#include <sqlite3.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "db/fsck.h"
#include "db/integrity/row_sum.h"
#include "db/integrity/totals.h"
#include "db/migrate.h"
#include "db/recurring/schedules.h"
#include "db/tx.h"
#include "tests/unit/db/migrations_undo.h"

/* One row of each table in which the fixture stores none. */
#define A_HOST                                                                           \
    "INSERT INTO host VALUES ('a', 'boot', 1, 2, NULL);"                                 \
    "INSERT INTO host_facts (host, facts) VALUES ('a', '{}');"                           \
    "INSERT INTO change (host, at_ms, facts) VALUES ('a', 1, '[]');"
#define A_SCREENING                                                                      \
    "INSERT INTO device VALUES ('cpu:a', 'a', 'cpu', 'm', '{}', 1, 2, NULL);"            \
    "INSERT INTO screening (device, host, facts, fingerprint, reason, words, at_ms)"     \
    " VALUES ('cpu:a', 'a', '{}', '00000000000000000000000000000001', 'new', '', 1);"    \
    "INSERT INTO screening_job (screening, job) SELECT s.number, j.number FROM"          \
    " screening s, job j;"
#define A_SCHEDULE                                                                       \
    "INSERT INTO schedule (id, name, every_seconds, calendar, spread_seconds, paused,"   \
    " created_ms, next_ms, request, posted) VALUES ('01S00000000000000000000000', 's',"  \
    " 60, '', -1, 0, 1, 2, '{}', '{}');"
#define A_PEER                                                                           \
    "INSERT INTO peer_origin (peer, service, reprod, first_ms)"                          \
    " VALUES ('p', '0000000000000001', '1', 1);"                                         \
    "INSERT INTO peer_job (job, origin) SELECT j.number, o.number FROM job j,"           \
    " peer_origin o;"                                                                    \
    "INSERT INTO peer (name, service, reprod, cursor, pulled_ms) VALUES ('p',"           \
    " '0000000000000001', '1', '00000000000000000000000000', 1);"                        \
    "INSERT INTO peer_refusal VALUES ('p', 'damaged', 1, 'r', 'w', 1, NULL);"
#define TELEMETRY                                                                        \
    "INSERT INTO run_telemetry SELECT min(id), '{}', NULL, reprod_sum(min(id), '{}', "   \
    "NULL) FROM run;"
static const char OTHERS[] = A_HOST A_SCHEDULE A_SCREENING TELEMETRY
    "INSERT INTO schedule_job (schedule, due_ms, job) SELECT s.number, 1, j.number FROM"
    " schedule s, job j;"
    "INSERT INTO input_decision (siblings, digest, reason, at_ms)"
    " SELECT min(siblings), '00000000000000000000000000000100', 'x', 1 FROM case_key;"
    "INSERT INTO localisation (job, runs_min) SELECT number, 2 FROM job;"
    "INSERT INTO tensor_blob (digest, dtype, shape, total, bytes, data)"
    " VALUES ('00000000000000000000000000000001', 'float32', '[1]', 4, 4, x'00000000');"
    "INSERT INTO run_tensor SELECT min(r.id), 'in', 0, 'x', max(b.number), 7 FROM run "
    "r,"
    " tensor_blob b;"
    "INSERT INTO trace VALUES (1, '00000000000000000000000000000001', x'00');"
    "INSERT INTO run_trace SELECT min(id), 1, 1, 0, 8 FROM run;"
    "INSERT INTO run_summary (cell, job, item, runs, ids, first_run, last_run, first_ms,"
    " last_ms, iterations, digest, input_digest, elements, bytes_hashed, times,"
    " milliseconds, folded_ms, sum) SELECT r.cell, r.job, r.item, 1, CAST(r.id AS BLOB),"
    " r.id, r.id, 1, 2, 3, r.digest, r.input_digest, 1, 1, '{}', 1, 1, 9 FROM run r"
    " LIMIT 1;"
    "INSERT INTO quarantine (cell, run, reason, found_ms) SELECT min(id), '', 'x', 1"
    " FROM cell;"
    "INSERT INTO lost_commits VALUES (1, 2, 3, 4);" A_PEER
    "INSERT INTO accepted_loss (at_ms, what) VALUES (1, 'x');";

static enum err_code execute(struct tx *tx, void *arg, struct err *err)
{
    int rc = sqlite3_exec(tx->db, arg, NULL, NULL, NULL);

    return rc == SQLITE_OK ? ERR_OK : tx_error(tx->db, rc, err);
}

static void run_sql(struct fixture *f, const char *sql)
{
    fixture_write(f, execute, (void *)(uintptr_t)sql);
}

struct told {
    int64_t rows;
    int lines;
    char last[200];
};

static void take_line(void *arg, const char *line)
{
    struct told *told = arg;

    told->lines++;
    snprintf(told->last, sizeof told->last, "%s", line);
}

static enum err_code look(struct tx *tx, void *arg, struct err *err)
{
    struct told *told = arg;

    return totals_check(tx, take_line, told, &told->rows, err);
}

static struct told check(struct fixture *f)
{
    struct told told = { 0 };

    fixture_read(f, look, &told);
    return told;
}

static enum err_code accept(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return totals_accept(tx, err);
}

static void expect_one(struct fixture *f, const char *table, const char *sql)
{
    struct told told = check(f);

    if (told.lines != 1 || told.rows != 1 || !strstr(told.last, table)) {
        fail_msg("%s: %d lines, %s", sql, told.lines, told.last);
    }
    fixture_write(f, accept, NULL);
    assert_int_equal(check(f).lines, 0);
}

static void change_and_delete(struct fixture *f, const char *table, const char *column)
{
    char *changed =
        xasprintf("UPDATE %s SET %s = %s + 100 WHERE %s = (SELECT max(%s) FROM %s)",
                  table, column, column, column, column, table);
    char *deleted = xasprintf("DELETE FROM %s WHERE %s = (SELECT min(%s) FROM %s)", table,
                              column, column, table);

    edit(f, changed);
    expect_one(f, table, changed);
    edit(f, deleted);
    expect_one(f, table, deleted);
    free(changed);
    free(deleted);
}

static void test_every_table(void **state)
{
    static const char *const tables[] = {
        "run_tensor",    "tensor_blob", "run_trace",      "run_summary",
        "schedule_job",  "schedule",    "input_decision", "localisation",
        "change",        "host_facts",  "run_log",        "run_telemetry",
        "screening_job", "screening",   "device",         "host",
        "cell_history",  "environment", "library_list",   "case_key",
        "job_item",      "job",         "quarantine",     "accepted_loss",
        "peer_job",      "peer_origin", "peer",           "peer_refusal",
    };
    struct fixture *f = *state;
    struct told told;

    insert_job(f);
    vary(f, 1);
    store(f, completed(2, ORDERED));
    store(f, completed(3, ORDERED));
    run_sql(f, OTHERS);
    told = check(f);
    if (told.lines) {
        fail_msg("%s", told.last);
    }
    for (int i = 0; i < COUNT_OF(tables); i++) {
        change_and_delete(f, tables[i], "sum");
    }
    change_and_delete(f, "event", "id");
    change_and_delete(f, "lost_commits", "witnessed");
    edit(f, "UPDATE event SET data = '{}' WHERE id = (SELECT max(id) FROM event)");
    expect_one(f, "event", "what is in an event");
    edit(f, "INSERT INTO host VALUES ('b', 'boot', 1, 2, 5)");
    expect_one(f, "host", "a row that was added");
    edit(f, "DELETE FROM table_total WHERE name = 'schedule'");
    expect_one(f, "schedule", "a total");
}

/* What reprod takes away is not missed, with all that goes with it. */
static void test_what_reprod_deletes(void **state)
{
    struct fixture *f = *state;
    struct told told;

    insert_job(f);
    store(f, completed(2, ORDERED));
    run_sql(f, OTHERS);
    run_sql(f, "DELETE FROM schedule");
    run_sql(f,
            "UPDATE host SET last_seen_ms = 7; DELETE FROM run_tensor;"
            "DELETE FROM tensor_blob; DELETE FROM run_trace; DELETE FROM run_log;"
            "UPDATE lost_commits SET accepted_ms = 5;"
            "DELETE FROM event WHERE id < 3; DELETE FROM run_telemetry;"
            "UPDATE quarantine SET accepted_ms = 7; UPDATE screening SET planned_ms = 7");
    told = check(f);
    if (told.lines) {
        fail_msg("%s", told.last);
    }
}

static void ignore(void *arg, const char *line)
{
    snprintf(arg, 200, "%s", line);
}

/* fsck as a whole: each of these is damage, and the first was seen by nothing before. */
static void test_fsck_tells(void **state)
{
    static const char *const edits[] = {
        "DELETE FROM schedule",
        "DELETE FROM job_item WHERE seq = 3",
        "DELETE FROM host_facts",
        "UPDATE host_facts SET facts = '{\"a\":1}'",
        "UPDATE change SET facts = '[1]'",
        "UPDATE job_item SET runs_more = 3 WHERE seq = 2",
        "DELETE FROM device_environment",
        "UPDATE device_environment SET first_run = last_run",
        "UPDATE environment SET first_seen_ms = first_seen_ms - 1",
        "UPDATE environment SET last_seen_ms = last_seen_ms + 1",
        "DELETE FROM device_stack_environment",
        "DELETE FROM commits",
        "DELETE FROM table_total WHERE name = 'case_key'",
        "DELETE FROM run_log WHERE run = (SELECT min(run) FROM run_log)",
        "DELETE FROM run_telemetry",
        "DELETE FROM event WHERE id = 2",
        "UPDATE event SET data = '{}' WHERE id = 2",
        "UPDATE event SET kind = 'other' WHERE id = 2",
        "UPDATE event SET at_ms = at_ms + 1 WHERE id = 2",
        "INSERT INTO lost_commits VALUES (1, 2, 3, 4)",
        "DELETE FROM cell_algorithm WHERE cell = 1",
        "DELETE FROM screening_job",
        "DELETE FROM screening_job; DELETE FROM screening",
        "UPDATE screening SET outcome = 'passed', ended_ms = 3",
    };
    struct fixture *f = *state;

    for (int i = 0; i < COUNT_OF(edits); i++) {
        struct fsck_counts counts;
        struct err err = { .message = "" };
        char last[200] = "";

        insert_job(f);
        vary(f, 1);
        store(f, completed(2, ORDERED));
        store(f, completed(3, ORDERED));
        run_sql(f, A_HOST A_SCHEDULE A_SCREENING TELEMETRY);
        fixture_close(f);
        assert_int_equal(fsck_database(f->path, ignore, last, &counts, &err), ERR_OK);
        if (!fsck_is_whole(&counts)) {
            fail_msg("%s", last);
        }
        edit(f, edits[i]);
        assert_int_equal(fsck_database(f->path, ignore, last, &counts, &err), ERR_OK);
        if (fsck_is_whole(&counts)) {
            fail_msg("not seen: %s", edits[i]);
        }
        fixture_remove(f);
        fixture_open(f);
    }
}

/* A migration changes rows; what was missing before it is missing after it, and no more.
 */
static void test_totals_through_a_migration(void **state)
{
    struct fixture *f = *state;
    struct migration list[64];
    struct err err = { .message = "" };
    struct told told;
    sqlite3 *db;
    char *back;
    int from;

    insert_job(f);
    run_sql(f, A_HOST);
    edit(f, "DELETE FROM host_facts");
    fixture_close(f);
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    for (int i = 0; i <= migrate_current(); i++) {
        list[i] = (struct migration){ "next", "DELETE FROM change" };
    }
    assert_int_equal(migrate_apply(db, list, migrate_current() + 1, &from, &err), ERR_OK);
    back = xasprintf("PRAGMA user_version = %d", from);
    assert_int_equal(sqlite3_exec(db, back, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    free(back);
    fixture_open(f);
    told = check(f);
    assert_int_equal(told.lines, 1);
    assert_non_null(strstr(told.last, "host_facts"));
}

/* Version 35 had numbers for what stands in events. */
static void go_back(struct fixture *f, const char *edit)
{
    char *sql =
        xasprintf(UNDO_37
                  "UPDATE table_total SET sums = (SELECT reprod_xor(id) FROM event)"
                  " WHERE name = 'event';"
                  "%s; PRAGMA user_version = 35",
                  edit);
    sqlite3 *db;

    fixture_close(f);
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(row_sum_register(db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    free(sql);
    fixture_open(f);
}

static void test_events_get_a_sum(void **state)
{
    struct fixture *f = *state;
    struct told told;

    insert_job(f);
    store(f, completed(2, ORDERED));
    go_back(f, "");
    assert_int_equal(check(f).lines, 0);
    go_back(f, "DELETE FROM event WHERE id = 2");
    told = check(f);
    assert_int_equal(told.lines, 1);
    assert_non_null(strstr(told.last, "event"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_every_table),      STORE_TEST(test_what_reprod_deletes),
        STORE_TEST(test_fsck_tells),       STORE_TEST(test_totals_through_a_migration),
        STORE_TEST(test_events_get_a_sum),
    };

    return cmocka_run_group_tests_name("totals", tests, NULL, NULL);
}
