/* Cells of a file that somebody or something changed: no value in it is taken for what it
 * is not, none leads out of an array, and what the runs give is told. */
#include "tests/unit/db/cells_fixture.h"

#include "daemon/base/buf.h"
#include "db/tx.h"

static void add_line(void *arg, int64_t cell, const char *what)
{
    (void)cell;
    buf_printf(arg, "%s\n", what);
}

struct looked {
    struct buf lines;
    int64_t compared, differing;
};

static enum err_code get_run(struct tx *tx, void *arg, struct err *err)
{
    char id[ID_SIZE];

    fixture_id('R', 3, id);
    return runs_get(tx, id, arg, err);
}

static enum err_code look(struct tx *tx, void *arg, struct err *err)
{
    struct looked *l = arg;

    return cells_recompute(tx, add_line, &l->lines, &l->compared, &l->differing, err);
}

/* Writes past what the schema checks, with the store closed; then opens it again. */
static void damage(struct fixture *f, const char *sql)
{
    sqlite3 *db;

    fixture_close(f);
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "PRAGMA ignore_check_constraints = 1", NULL, NULL, NULL),
        SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
    assert_true(sqlite3_changes(db) > 0);
    sqlite3_close(db);
    fixture_open(f);
}

/* What the runs give is said to differ, in one of COMPARED cells, by WORDS. */
static void expect_difference(struct fixture *f, const char *words)
{
    struct looked l = { .lines = BUF_INIT };

    fixture_read(f, look, &l);
    assert_int_equal(l.compared, 2);
    assert_int_equal(l.differing, 1);
    if (!strstr(l.lines.data, words)) {
        fail_msg("\"%s\" is not in:\n%s", words, l.lines.data);
    }
    buf_release(&l.lines);
}

static void three_runs(struct fixture *f)
{
    insert_job(f);
    vary(f, 1);
    store(f, completed(2, ORDERED));
    store(f, completed(3, ORDERED));
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
}

#define OF_ORDERED                                                                       \
    " WHERE verdict = 'reproducible' AND case_key = (SELECT number FROM case_key WHERE"  \
    " variant = 'ordered')"

static void test_a_verdict_that_is_none_is_not_green(void **state)
{
    struct fixture *f = *state;

    three_runs(f);
    damage(f, "UPDATE cell SET verdict = 'Reproducible'" OF_ORDERED);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
    expect_difference(f,
                      "verdict: stored \"unmeasured\", the runs give \"reproducible\"");
}

static void test_an_outcome_that_is_none_counts_as_none(void **state)
{
    struct fixture *f = *state;

    three_runs(f);
    damage(f,
           "UPDATE run SET outcome = 'perfect' WHERE id LIKE '%3' AND cell ="
           " (SELECT id FROM cell" OF_ORDERED ")");
    expect_difference(f, "stored 2, the runs give 1");
}

static void test_a_time_that_is_none_stays_in_the_table(void **state)
{
    static const char *const buckets[] = { "-1", "-9223372036854775808", "1000000",
                                           "9223372036854775807" };

    for (size_t i = 0; i < sizeof buckets / sizeof *buckets; i++) {
        struct fixture *f = *state;
        char sql[256];

        three_runs(f);
        snprintf(sql, sizeof sql,
                 "INSERT INTO cell_time (cell, bucket, runs) SELECT id, %s, 5 FROM"
                 " cell" OF_ORDERED,
                 buckets[i]);
        damage(f, sql);
        assert_int_equal(fixture_cell(f, "ordered").times.runs, 7);
        expect_difference(f, "ns: stored 5, the runs give 0");
        fixture_free(f);
        fixture_setup(state);
    }
}

/* What one library earned is no other's, and none of our models': no row has it. */
static void test_a_subject_that_is_none_is_of_no_row(void **state)
{
    struct fixture *f = *state;
    struct run_record run;
    struct cell cell;

    three_runs(f);
    assert_int_equal(fixture_cell(f, "ordered").subject, SUBJECT_MODEL);
    damage(f, "UPDATE cell SET subject = 'librarian'" OF_ORDERED);
    cell = fixture_cell(f, "ordered");
    assert_int_equal(cell.subject, SUBJECT_FRAMEWORK);
    assert_string_equal(cell.subject_name, "");
    memset(&run, 0xff, sizeof run);
    damage(f, "UPDATE job_item SET subject = 'librarian'");
    fixture_read(f, get_run, &run);
    assert_int_equal(run.subject, SUBJECT_FRAMEWORK);
    damage(f, "UPDATE job_item SET subject = 'model'");
    expect_difference(f,
                      "runs of another subject, or of another kind of stack: stored 0,"
                      " the runs give 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_verdict_that_is_none_is_not_green),
        STORE_TEST(test_an_outcome_that_is_none_counts_as_none),
        STORE_TEST(test_a_subject_that_is_none_is_of_no_row),
        STORE_TEST(test_a_time_that_is_none_stays_in_the_table),
    };

    return cmocka_run_group_tests_name("cells of damaged files", tests, NULL, NULL);
}
