/* What runs computed, against the float64 reference: which runs are asked, what their
 * checks add up to in a cell, and what that does to its verdict and to others. */
#include "daemon/base/array.h"
#include "daemon/base/buf.h"
#include "db/tx.h"
#include "tests/unit/db/cells_fixture.h"

static struct fixture_run checked(int n, int item, enum check_state state)
{
    struct fixture_run r = completed(n, item);

    r.check = state;
    return r;
}

static struct fixture_run varying_checked(int n, enum check_state state)
{
    struct fixture_run r = varying(n);

    r.check = state;
    return r;
}

static struct checks checks_of(struct fixture *f, const char *variant)
{
    return fixture_cell(f, variant).evidence.checks;
}

static void test_one_check_is_enough_for_one_digest(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    store(f, varying(1));
    store(f, varying(2));
    for (int n = 3; n < 8; n++) {
        store(f, completed(n, n % 2 ? ORDERED : ORDERED_B));
    }
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    assert_int_equal(checks_of(f, "ordered").passed, 2); /* one a device: they are new */
    assert_int_equal(checks_of(f, "ordered").share_ppm, 4000);
    assert_true(checks_of(f, "ordered").has_reference);
    assert_int_equal(checks_of(f, "unordered").passed, 2);
    fixture_check_cells(f);
}

static void test_without_an_answer_nothing_is_green(void **state)
{
    static const struct {
        enum check_state state;
        const char *words;
    } lacks[] = {
        { CHECK_ASKED, "too old to do" },
        { CHECK_GIVEN_UP, "which this host gave up" },
    };
    struct fixture *f = *state;
    int n = 2;

    insert_job(f);
    vary(f, 1);
    for (int i = 0; i < COUNT_OF(lacks); i++, n += 2) {
        store(f, checked(n, ORDERED, lacks[i].state));
        store(f, checked(n + 1, ORDERED, lacks[i].state));
        assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
        assert_non_null(strstr(fixture_cell(f, "ordered").reason, lacks[i].words));
    }
    assert_int_equal(checks_of(f, "ordered").unanswered, 2);
    for (; n < 9; n++) {
        store(f, checked(n, ORDERED, CHECK_GIVEN_UP));
    }
    assert_int_equal(checks_of(f, "ordered").given_up, CHECKS_GIVEN_UP); /* no more */
    fixture_check_cells(f);
}

static void test_out_of_bound_is_failing(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    store(f, varying(1));
    store(f, checked(2, ORDERED, CHECK_FAILED));
    for (int n = 3; n < 30; n++) {
        assert_int_equal(store(f, completed(n, ORDERED)), VERDICT_FAILING);
    }
    assert_string_equal(
        fixture_cell(f, "ordered").reason,
        "out of bound of the float64 reference: y[2]; 1 digest in 28 runs "
        "/ 280 iterations");
    fixture_check_cells(f);
}

static void test_a_failed_check_takes_back_what_a_control_vouched_for(void **state)
{
    struct fixture *f = *state;
    struct fixture_run late = varying_checked(5, CHECK_FAILED);

    insert_job(f);
    store(f, varying_checked(1, CHECK_ASKED));
    store(f, completed(2, ORDERED));
    store(f, completed(3, ORDERED));
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
    store(f, varying(4));
    assert_non_null(strstr(fixture_cell(f, "ordered").reason, "only one of its digests"));
    late.digest = varying(4).digest;
    fixture_write(f, fixture_begin, &late); /* before two of them passed */
    store(f, varying(6));
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    fixture_write(f, fixture_finish, &late);
    assert_int_equal(verdict_of(f, "unordered"), VERDICT_FAILING);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
    assert_string_equal(fixture_cell(f, "ordered").reason,
                        "the control varied, but it is out of bound of the float64 "
                        "reference: y[5]");
    fixture_check_cells(f);
}

/* What is wrong with the control is said anew where it changes. */
static void test_why_a_control_was_not_compared_is_told(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    store(f, varying_checked(1, CHECK_ASKED));
    store(f, completed(2, ORDERED));
    store(f, completed(3, ORDERED));
    assert_non_null(strstr(fixture_cell(f, "ordered").reason, "too old to do"));
    store(f, varying_checked(4, CHECK_GIVEN_UP));
    assert_non_null(strstr(fixture_cell(f, "ordered").reason, "this host gave up"));
    fixture_check_cells(f);
}

/* Random numbers always vary: where one control does, another that does not vary has no
 * say.
 */
