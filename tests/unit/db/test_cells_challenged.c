/* Challenges of which a statement fails are counted whole or not, and cells that depend
 * on a control hear of what it answered. */
#include "tests/unit/db/faults_fixture.h"
#include "tests/unit/db/store_fixture.h"

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "db/cells_judge.h"
#include "db/dissent/device_list.h"
#include "db/tx.h"

enum { CONTROL, STEADY, ITEMS };
enum { SEED = 7000, OTHER_INPUT = 40, OTHER_DIGEST = 60 };

static void insert_items(struct fixture *f)
{
    struct job_item items[ITEMS];
    struct fixture_job j = fixture_job(1, items, ITEMS);

    for (int i = 0; i < ITEMS; i++) {
        items[i] = fixture_item(i == CONTROL ? "unordered" : "ordered", "cpu:a", 100);
        snprintf(items[i].stack, sizeof items[i].stack, "external");
    }
    fixture_write(f, fixture_insert_job, &j);
}

static struct fixture_run run_of(int n, int item)
{
    return (struct fixture_run){ .n = n,
                                 .job = 1,
                                 .item = item,
                                 .outcome = OUTCOME_COMPLETED,
                                 .environment = 1,
                                 .distinct = item == CONTROL ? 3 : 1 };
}

static struct fixture_run challenge(int n, int item)
{
    struct fixture_run r = run_of(n, item);

    r.seed = SEED + (uint64_t)n;
    r.input = OTHER_INPUT + n;
    r.digest = OTHER_DIGEST + 4 * n;
    return r;
}

static void store_run(struct fixture *f, struct fixture_run r)
{
    fixture_write(f, fixture_whole_run, &r);
    assert_int_equal(r.is_challenge, r.seed != 0);
}

/* Each statement that stores its result fails once; then none. */
static void finish_failing(struct fixture *f, struct fixture_run r)
{
    fixture_write(f, fixture_begin, &r);
    assert_int_equal(r.is_challenge, r.seed != 0);
    assert_true(fail_each_statement(f, true, fixture_finish, &r, sizeof r) > 8);
    fixture_check_cells(f);
}

static void test_challenges_are_counted_whole_or_not(void **state)
{
    struct fixture *f = *state;
    struct fixture_run repeated = challenge(6, STEADY);
    struct challenges c;

    insert_items(f);
    finish_failing(f, run_of(1, CONTROL)); /* counts the challenges of a new digest */
    finish_failing(f, challenge(2, CONTROL));
    store_run(f, run_of(3, STEADY));
    store_run(f, run_of(4, STEADY));
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_INCONCLUSIVE);
    finish_failing(f, challenge(5, STEADY));
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_REPRODUCIBLE);
    repeated.digest = 0;
    finish_failing(f, repeated); /* and the verdict stays */
    c = fixture_cell(f, "ordered").evidence.challenges;
    assert_int_equal(c.passed, 1);
    assert_int_equal(c.repeated, 1);
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_REPRODUCIBLE);
}

/* Each answer of a control is another reason for what depends on it; what was lost is no
 * answer. */
static void test_each_answer_of_a_control_is_heard(void **state)
{
    struct fixture *f = *state;
    struct fixture_run lost = challenge(5, CONTROL);
    struct fixture_run failed = challenge(6, CONTROL);
    struct fixture_run unchanged = challenge(8, CONTROL);
    char reason[VERDICT_REASON_SIZE];

    insert_items(f);
    store_run(f, run_of(1, CONTROL));
    store_run(f, run_of(2, STEADY));
    store_run(f, run_of(3, STEADY));
    store_run(f, challenge(4, STEADY));
    copy_text(reason, sizeof reason, fixture_cell(f, "ordered").reason);
    lost.outcome = OUTCOME_LOST;
    store_run(f, lost);
    assert_string_equal(fixture_cell(f, "ordered").reason, reason);
    assert_int_equal(fixture_cell(f, "unordered").evidence.challenges.failed, 0);
    failed.outcome = OUTCOME_CRASHED;
    finish_failing(f, failed);
    assert_int_equal(fixture_cell(f, "unordered").evidence.challenges.failed, 1);
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_INCONCLUSIVE);
    finish_failing(f, challenge(7, CONTROL));
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_REPRODUCIBLE);
    unchanged.input = 0;
    finish_failing(f, unchanged);
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_INCONCLUSIVE);
}

