/* What a cell is told of runs that were folded into one row, and what becomes of it when
 * the inputs of its case are decided. */
#include "tests/unit/db/cells_fixture.h"
#include "tests/unit/db/faults_fixture.h"

#include "daemon/base/mem.h"
#include "db/cells_judge.h"
#include "db/cells_rows.h"
#include "db/inputs.h"
#include "db/tx.h"
#include "db/upkeep/retention.h"
#include "db/upkeep/summaries.h"

enum { DAY = 24 * 3600 };

/* Adds SUMMARY to the row of a cell as it is stored. */
struct added {
    int64_t cell;
    struct run_summary summary;
    struct cell_row row;
};

static enum err_code add(struct tx *tx, void *arg, struct err *err)
{
    struct added *a = arg;

    return cell_rows_load(tx, a->cell, &a->row, err) == ERR_OK
               ? cells_fold_summary(tx, &a->row, &a->summary, err)
               : err->code;
}

static struct added four_runs(struct fixture *f)
{
    struct added a = { .cell = fixture_cell(f, "ordered").id,
                       .summary = { .runs = 4,
                                    .first_ms = 1000,
                                    .last_ms = 99000,
                                    .iterations = 40,
                                    .min_ns = 1,
                                    .max_ns = 9,
                                    .median_ns_sum = 20 } };

    fixture_id('R', 3, a.summary.first_run);
    fixture_id('R', 9, a.summary.last_run);
    copy_text(a.summary.device, sizeof a.summary.device, "cpu:a");
    copy_text(a.summary.digest, sizeof a.summary.digest,
              "000000000000000000000000000000aa");
    a.summary.times[3] = 4;
    return a;
}

static void test_a_summary_counts_as_its_runs(void **state)
{
    static const struct {
        const char *claim, *circumstances;
    } cases[] = { { "deterministic", "" }, { "non-deterministic", "" }, { "", poison } };
    struct fixture *f = *state;

    insert_job(f);
    store(f, completed(1, ORDERED));
    store(f, completed(2, ORDERED));
    for (int i = 0; i < 3; i++) {
        struct evidence before = fixture_cell(f, "ordered").evidence;
        struct added a = four_runs(f);
        const struct evidence *e = &a.row.cell.evidence;

        copy_text(a.summary.claim, sizeof a.summary.claim, cases[i].claim);
        copy_text(a.summary.circumstances, sizeof a.summary.circumstances,
                  cases[i].circumstances);
        assert_true(fail_each_statement(f, true, add, &a, sizeof a) > 4);
        assert_int_equal(e->runs[OUTCOME_COMPLETED], before.runs[OUTCOME_COMPLETED] + 4);
        assert_int_equal(e->iterations, before.iterations + 40);
        assert_int_equal(e->claimed - before.claimed, i == 0 ? 4 : 0);
        assert_int_equal(e->warned - before.warned, i == 1 ? 4 : 0);
        assert_int_equal(e->disturbed - before.disturbed, i == 2 ? 4 : 0);
        assert_int_equal(e->last_completed_ms, 99000);
        assert_int_equal(a.row.cell.last_ms, 99000);
    }
}

/* Runs that were refused completed nothing; the latest of them restarts the count. */
static void test_a_refused_summary_is_invalid(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    store(f, completed(1, ORDERED));
    for (int late = 0; late < 2; late++) {
        struct added a = four_runs(f);
        struct fixture_run wrong = completed(20, ORDERED);

        a.summary.refused = true;
        wrong.outcome = OUTCOME_CRASHED;
        if (late) {
            store(f, wrong);
        }
        fixture_write(f, add, &a);
        assert_int_equal(a.row.cell.evidence.runs[OUTCOME_COMPLETED], 1);
        assert_int_equal(a.row.cell.evidence.runs[OUTCOME_INVALID], 4);
        assert_string_equal(a.row.last_failed_run,
                            late ? "01R00000000000000000000020" : a.summary.last_run);
    }
}

static enum err_code fold(struct tx *tx, void *arg, struct err *err)
{
    const struct retention retention = { .days = 1, .runs = 1, .at_once = 50 };
    struct retention_place place = { .finished = false };

    while (!place.finished) {
        if (retention_fold(tx, &retention, INT64_MAX / 2, &place, err) != ERR_OK) {
            return err->code;
        }
    }
    *(int64_t *)arg = place.folded;
    return ERR_OK;
}

static enum err_code decide(struct tx *tx, void *arg, struct err *err)
{
    return case_inputs_decide(tx, 1, arg, "they said so", 77, err);
}

static void assert_runs(struct fixture *f, int64_t completed_runs, int64_t invalid)
{
    struct evidence e = fixture_cell(f, "ordered").evidence;

    assert_int_equal(e.runs[OUTCOME_COMPLETED], completed_runs);
    assert_int_equal(e.runs[OUTCOME_INVALID], invalid);
    fixture_check_cells(f);
}

static void test_summaries_follow_a_decision(void **state)
{
    enum { RUNS = 8 };
    char wrong[] = "00000000000000000000000000000101";
    char right[] = "00000000000000000000000000000100";
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", RUNS);
    struct fixture_job j = fixture_job(1, &item, 1);
    int64_t folded = 0;

    fixture_write(f, fixture_insert_job, &j);
    for (int n = 1; n <= RUNS; n++) {
        struct fixture_run r = { .n = n < RUNS ? n : n + 3 * DAY,
                                 .job = 1,
                                 .outcome = OUTCOME_COMPLETED,
                                 .environment = 1,
                                 .input = n == RUNS };

        store(f, r);
    }
    assert_runs(f, RUNS - 1, 1);
    fixture_write(f, fold, &folded);
    assert_true(folded > 2);
    assert_runs(f, RUNS - 1, 1);
    assert_true(fail_each_statement(f, true, decide, wrong, sizeof wrong) > 10);
    assert_runs(f, 1, RUNS - 1);
    assert_true(fail_each_statement(f, true, decide, right, sizeof right) > 10);
    assert_runs(f, RUNS - 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_summary_counts_as_its_runs),
        STORE_TEST(test_a_refused_summary_is_invalid),
        STORE_TEST(test_summaries_follow_a_decision),
    };

    return cmocka_run_group_tests_name("cells of folded runs", tests, NULL, NULL);
}
