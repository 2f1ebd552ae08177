/* Stored runs with infinite sums, of a program that let them complete: no cell is green
 * because of them once a program opens the database that does not. */
#include "tests/unit/db/cells_fixture.h"
#include "tests/unit/db/faults_fixture.h"

#include "daemon/base/mem.h"
#include "db/cells_judge.h"
#include "db/fsck.h"
#include "db/inputs.h"
#include "db/integrity/row_sum.h"
#include "db/tx.h"
#include "db/upkeep/infinite.h"

static enum err_code run_sql(struct tx *tx, void *arg, struct err *err)
{
    /* tx_run knows statements by the address of their text. */
    return sqlite3_exec(tx->db, arg, NULL, NULL, NULL) == SQLITE_OK
               ? ERR_OK
               : err_set(err, ERR_INVALID, "%s", sqlite3_errmsg(tx->db));
}

static void change(struct fixture *f, const char *sql)
{
    char copy[200];

    snprintf(copy, sizeof copy, "%s", sql);
    fixture_write(f, run_sql, copy);
}

static enum err_code seal_runs(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return tx_run(tx, err, "UPDATE run SET sum = " RUN_SUM);
}

/* COLUMN of the runs WHERE was infinite, and a program with older rules stored them. */
static void age(struct fixture *f, const char *column, const char *bits,
                const char *where)
{
    char sql[200];

    snprintf(sql, sizeof sql, "UPDATE run SET %s = '%s' WHERE %s", column, bits, where);
    fixture_write(f, run_sql, sql);
    fixture_write(f, seal_runs, NULL);
    change(f, "UPDATE judged SET rules = 0");
    fixture_close(f);
    fixture_open(f);
    fixture_check_cells(f);
}

static enum err_code read_number(struct tx *tx, void *arg, struct err *err)
{
    int64_t *number = arg;
    static const char *const queries[] = {
        "SELECT count(*) FROM run WHERE outcome = 'invalid'",
        "SELECT runs_failed FROM job",
        "SELECT count(*) FROM run WHERE outcome = 'invalid' AND refused = 0 AND cause ="
        " 'weight_sum is infinite: equal infinities prove nothing'",
        "SELECT count(*) FROM run WHERE outcome = 'invalid' AND refused = 0 AND cause ="
        " 'loss is infinite: equal infinities prove nothing'",
        "SELECT ifnull(sum(runs), 0) FROM case_input",
    };

    return tx_fetch_int(tx, number, err, queries[*number]);
}

enum { INVALID, FAILED, OF_SUMS, OF_LOSSES, VOTES };

static void expect(struct fixture *f, int64_t what, int64_t wanted)
{
    int64_t number = what;

    fixture_read(f, read_number, &number);
    assert_int_equal(number, wanted);
}

static void print_line(void *arg, const char *line)
{
    (void)arg;
    print_message("%s\n", line);
}

static void expect_clean(struct fixture *f)
{
    struct fsck_counts counts;
    struct err err;

    assert_int_equal(fsck_database(f->path, print_line, NULL, &counts, &err), ERR_OK);
    assert_int_equal(counts.dangling + counts.cells_differing + counts.jobs_differing, 0);
}

static void green(struct fixture *f)
{
    insert_job(f);
    vary(f, 1);
    store(f, completed(2, ORDERED));
    assert_int_equal(store(f, completed(3, ORDERED)), VERDICT_REPRODUCIBLE);
    expect(f, VOTES, 4);
}

static void test_sums(void **state)
{
    struct fixture *f = *state;

    green(f);
    age(f, "weight_sum", "7ff0000000000000", "id GLOB '*2' OR id GLOB '*3'");
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_FAILING);
    expect(f, INVALID, 2);
    expect(f, FAILED, 2);
    expect(f, OF_SUMS, 2);
    expect(f, VOTES, 2);
    expect_clean(f);
}

/* One run is enough to lose the control. */
static void test_a_loss_of_the_control(void **state)
{
    struct fixture *f = *state;

    green(f);
    age(f, "loss", "fff0000000000000", "id GLOB '*1'");
    assert_int_equal(verdict_of(f, "unordered"), VERDICT_FAILING);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
    expect(f, OF_LOSSES, 2);
    expect_clean(f);
}