static enum err_code count_cells(struct tx *tx, void *arg, struct err *err)
{
    int64_t *cells = arg;
    int64_t dissents;

    return dissenters_of_device(tx, "cpu:a", cells, &dissents, err);
}

/* What answers a challenge is no case in which a device was measured. */
static void test_no_challenge_is_a_case_of_a_device(void **state)
{
    struct fixture *f = *state;
    int64_t cells = 0;

    insert_items(f);
    store_run(f, run_of(1, CONTROL));
    store_run(f, run_of(2, STEADY));
    store_run(f, challenge(3, STEADY));
    fixture_write(f, count_cells, &cells);
    assert_int_equal(cells, 2);
}

static enum err_code spoil(struct tx *tx, void *arg, struct err *err)
{
    return tx_run(tx, err, (const char *)arg);
}

/* A cell that is not what was stored is built anew with the run, or stays as it is. */
static void test_a_damaged_cell_is_built_anew_or_not(void **state)
{
    static char lie[] =
        "UPDATE cell SET iterations = 77 WHERE case_key ="
        " (SELECT number FROM case_key WHERE variant = 'ordered')";
    struct fixture *f = *state;
    struct fixture_run r = run_of(5, STEADY);

    insert_items(f);
    store_run(f, run_of(1, CONTROL));
    store_run(f, run_of(2, STEADY));
    store_run(f, run_of(3, STEADY));
    fixture_write(f, fixture_begin, &r);
    fixture_write(f, spoil, lie);
    assert_true(fail_each_statement(f, true, fixture_finish, &r, sizeof r) > 20);
    assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_COMPLETED], 3);
    assert_int_equal(fixture_cell(f, "ordered").evidence.iterations,
                     3 * FIXTURE_ITERATIONS);
    fixture_check_cells(f);
}

struct again {
    const char *lie; /* about the cell, NULL: none */
    int64_t cell;
};

static enum err_code judge_again(struct tx *tx, void *arg, struct err *err)
{
    const struct again *a = arg;

    if (a->lie && (tx_run(tx, err, a->lie, a->cell) != ERR_OK ||
                   tx_run(tx, err, FIXTURE_SEAL_CELLS) != ERR_OK)) {
        return err->code;
    }
    return cells_judge_again(tx, a->cell, 99000, err);
}

/* Whatever of its judgement was another one of older rules. */
static void test_a_cell_is_judged_again_whole(void **state)
{
    static const char *const lies[] = {
        NULL,
        "UPDATE cell SET agreeing = 'failing' WHERE id = ?",
        "UPDATE cell SET agreeing_devices = 77 WHERE id = ?",
        "UPDATE cell SET agreeing_runs = 77 WHERE id = ?",
        "UPDATE cell SET agreeing_iterations = 77 WHERE id = ?",
    };
    static char unchecked[] = "PRAGMA ignore_check_constraints = 1";
    struct fixture *f = *state;
    struct cell before;

    insert_items(f);
    store_run(f, run_of(1, CONTROL));
    store_run(f, run_of(2, STEADY));
    store_run(f, run_of(3, STEADY));
    before = fixture_cell(f, "ordered");
    fixture_write(f, spoil,
                  unchecked); /* else no lie about what agrees would be stored */
    for (int i = 0; i < COUNT_OF(lies); i++) {
        struct again again = { lies[i], before.id };
        struct cell after;

        assert_true(fail_each_statement(f, true, judge_again, &again, sizeof again) > 2);
        after = fixture_cell(f, "ordered");
        assert_int_equal(after.agreeing.verdict, before.agreeing.verdict);
        assert_int_equal(after.agreeing.devices, before.agreeing.devices);
        assert_int_equal(after.agreeing.runs, before.agreeing.runs);
        assert_int_equal(after.agreeing.iterations, before.agreeing.iterations);
        fixture_check_cells(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_challenges_are_counted_whole_or_not),
        STORE_TEST(test_each_answer_of_a_control_is_heard),
        STORE_TEST(test_no_challenge_is_a_case_of_a_device),
        STORE_TEST(test_a_damaged_cell_is_built_anew_or_not),
        STORE_TEST(test_a_cell_is_judged_again_whole),
    };

    return cmocka_run_group_tests_name("cells, challenges of which fail", tests, NULL,
                                       NULL);
}
