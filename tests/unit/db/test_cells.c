/* Verdicts of cells: what turns one green, red and green again. */
#include "db/tx.h"
#include "tests/unit/db/cells_fixture.h"

static void test_green_waits_for_the_control(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    assert_int_equal(store(f, completed(1, ORDERED)), VERDICT_INCONCLUSIVE);
    assert_int_equal(store(f, completed(2, ORDERED)), VERDICT_INCONCLUSIVE);
    assert_int_equal(store(f, completed(3, UNORDERED)), VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(fixture_cell(f, "ordered").reason, "did not vary in 1 run"));
    assert_int_equal(vary(f, 4), VERDICT_VARIES);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    fixture_check_cells(f);
}

static void test_green_after_the_control(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    assert_int_equal(vary(f, 1), VERDICT_VARIES);
    assert_int_equal(store(f, completed(2, ORDERED)), VERDICT_INCONCLUSIVE);
    assert_int_equal(store(f, completed(3, ORDERED)), VERDICT_REPRODUCIBLE);
    fixture_check_cells(f);
}

static void test_a_control_elsewhere_does_not_count(void **state)
{
    struct fixture *f = *state;
    struct fixture_run elsewhere = varying(1);

    insert_job(f);
    elsewhere.environment = 2;
    store(f, elsewhere);
    store(f, completed(2, ORDERED));
    assert_int_equal(store(f, completed(3, ORDERED)), VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(fixture_cell(f, "ordered").reason, "was not measured"));
}

static void test_without_a_control_nothing_is_green(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    assert_int_equal(store(f, completed(1, FREE)), VERDICT_INCONCLUSIVE);
    store(f, varying(2)); /* of its siblings */
    assert_int_equal(store(f, completed(3, FREE)), VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(
        fixture_cell(f, "free").reason,
        "1 digest in 2 runs / 20 iterations, but no control that could have varied: "
        "nothing can vary"));
    fixture_check_cells(f);
}

static void test_green_turns_red(void **state)
{
    struct fixture *f = *state;
    struct fixture_run other = completed(4, ORDERED);
    struct fixture_run crash = completed(5, ORDERED);

    insert_job(f);
    vary(f, 1);
    store(f, completed(2, ORDERED));
    store(f, completed(3, ORDERED));
    crash.outcome = OUTCOME_CRASHED;
    assert_int_equal(store(f, crash), VERDICT_FAILING);
    other.digest = 77;
    assert_int_equal(store(f, other), VERDICT_VARIES);
    assert_int_equal(fixture_cell(f, "ordered").evidence.distinct_digests, 2);
    fixture_check_cells(f);
}

static void test_a_failure_heals_by_runs_started_after_it(void **state)
{
    struct fixture *f = *state;
    struct fixture_run crash = completed(50, ORDERED);

    insert_job(f);
    vary(f, 1);
    store(f, completed(60, ORDERED));
    store(f, completed(10, ORDERED));
    crash.outcome = OUTCOME_TIMEOUT;
    store(f, crash); /* arrives last, started between the two */
    assert_int_equal(fixture_cell(f, "ordered").evidence.completed_since_failure, 1);
    for (int i = 61; i < 61 + VERDICT_HEALING_RUNS - 2; i++) {
        assert_int_equal(store(f, completed(i, ORDERED)), VERDICT_FAILING);
    }
    assert_int_equal(store(f, completed(99, ORDERED)), VERDICT_REPRODUCIBLE);
    fixture_check_cells(f);
}

static void test_a_crash_before_start_counts_where_the_device_was_last(void **state)
{
    struct fixture *f = *state;
    struct fixture_run early = { .n = 1, .job = 1, .item = ORDERED };
    struct fixture_run lost = { .n = 3, .job = 1, .item = FREE };

    insert_job(f);
    early.outcome = OUTCOME_CRASHED;
    fixture_write(f, fixture_whole_run, &early);
    assert_int_equal(early.effect.cell, 0); /* no environment is known yet */
    store(f, completed(2, UNORDERED));
    lost.outcome = OUTCOME_LOST;
    fixture_write(f, fixture_whole_run, &lost);
    assert_int_equal(lost.effect.cell, 0);
    early.n = 4;
    fixture_write(f, fixture_whole_run, &early);
    assert_int_equal(early.effect.verdict, VERDICT_FAILING);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_FAILING);
    fixture_check_cells(f);
}