/* The largest number is none, and what follows the rules already stays. */
static void test_finite_sums_stay(void **state)
{
    struct fixture *f = *state;

    green(f);
    age(f, "weight_sum", "7fefffffffffffff", "id GLOB '*2' OR id GLOB '*3'");
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    expect(f, INVALID, 0);
}

/* What had other inputs than most is not restored later: it is invalid for its own sake.
 */
static void test_what_was_refused_for_its_inputs(void **state)
{
    struct fixture *f = *state;
    struct fixture_run other = completed(4, ORDERED_B);

    green(f);
    other.input = 7;
    store(f, other);
    age(f, "weight_sum", "7ff0000000000000", "id GLOB '*4'");
    expect(f, OF_SUMS, 1);
    expect(f, VOTES, 4);
    expect_clean(f);
}

/* What is damaged is damaged, and no more is said of it. */
static void test_damaged_runs_stay(void **state)
{
    struct fixture *f = *state;

    green(f);
    change(f, "UPDATE run SET weight_sum = '7ff0000000000000' WHERE id GLOB '*3'");
    change(f, "UPDATE judged SET rules = 0");
    fixture_close(f);
    fixture_open(f);
    expect(f, INVALID, 0);
}

static enum err_code refuse_outdated(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return infinite_runs_refuse_outdated(tx, 5000, err);
}

static int64_t invalid_in(struct tx *tx)
{
    struct err err;
    int64_t number = 0;

    assert_int_equal(tx_fetch_int(tx, &number, &err,
                                  "SELECT count(*) FROM run WHERE outcome = 'invalid'"),
                     ERR_OK);
    return number;
}

/* The Nth statement fails, whichever it is: then nothing is refused, and the next start
 * does it. */
static void test_it_is_done_whole_or_not(void **state)
{
    struct fixture *f = *state;
    struct tx *tx;
    struct err err;
    sqlite3 *db;

    green(f);
    change(f,
           "UPDATE run SET weight_sum = '7ff0000000000000'"
           " WHERE id GLOB '*2' OR id GLOB '*3'");
    fixture_write(f, seal_runs, NULL);
    change(f, "UPDATE judged SET rules = 0");
    fixture_close(f);
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(row_sum_register(db), SQLITE_OK);
    tx = tx_new(db);
    for (int n = 1;; n++) {
        struct faulty faulty = { .fn = refuse_outdated, .countdown = n };
        enum err_code code = faulty_run(tx, &faulty, &err);

        assert_true(sqlite3_get_autocommit(tx->db));
        if (strcmp(faulty.failed, "COMMIT") == 0) {
            assert_true(n > 10);
            assert_int_equal(invalid_in(tx), code == ERR_OK ? 2 : 0);
            break;
        }
        assert_int_equal(code, ERR_TIMEOUT);
        assert_int_equal(invalid_in(tx), 0);
    }
    assert_int_equal(infinite_runs_refuse_outdated(tx, 5000, &err), ERR_OK);
    assert_int_equal(invalid_in(tx), 2);
    tx_free(tx);
    fixture_open(f);
    fixture_check_cells(f);
    expect_clean(f);
}

/* That of a challenge says nothing any more of the cell that it challenged. */
static void test_a_challenge(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 5);
    struct fixture_job j = fixture_job(1, &item, 1);
    struct fixture_run r = {
        .n = 1, .job = 1, .outcome = OUTCOME_COMPLETED, .environment = 1
    };

    copy_text(item.stack, sizeof item.stack, "external");
    fixture_write(f, fixture_insert_job, &j);
    store(f, r);
    r.n = 2;
    r.seed = 77;
    r.input = r.digest = 9;
    store(f, r);
    assert_int_equal(fixture_cell(f, "ordered").evidence.challenges.passed, 1);
    age(f, "weight_sum", "7ff0000000000000", "id GLOB '*2'");
    assert_int_equal(fixture_cell(f, "ordered").evidence.challenges.passed, 0);
    assert_int_equal(fixture_cell(f, "ordered").evidence.challenges.failed, 1);
    expect(f, INVALID, 1);
    expect(f, FAILED, 0);
    expect_clean(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_sums),
        STORE_TEST(test_a_loss_of_the_control),
        STORE_TEST(test_finite_sums_stay),
        STORE_TEST(test_what_was_refused_for_its_inputs),
        STORE_TEST(test_damaged_runs_stay),
        STORE_TEST(test_it_is_done_whole_or_not),
        STORE_TEST(test_a_challenge),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