static void test_only_controls_that_differed_are_told(void **state)
{
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("differs", "cpu:a", 9),
                                fixture_item("constant", "cpu:a", 9),
                                fixture_item("ordered", "cpu:a", 9) };
    struct fixture_job j = fixture_job(1, items, COUNT_OF(items));
    struct fixture_run differs = varying_checked(1, CHECK_ASKED);

    items[0].is_control = items[1].is_control = true;
    fixture_write(f, fixture_insert_job, &j);
    differs.item = 0;
    store(f, differs);
    store(f, checked(2, 1, CHECK_FAILED));
    store(f, completed(3, 2));
    store(f, completed(4, 2));
    assert_string_equal(fixture_cell(f, "ordered").reason,
                        "the control varied, but was not compared with the float64 "
                        "reference, which its worker or agent is too old to do");
    fixture_check_cells(f);
}

/* Also where both are wrong, and the other is the first by name. */
static void test_what_is_wrong_with_what_differed_is_told(void **state)
{
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("differs", "cpu:a", 9),
                                fixture_item("constant", "cpu:a", 9),
                                fixture_item("ordered", "cpu:a", 9) };
    struct fixture_job j = fixture_job(1, items, COUNT_OF(items));
    struct fixture_run differs = varying_checked(1, CHECK_FAILED);

    items[0].is_control = items[1].is_control = true;
    fixture_write(f, fixture_insert_job, &j);
    differs.item = 0;
    store(f, differs);
    store(f, checked(2, 1, CHECK_FAILED));
    store(f, completed(3, 2));
    store(f, completed(4, 2));
    assert_string_equal(fixture_cell(f, "ordered").reason,
                        "the control varied, but it is out of bound of the float64 "
                        "reference: y[1]");
}

static void collect_digest(void *arg, const struct cell_digest *digest)
{
    buf_printf(arg, "%s:%s ", digest->digest + DIGEST_TEXT_SIZE - 3,
               digest->checked ? check_state_name(digest->checked) : "none");
}

static enum err_code list_digests(struct tx *tx, void *arg, struct err *err)
{
    return cells_each_digest(tx, 1, 9, collect_digest, arg, err);
}

static void test_each_digest_says_what_it_is(void **state)
{
    struct fixture *f = *state;
    struct buf seen = BUF_INIT;
    struct fixture_run runs[] = { checked(1, ORDERED, CHECK_PASSED),
                                  checked(2, ORDERED, CHECK_FAILED),
                                  checked(3, ORDERED, CHECK_FAILED),
                                  checked(4, ORDERED, CHECK_PASSED),
                                  checked(5, ORDERED, CHECK_ASKED) };
    static const int digests[] = { 10, 20, 30, 30, 40 };

    insert_job(f);
    for (int i = 0; i < COUNT_OF(runs); i++) {
        runs[i].environment = 1;
        runs[i].digest = digests[i];
        fixture_write(f, fixture_begin, &runs[i]);
    }
    for (int i = 0; i < COUNT_OF(runs); i++) {
        fixture_write(f, fixture_finish, &runs[i]);
    }
    fixture_read(f, list_digests, &seen);
    assert_string_equal(seen.data, "1e:failed 0a:passed 14:failed 28:none ");
    buf_release(&seen);
    fixture_check_cells(f);
}

/* Of several controls the first, by name, of those that are wrong is told. */
static void test_the_control_that_is_wrong_is_told(void **state)
{
    for (int both = 0; both < 2; both++) {
        struct fixture *f = *state;
        struct job_item items[] = { fixture_item("beta", "cpu:a", 9),
                                    fixture_item("alpha", "cpu:a", 9),
                                    fixture_item("ordered", "cpu:a", 9) };
        struct fixture_job j = fixture_job(1, items, COUNT_OF(items));

        items[0].is_control = items[1].is_control = true;
        fixture_write(f, fixture_insert_job, &j);
        for (int i = 0; i < 2; i++) {
            struct fixture_run r =
                varying_checked(i + 1, i == 0 || both ? CHECK_FAILED : CHECK_ASKED);

            r.item = i;
            store(f, r);
        }
        store(f, completed(3, 2));
        store(f, completed(4, 2));
        assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
        assert_string_equal(fixture_cell(f, "ordered").reason,
                            both ? "the control varied, but it is out of bound of the "
                                   "float64 reference: y[2]"
                                 : "the control varied, but it is out of bound of the "
                                   "float64 reference: y[1]");
        fixture_teardown(state);
        fixture_setup(state);
    }
}

