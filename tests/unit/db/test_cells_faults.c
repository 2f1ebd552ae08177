/* Whichever statement fails while a run is counted, judged or looked at: nothing is half
 * stored, and no verdict is given. */
#include "tests/unit/db/cells_fixture.h"
#include "tests/unit/db/faults_fixture.h"

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "db/cells_judge.h"
#include "db/inputs.h"
#include "db/integrity/row_sum.h"

/* The run R begins, and each statement that stores its result fails once. */
static void finish_failing(struct fixture *f, struct fixture_run r, int least)
{
    int statements;

    if (!r.passed[0]) {
        fixture_write(f, fixture_begin, &r);
    }
    statements = fail_each_statement(f, true, fixture_finish, &r, sizeof r);
    if (statements < least) {
        fail_msg("run %d: only %d statements", r.n, statements);
    }
    fixture_check_cells(f);
}

static void test_runs_are_counted_whole_or_not(void **state)
{
    struct fixture *f = *state;
    struct fixture_run crashed = completed(7, ORDERED);
    struct fixture_run wrong = varying(8);
    struct fixture_run cut_off = completed(9, UNORDERED);

    insert_job(f);
    finish_failing(f, completed(1, ORDERED), 15); /* a new cell */
    finish_failing(f, completed(2, ORDERED), 15);
    wrong.digest = 5;
    wrong.check = CHECK_FAILED;
    fixture_write(f, fixture_begin, &wrong); /* while it is still asked to compare */
    copy_text(wrong.passed, sizeof wrong.passed, "none");
    finish_failing(f, varying(3), 20); /* judges the other */
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
    finish_failing(f, varying(4), 20);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    finish_failing(f, completed(5, ORDERED_B), 15); /* another device */
    crashed.outcome = OUTCOME_CRASHED;
    finish_failing(f, crashed, 8);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_FAILING);
    cut_off.outcome = OUTCOME_CRASHED;
    cut_off.check = CHECK_CUT_OFF;
    finish_failing(f, cut_off, 8);
    finish_failing(f, wrong, 20);
    assert_int_equal(verdict_of(f, "unordered"), VERDICT_FAILING);
}

/* In whatever order it becomes known why a control was not compared: the cells that
 * depend on it say what all its checks add up to. */
static void test_what_depends_on_a_control_hears_of_its_checks(void **state)
{
    static const enum check_state orders[][3] = {
        { CHECK_ASKED, CHECK_GIVEN_UP, CHECK_CUT_OFF },
        { CHECK_ASKED, CHECK_CUT_OFF, CHECK_GIVEN_UP },
        { CHECK_GIVEN_UP, CHECK_ASKED, CHECK_CUT_OFF },
        { CHECK_GIVEN_UP, CHECK_CUT_OFF, CHECK_ASKED },
        { CHECK_CUT_OFF, CHECK_ASKED, CHECK_GIVEN_UP },
        { CHECK_CUT_OFF, CHECK_GIVEN_UP, CHECK_ASKED },
    };

    for (int i = 0; i < COUNT_OF(orders); i++) {
        struct fixture *f = *state;

        insert_job(f);
        store(f, completed(1, ORDERED));
        store(f, completed(2, ORDERED));
        for (int k = 0; k < 6; k++) {
            struct fixture_run r = varying(3 + k);

            r.check = orders[i][k / 2];
            r.outcome = r.check == CHECK_CUT_OFF ? OUTCOME_CRASHED : OUTCOME_COMPLETED;
            store(f, r);
            fixture_check_cells(f);
        }
        fixture_free(f);
        fixture_setup(state);
    }
}

static enum err_code decide(struct tx *tx, void *arg, struct err *err)
{
    return case_inputs_decide(tx, 1, arg, "they said so", 77, err);
}

/* Two jobs, and cells of two variants and two environments, follow a decision: each cell
 * and each item of each job once. */
static void test_all_that_follows_a_decision(void **state)
{
    static const struct {
        int job, item, environment;
    } runs[] = { { 1, ORDERED, 1 },   { 1, ORDERED, 1 }, { 1, ORDERED_B, 2 },
                 { 1, UNORDERED, 1 }, { 2, 1, 1 },       { 2, 0, 1 } };
    char wrong[] = "00000000000000000000000000000101";
    char right[] = "00000000000000000000000000000100";
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 50),
                                fixture_item("ordered", "cpu:a", 50) };
    struct fixture_job second = fixture_job(2, items, 2);

    insert_job(f);
    fixture_write(f, fixture_insert_job, &second);
    for (int i = 0; i < COUNT_OF(runs); i++) {
        struct fixture_run r = completed(i + 1, runs[i].item);

        r.job = runs[i].job;
        r.environment = runs[i].environment;
        store(f, r);
    }
    for (int i = 0; i < 2; i++) {
        struct fixture_run other = completed(20 + i, i ? ORDERED : UNORDERED);

        other.input = 1;
        store(f, other);
    }
    assert_true(fail_each_statement(f, true, decide, wrong, sizeof wrong) > 60);
    assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_COMPLETED], 1);
    assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_INVALID], 3);
    fixture_check_cells(f);
    assert_true(fail_each_statement(f, true, decide, right, sizeof right) > 60);
    assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_COMPLETED], 3);
    assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_INVALID], 1);
    fixture_check_cells(f);
}

static enum err_code latest(struct tx *tx, void *arg, struct err *err)
{
    return cells_latest(tx, arg, err);
}