/* External workloads share a stack, and each has its own build in its environment. */
static void test_an_external_crash_counts_where_its_workload_was_last(void **state)
{
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("ordered", "cpu:a", 9),
                                fixture_item("ordered", "cpu:a", 9) };
    struct fixture_job j = fixture_job(1, items, 2);
    struct fixture_run own = completed(1, 0), other = completed(2, 1);
    struct fixture_run crash = { .n = 3, .job = 1, .outcome = OUTCOME_CRASHED };

    snprintf(items[1].key.workload, sizeof items[1].key.workload, "other");
    for (int i = 0; i < 2; i++) {
        snprintf(items[i].stack, sizeof items[i].stack, "external");
    }
    fixture_write(f, fixture_insert_job, &j);
    store(f, own);
    other.environment = 2;
    store(f, other);
    assert_int_equal(store(f, crash), VERDICT_FAILING);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_FAILING); /* in environment 1 */
    fixture_check_cells(f);
}

/* The latest job says what is a control and whether there is one. */
static void test_a_changed_declaration_is_judged_anew(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("free", "cpu:a", 1);
    struct fixture_job j = fixture_job(2, &item, 1);

    insert_job(f);
    vary(f, 1);
    store(f, completed(2, FREE));
    assert_int_equal(store(f, completed(3, FREE)), VERDICT_INCONCLUSIVE);
    fixture_write(f, fixture_insert_job, &j); /* now it has a control */
    assert_int_equal(verdict_of(f, "free"), VERDICT_REPRODUCIBLE);
    fixture_check_cells(f);
    snprintf(item.no_control, sizeof item.no_control, "there is none after all");
    j = fixture_job(3, &item, 1);
    fixture_write(f, fixture_insert_job, &j);
    assert_int_equal(verdict_of(f, "free"), VERDICT_INCONCLUSIVE);
    fixture_check_cells(f);
}

static enum err_code pretend(struct tx *tx, void *arg, struct err *err)
{
    return tx_run(tx, err, *(const char **)arg);
}

static void run_sql(struct fixture *f, const char *sql)
{
    const char *seal = FIXTURE_SEAL_CELLS;

    fixture_write(f, pretend, &sql);
    fixture_write(f, pretend, &seal);
}

/* Other rules can mean another verdict by the same counts and in the same words. */
static void test_a_verdict_of_other_rules_is_replaced(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    vary(f, 1);
    store(f, completed(2, ORDERED));
    store(f, completed(3, ORDERED));
    run_sql(f, "UPDATE cell SET verdict = 'failing' WHERE distinct_digests = 1");
    run_sql(f, "UPDATE judged SET rules = 0");
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_FAILING);
    fixture_close(f);
    fixture_open(f);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    fixture_check_cells(f);
}

/* Each run of a control would else judge all its siblings. */
static void test_dependants_are_judged_once_an_hour(void **state)
{
    struct fixture *f = *state;
    int hour = VERDICT_VOUCHED_STEP_MS / 1000;

    insert_job(f);
    vary(f, 1);
    store(f, completed(2, ORDERED));
    store(f, completed(3, ORDERED));
    run_sql(f, "UPDATE cell SET reason = 'old' WHERE distinct_digests = 1");
    store(f, varying(4));
    assert_string_equal(fixture_cell(f, "ordered").reason, "old");
    store(f, varying(hour));
    assert_null(strstr(fixture_cell(f, "ordered").reason, "old"));
    fixture_check_cells(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_green_waits_for_the_control),
        STORE_TEST(test_green_after_the_control),
        STORE_TEST(test_a_control_elsewhere_does_not_count),
        STORE_TEST(test_without_a_control_nothing_is_green),
        STORE_TEST(test_green_turns_red),
        STORE_TEST(test_a_failure_heals_by_runs_started_after_it),
        STORE_TEST(test_a_crash_before_start_counts_where_the_device_was_last),
        STORE_TEST(test_an_external_crash_counts_where_its_workload_was_last),
        STORE_TEST(test_a_changed_declaration_is_judged_anew),
        STORE_TEST(test_a_verdict_of_other_rules_is_replaced),
        STORE_TEST(test_dependants_are_judged_once_an_hour),
    };

    return cmocka_run_group_tests_name("cells", tests, NULL, NULL);
}