/* Nor that of another case. */
static void test_another_case_s_control_is_not_told(void **state)
{
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("alpha", "cpu:a", 9),
                                fixture_item("ordered", "cpu:a", 9),
                                fixture_item("beta", "cpu:a", 9),
                                fixture_item("checked", "cpu:a", 9) };
    struct fixture_job j = fixture_job(1, items, COUNT_OF(items));

    items[0].is_control = items[2].is_control = true;
    items[0].key.seed = items[1].key.seed = 77;
    fixture_write(f, fixture_insert_job, &j);
    for (int i = 0; i < COUNT_OF(items); i++) {
        struct fixture_run r =
            varying_checked(i + 1, i % 2 ? CHECK_PASSED : CHECK_FAILED);

        r.item = i;
        r.distinct = i % 2 ? 1 : 3;
        store(f, r);
        r.n += 10;
        store(f, r);
    }
    assert_string_equal(fixture_cell(f, "checked").reason,
                        "the control varied, but it is out of bound of the float64 "
                        "reference: y[3]");
    fixture_check_cells(f);
}

/* One control is right and differs between devices, the other varies and is not known to
 * be right: neither vouches. */
static void test_what_is_right_must_be_what_varied(void **state)
{
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("right", "cpu:a", 9),
                                fixture_item("right", "cpu:b", 9),
                                fixture_item("varies", "cpu:a", 9),
                                fixture_item("ordered", "cpu:a", 9) };
    struct fixture_job j = fixture_job(1, items, COUNT_OF(items));
    struct fixture_run varies = varying_checked(3, CHECK_ASKED);
    struct fixture_run b = checked(2, 1, CHECK_PASSED);

    items[0].is_control = items[1].is_control = items[2].is_control = true;
    fixture_write(f, fixture_insert_job, &j);
    b.digest = 50;
    varies.item = 2;
    store(f, checked(1, 0, CHECK_PASSED));
    store(f, b);
    store(f, varies);
    store(f, completed(4, 3));
    store(f, completed(5, 3));
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
    assert_non_null(
        strstr(fixture_cell(f, "ordered").reason, "differed only between devices"));
    fixture_check_cells(f);
}

static void test_any_order_gives_the_same_checks(void **state)
{
    static const int orders[][4] = { { 2, 3, 4, 5 }, { 5, 4, 3, 2 }, { 4, 2, 5, 3 } };
    struct fixture *f = *state;
    struct fixture_run runs[6] = { [2] = checked(2, ORDERED, CHECK_PASSED),
                                   [3] = checked(3, ORDERED, CHECK_FAILED),
                                   [4] = checked(4, ORDERED, CHECK_FAILED),
                                   [5] = checked(5, ORDERED, CHECK_PASSED) };

    insert_job(f);
    for (int o = 0; o < COUNT_OF(orders); o++) {
        /* Begun before any ends: each is asked. */
        for (int i = 2; i < 6; i++) {
            runs[i].n = 10 * o + i;
            runs[i].environment = o + 1;
            fixture_write(f, fixture_begin, &runs[i]);
        }
        for (int i = 0; i < 4; i++) {
            fixture_write(f, fixture_finish, &runs[orders[o][i]]);
        }
    }
    assert_int_equal(checks_of(f, "ordered").passed, 2);
    assert_int_equal(checks_of(f, "ordered").failed, 2);
    assert_string_equal(checks_of(f, "ordered").failed_words, "y[3]");
    fixture_check_cells(f);
}

/* What begins and does not complete leaves no check. */
static void test_only_completed_runs_count(void **state)
{
    struct fixture *f = *state;
    struct fixture_run crash = completed(2, ORDERED);

    crash.outcome = OUTCOME_CRASHED;
    insert_job(f);
    store(f, varying(1));
    store(f, crash);
    assert_int_equal(checks_of(f, "ordered").passed, 0);
    assert_int_equal(checks_of(f, "ordered").unanswered, 0);
    fixture_check_cells(f);
}

static enum err_code get_run(struct tx *tx, void *arg, struct err *err)
{
    struct run_record *run = arg;
    char id[ID_SIZE];

    memcpy(id, run->id, sizeof id);
    return runs_get(tx, id, run, err);
}

static enum check_state state_of(struct fixture *f, int n)
{
    struct run_record run = { .id = "" };
    struct err err;