static enum err_code get_control(struct tx *tx, void *arg, struct err *err)
{
    struct cell *cell = arg;

    return cells_get_control(tx, cell->id, cell, err);
}

static enum err_code get_cell(struct tx *tx, void *arg, struct err *err)
{
    struct cell *cell = arg;

    return cells_get(tx, cell->id, cell, err);
}

/* Who asks for what could not be read gets no answer, rather than a part of it. */
static void test_reading_fails_whole(void **state)
{
    struct fixture *f = *state;
    struct fixture_cell found = { .variant = "ordered" };
    struct cell cell;
    int64_t ms = 0, counts[2] = { 0 };

    insert_job(f);
    fixture_read(f, latest, &ms);
    assert_int_equal(ms, 0);
    for (int n = 1; n <= 8; n++) {
        store(f, n % 2 ? varying(n) : completed(n, ORDERED));
    }
    assert_true(fail_each_statement(f, false, latest, &ms, sizeof ms) == 1);
    assert_int_equal(ms, 8900);
    assert_true(fail_each_statement(f, false, fixture_find_cell, &found, sizeof found) >
                2);
    assert_true(found.found);
    cell = found.cell;
    assert_true(fail_each_statement(f, false, get_cell, &cell, sizeof cell) > 1);
    assert_true(fail_each_statement(f, false, get_control, &cell, sizeof cell) > 1);
    assert_string_equal(cell.key.variant, "unordered");
    assert_true(fail_each_statement(f, false, fixture_recompute, counts, sizeof counts) >
                20);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 0);
}

static enum err_code judge_outdated(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return cells_judge_outdated(tx, 5, err);
}

static int refuse(void *arg)
{
    (void)arg;
    return 1;
}

static int64_t number_of(struct tx *tx, const char *sql)
{
    struct err err;
    int64_t number = -1;

    assert_int_equal(tx_fetch_int(tx, &number, &err, sql), ERR_OK);
    return number;
}

static struct tx *open_beside(const struct fixture *f)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(row_sum_register(db), SQLITE_OK);
    return tx_new(db);
}

/* Verdicts of older rules are all judged anew, or none of them: the number of the rules
 * says which. */
static void test_other_rules_come_whole_or_not(void **state)
{
    struct fixture *f = *state;
    struct tx *tx, *other;
    struct err err;

    insert_job(f);
    store(f, completed(1, ORDERED));
    vary(f, 2);
    fixture_close(f);
    tx = open_beside(f);
    other = open_beside(f);
    assert_int_equal(tx_run(tx, &err, "UPDATE judged SET rules = 0"), ERR_OK);
    assert_int_equal(tx_run(tx, &err, "UPDATE cell SET verdict = 'failing'"), ERR_OK);
    assert_int_equal(tx_run(tx, &err, FIXTURE_SEAL_CELLS), ERR_OK);
    for (int n = 1;; n++) {
        struct faulty faulty = { .fn = judge_outdated, .countdown = n };
        enum err_code code = faulty_run(tx, &faulty, &err);

        assert_true(sqlite3_get_autocommit(tx->db));
        if (strcmp(faulty.failed, "COMMIT") == 0) {
            assert_true(n > 10);
            break; /* an interrupt does not reach it */
        }
        assert_int_equal(code, ERR_TIMEOUT);
        assert_int_equal(number_of(tx, "SELECT rules FROM judged"), 0);
        assert_int_equal(
            number_of(tx, "SELECT count(*) FROM cell WHERE verdict = 'failing'"), 2);
    }
    assert_int_equal(tx_run(tx, &err, "UPDATE judged SET rules = 0"), ERR_OK);
    assert_int_equal(tx_run(tx, &err, "UPDATE cell SET verdict = 'failing'"), ERR_OK);
    assert_int_equal(tx_run(tx, &err, FIXTURE_SEAL_CELLS), ERR_OK);
    sqlite3_commit_hook(tx->db, refuse, NULL);
    assert_int_not_equal(cells_judge_outdated(tx, 5, &err), ERR_OK);
    sqlite3_commit_hook(tx->db, NULL, NULL);
    assert_true(sqlite3_get_autocommit(tx->db));
    assert_int_equal(number_of(tx, "SELECT rules FROM judged"), 0);
    assert_int_equal(tx_run(other, &err, "BEGIN IMMEDIATE"), ERR_OK);
    assert_int_equal(cells_judge_outdated(tx, 5, &err), ERR_BUSY);
    assert_int_equal(tx_run(other, &err, "ROLLBACK"), ERR_OK);
    assert_int_equal(cells_judge_outdated(tx, 5, &err), ERR_OK);
    assert_int_equal(number_of(tx, "SELECT rules FROM judged"), VERDICT_RULES);
    assert_int_equal(number_of(tx, "SELECT count(*) FROM cell WHERE verdict = 'failing'"),
                     0);
    tx_free(tx);
    tx_free(other);
    fixture_open(f);
    fixture_check_cells(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_runs_are_counted_whole_or_not),
        STORE_TEST(test_what_depends_on_a_control_hears_of_its_checks),
        STORE_TEST(test_all_that_follows_a_decision),
        STORE_TEST(test_reading_fails_whole),
        STORE_TEST(test_other_rules_come_whole_or_not),
    };

    return cmocka_run_group_tests_name("cells, statements of which fail", tests, NULL,
                                       NULL);
}