    fixture_id('R', n, run.id);
    assert_int_equal(store_read_sync(f->store, get_run, &run, &err), ERR_OK);
    return run.check.state;
}

static enum err_code lose_all(struct tx *tx, void *arg, struct err *err)
{
    return runs_lose_all(tx, "the service was killed", 99000, arg, err);
}

static enum err_code leave_rows(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return tx_run(tx, err,
                  "INSERT INTO run_check (run, state, words) SELECT id, 'given_up', 'x'"
                  " FROM run WHERE outcome IS NULL");
}

/* A run that was asked says so until it answers, and for ever if it does not. */
static void test_what_is_told_of_a_check(void **state)
{
    static const enum check_state after[] = { CHECK_PASSED, CHECK_NONE, CHECK_ASKED,
                                              CHECK_CUT_OFF, CHECK_ASKED };
    struct fixture *f = *state;
    struct fixture_run runs[] = {
        checked(1, ORDERED, CHECK_PASSED), checked(2, ORDERED, CHECK_PASSED),
        checked(3, ORDERED, CHECK_NONE),   checked(4, ORDERED, CHECK_CUT_OFF),
        checked(5, ORDERED, CHECK_ASKED),
    };
    int lost = 0;

    insert_job(f);
    runs[2].outcome = runs[3].outcome = OUTCOME_CRASHED;
    for (int i = 0; i < COUNT_OF(runs); i++) {
        fixture_write(f, fixture_begin, &runs[i]);
        assert_int_equal(state_of(f, i + 1), CHECK_ASKED);
        fixture_write(f, fixture_finish, &runs[i]);
        assert_int_equal(state_of(f, i + 1), after[i]);
    }
    runs[0].n = 6;
    fixture_write(f, fixture_begin, &runs[0]);
    fixture_write(f, leave_rows, NULL); /* nobody does this but another program */
    fixture_write(f, lose_all, &lost);
    assert_int_equal(lost, 1);
    assert_int_equal(state_of(f, 6), CHECK_ASKED);
    fixture_check_cells(f);
}

static enum err_code begin(struct tx *tx, void *arg, struct err *err)
{
    return runs_begin(tx, arg, err);
}

static char told[DIGEST_TEXT_SIZE];

static bool is_asked(struct fixture *f, int n, int item)
{
    struct run_intent intent = { .item = item, .intent_ms = 1000 };

    fixture_id('R', n, intent.id);
    fixture_id('J', 1, intent.job);
    fixture_write(f, begin, &intent);
    snprintf(told, sizeof told, "%s", intent.passed);
    return intent.checks;
}

/* Until two digests passed; so one that does not vary is asked, and says that it is
 * known.
 */
static void test_which_runs_are_asked(void **state)
{
    struct fixture *f = *state;
    struct fixture_run other = completed(5, ORDERED);

    insert_job(f);
    assert_true(is_asked(f, 1, ORDERED));
    assert_true(is_asked(f, 2, ORDERED)); /* nothing is known yet */
    assert_string_equal(told, "");
    store(f, completed(3, ORDERED));
    assert_true(is_asked(f, 11, ORDERED));
    assert_string_equal(told, "00000000000000000000000000000000");
    store(f, completed(4, ORDERED));
    assert_int_equal(checks_of(f, "ordered").passed, 1);
    assert_int_equal(checks_of(f, "ordered").unanswered, 0);
    assert_true(is_asked(f, 12, UNORDERED)); /* another case */
    assert_string_equal(told, "");
    assert_true(is_asked(f, 13, ORDERED_B)); /* whose environment is not known */
    assert_string_equal(told, "");
    other.digest = 7;
    store(f, other);
    assert_int_equal(checks_of(f, "ordered").digests_passed, 2);
    assert_false(is_asked(f, 14, ORDERED));
    other.n = 6;
    other.environment = 2; /* after an upgrade */
    store(f, other);
    assert_true(is_asked(f, 15, ORDERED));
    fixture_check_cells(f);
}

static struct fixture_run cut_off(int n)
{
    struct fixture_run r = checked(n, ORDERED, CHECK_CUT_OFF);

    r.outcome = OUTCOME_CRASHED;
    return r;
}

/* A reference that does not survive would else fail every run for ever. */
static void test_a_check_that_is_cut_off_is_given_up(void **state)
{
    struct fixture *f = *state;
    int n = 2;

    insert_job(f);
    vary(f, 1);
    for (int i = 0; i < CHECKS_CUT_OFF; i++) {
        assert_true(is_asked(f, 100 + i, ORDERED));
        assert_int_equal(store(f, cut_off(n++)), VERDICT_FAILING);
    }
    assert_false(is_asked(f, 110, ORDERED));
    assert_int_equal(checks_of(f, "ordered").cut_off, CHECKS_CUT_OFF);
    fixture_check_cells(f);
    for (int i = 0; i < VERDICT_HEALING_RUNS; i++) {
        store(f, completed(n++, ORDERED));
    }
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
    assert_non_null(
        strstr(fixture_cell(f, "ordered").reason, "which its process did not survive"));
    fixture_check_cells(f);
}

/* It may be what is right in one digest alone. */
static void test_a_control_needs_two_digests_that_passed(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    store(f, completed(1, ORDERED));
    store(f, completed(2, ORDERED));
    store(f, varying(3));
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
    assert_int_equal(checks_of(f, "unordered").digests_passed, 1);
    store(f, varying(4));
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    assert_int_equal(checks_of(f, "unordered").digests_passed, CHECKS_DIGESTS);
    fixture_check_cells(f);
}

static void test_commands_are_never_asked(void **state)
{
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 9),
                                fixture_item("ordered", "cpu:a", 9) };
    struct fixture_job j = fixture_job(1, items, 2);
    struct fixture *f = *state;

    for (int i = 0; i < 2; i++) {
        snprintf(items[i].stack, sizeof items[i].stack, i ? "external" : "external-cuda");
    }
    fixture_write(f, fixture_insert_job, &j);
    assert_false(is_asked(f, 21, 0));
    assert_false(is_asked(f, 22, 1));
    store(f, (struct fixture_run){ .n = 1,
                                   .job = 1,
                                   .outcome = OUTCOME_COMPLETED,
                                   .environment = 1,
                                   .distinct = 3 });
    store(f, completed(2, 1));
    store(f, completed(3, 1));
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE); /* not challenged */
    assert_false(checks_of(f, "ordered").has_reference);
    assert_int_equal(checks_of(f, "ordered").passed, 0);
    fixture_check_cells(f);
}

static enum err_code spoil(struct tx *tx, void *arg, struct err *err)
{
    return tx_run(tx, err, (const char *)arg);
}

/* The second opinion counts by itself. */
static void test_fsck_finds_what_is_not_so(void **state)
{
    static char lies[][72] = { "UPDATE cell_digest SET checked = 'failed'",
                               "UPDATE cell SET checks_passed = checks_passed + 1",
                               "UPDATE cell SET check_share_ppm = 7",
                               "UPDATE cell SET has_reference = 0",
                               "UPDATE cell SET checks_cut_off = 1",
                               "UPDATE cell SET digests_passed = 2",
                               "UPDATE run_check SET state = 'failed'" };
    int64_t counts[2];

    for (int i = 0; i < COUNT_OF(lies); i++) {
        struct fixture *f = *state;

        insert_job(f);
        store(f, completed(1, ORDERED));
        fixture_write(f, spoil, lies[i]);
        fixture_read(f, fixture_recompute, counts);
        assert_int_equal(counts[1], 1);
        fixture_teardown(state);
        fixture_setup(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_one_check_is_enough_for_one_digest),
        STORE_TEST(test_without_an_answer_nothing_is_green),
        STORE_TEST(test_out_of_bound_is_failing),
        STORE_TEST(test_a_failed_check_takes_back_what_a_control_vouched_for),
        STORE_TEST(test_the_control_that_is_wrong_is_told),
        STORE_TEST(test_another_case_s_control_is_not_told),
        STORE_TEST(test_what_is_right_must_be_what_varied),
        STORE_TEST(test_why_a_control_was_not_compared_is_told),
        STORE_TEST(test_only_controls_that_differed_are_told),
        STORE_TEST(test_what_is_wrong_with_what_differed_is_told),
        STORE_TEST(test_each_digest_says_what_it_is),
        STORE_TEST(test_any_order_gives_the_same_checks),
        STORE_TEST(test_only_completed_runs_count),
        STORE_TEST(test_what_is_told_of_a_check),
        STORE_TEST(test_which_runs_are_asked),
        STORE_TEST(test_a_check_that_is_cut_off_is_given_up),
        STORE_TEST(test_a_control_needs_two_digests_that_passed),
        STORE_TEST(test_commands_are_never_asked),
        STORE_TEST(test_fsck_finds_what_is_not_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
