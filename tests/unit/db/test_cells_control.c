/* The cardinal rule: only a control of the same workload, version, size, dtype, seed and
 * environment vouches for a case, and only one of the kind that the case is exposed to.
 * Each part of it alone makes a control another's. */
#include "tests/unit/db/store_fixture.h"

#include "daemon/base/buf.h"
#include "db/fsck.h"
#include "db/tx.h"

enum { CONTROL, ORDERED, PATCHED, ITEMS };

enum difference {
    NO_DIFFERENCE,
    WORKLOAD,
    VERSION,
    SIZE,
    DTYPE,
    SEED,
    ALL_OF_THEM,
    KIND,        /* of the control, not of the case */
    ENVIRONMENT, /* of the run */
    DIFFERENCES
};

static const char *const named[DIFFERENCES] = { "none", "workload", "version",
                                                "size", "dtype",    "seed",
                                                "all",  "kind",     "environment" };

static void make_differ(struct case_key *key, enum difference d)
{
    bool all = d == ALL_OF_THEM;

    key->workload[0] = d == WORKLOAD || all ? 'b' : key->workload[0];
    key->version += d == VERSION || all;
    key->size[0] = d == SIZE || all ? 'S' : key->size[0];
    key->dtype[0] = d == DTYPE || all ? 'F' : key->dtype[0];
    key->seed += d == SEED || all;
}

/* A control whose case is another's in D, and two variants that are none. */
static void insert_job(struct fixture *f, enum difference d)
{
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 9),
                                fixture_item("ordered", "cpu:a", 9),
                                fixture_item("patched", "cpu:a", 9) };
    struct fixture_job j = fixture_job(1, items, ITEMS);

    make_differ(&items[CONTROL].key, d);
    snprintf(items[CONTROL].kind, sizeof items[CONTROL].kind, "%s",
             d == KIND ? "entropy" : "");
    fixture_write(f, fixture_insert_job, &j);
}

static void store(struct fixture *f, int n, int item, int environment, int distinct)
{
    struct fixture_run r = { .n = n,
                             .job = 1,
                             .item = item,
                             .outcome = OUTCOME_COMPLETED,
                             .environment = environment,
                             .distinct = distinct };

    fixture_write(f, fixture_whole_run, &r);
}

static void vary(struct fixture *f, int n, enum difference d)
{
    store(f, n, CONTROL, d == ENVIRONMENT ? 2 : 1, 3);
    store(f, n + 900, CONTROL, d == ENVIRONMENT ? 2 : 1, 3);
}

static void start_anew(void **state)
{
    fixture_teardown(state);
    fixture_setup(state);
}

static void check_verdict(struct fixture *f, enum difference d)
{
    struct cell cell = fixture_cell(f, "ordered");
    bool earned = d == NO_DIFFERENCE;

    if (cell.verdict != (earned ? VERDICT_REPRODUCIBLE : VERDICT_INCONCLUSIVE) ||
        (!earned && !strstr(cell.reason, "the control was not measured"))) {
        fail_msg("control that differs in %s: %s: %s", named[d],
                 verdict_name(cell.verdict), cell.reason);
    }
    fixture_check_cells(f);
}

static void test_only_the_own_control_vouches(void **state)
{
    for (int d = 0; d < DIFFERENCES; d++) {
        insert_job(*state, (enum difference)d);
        vary(*state, 1, (enum difference)d);
        store(*state, 2, ORDERED, 1, 1);
        store(*state, 3, ORDERED, 1, 1);
        check_verdict(*state, (enum difference)d);
        start_anew(state);
    }
}

/* The cells that depend on a control are found when it varies. */
static void test_only_the_own_control_vouches_when_it_comes_last(void **state)
{
    for (int d = 0; d < DIFFERENCES; d++) {
        insert_job(*state, (enum difference)d);
        store(*state, 1, ORDERED, 1, 1);
        store(*state, 2, ORDERED, 1, 1);
        vary(*state, 3, (enum difference)d);
        check_verdict(*state, (enum difference)d);
        start_anew(state);
    }
}

/* The latest job says which variants are controls: only its own siblings are affected. */
static void test_a_new_control_is_one_of_its_case(void **state)
{
    for (int d = 0; d < DIFFERENCES; d++) {
        struct job_item item = fixture_item("patched", "cpu:a", 1);
        struct fixture_job j = fixture_job(2, &item, 1);

        insert_job(*state, NO_DIFFERENCE);
        make_differ(&item.key, (enum difference)d);
        item.is_control = true;
        snprintf(item.kind, sizeof item.kind, "%s", d == KIND ? "choice" : "race");
        store(*state, 1, ORDERED, 1, 1);
        store(*state, 2, ORDERED, 1, 1);
        store(*state, 3, PATCHED, d == ENVIRONMENT ? 2 : 1, 3);
        store(*state, 4, PATCHED, d == ENVIRONMENT ? 2 : 1, 3);
        fixture_write(*state, fixture_insert_job, &j);
        check_verdict(*state, (enum difference)d);
        start_anew(state);
    }
}

/* What is exposed to entropy is vouched for by entropy. */
static void test_a_changed_kind_is_judged_anew(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 1);
    struct fixture_job j = fixture_job(2, &item, 1);

    insert_job(f, KIND);
    vary(f, 1, KIND);
    store(f, 2, ORDERED, 1, 1);
    store(f, 3, ORDERED, 1, 1);
    check_verdict(f, KIND);
    snprintf(item.kind, sizeof item.kind, "entropy");
    fixture_write(f, fixture_insert_job, &j);
    check_verdict(f, NO_DIFFERENCE);
    snprintf(item.kind, sizeof item.kind, "poison");
    j = fixture_job(3, &item, 1);
    fixture_write(f, fixture_insert_job, &j);
    check_verdict(f, KIND);
}

/* Two controls: that of the own kind did not vary on one device, the other did. */
static void test_another_kind_does_not_stand_in(void **state)
{
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 9),
                                fixture_item("ordered", "cpu:a", 9),
                                fixture_item("unseeded", "cpu:a", 9),
                                fixture_item("unordered", "cpu:b", 9) };
    struct fixture_job j = fixture_job(1, items, 4);
    struct fixture_run elsewhere = { .n = 5,
                                     .job = 1,
                                     .item = 3,
                                     .outcome = OUTCOME_COMPLETED,
                                     .environment = 1,
                                     .digest = 7 };

    items[2].is_control = true;
    snprintf(items[2].kind, sizeof items[2].kind, "entropy");
    fixture_write(f, fixture_insert_job, &j);
    store(f, 1, ORDERED, 1, 1);
    store(f, 2, ORDERED, 1, 1);
    store(f, 3, 2, 1, 3);
    store(f, 4, CONTROL, 1, 1);
    fixture_write(f, fixture_whole_run, &elsewhere);
    assert_int_equal(fixture_cell(f, "unseeded").verdict, VERDICT_VARIES);
    assert_int_equal(fixture_cell(f, "unordered").verdict, VERDICT_INCONCLUSIVE);
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_INCONCLUSIVE);
    assert_non_null(
        strstr(fixture_cell(f, "ordered").reason, "differed only between devices"));
    fixture_check_cells(f);
}

static void test_what_varies_is_no_control_by_that(void **state)
{
    struct fixture *f = *state;

    insert_job(f, NO_DIFFERENCE);
    store(f, 1, ORDERED, 1, 1);
    store(f, 2, ORDERED, 1, 1);
    store(f, 3, PATCHED, 1, 3);
    assert_int_equal(fixture_cell(f, "patched").verdict, VERDICT_VARIES);
    check_verdict(f, SIZE); /* as little as any other's control */
}

/* Runs elsewhere are evidence of another cell. */
static void test_environments_are_not_mixed(void **state)
{
    struct fixture *f = *state;

    insert_job(f, NO_DIFFERENCE);
    store(f, 1, ORDERED, 1, 1);
    store(f, 2, ORDERED, 2, 1);
    vary(f, 3, NO_DIFFERENCE);
    assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_COMPLETED], 1);
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_INCONCLUSIVE);
    fixture_check_cells(f);
}

struct found_control {
    int64_t of;
    struct cell control;
    enum err_code code;
};

static enum err_code find_cost(struct tx *tx, void *arg, struct err *err)
{
    struct found_control *cost = arg;

    cost->code = cells_get_control(tx, cost->of, &cost->control, err);
    return cost->code == ERR_NOT_FOUND ? ERR_OK : cost->code;
}

static void test_cost_is_taken_against_the_own_control(void **state)
{
    for (int d = 0; d < DIFFERENCES; d++) {
        struct found_control cost = { .of = 0 };

        insert_job(*state, (enum difference)d);
        store(*state, 1, ORDERED, 1, 1);
        for (int n = 2; n < 2 + TIMES_COST_RUNS; n++) {
            vary(*state, n, (enum difference)d);
        }
        cost.of = fixture_cell(*state, "ordered").id;
        fixture_read(*state, find_cost, &cost);
        if (cost.code != (d == NO_DIFFERENCE || d == KIND ? ERR_OK : ERR_NOT_FOUND)) {
            fail_msg("cost against a control that differs in %s", named[d]);
        }
        start_anew(state);
    }
}

static void test_controls_have_no_cost(void **state)
{
    struct fixture *f = *state;
    struct found_control cost = { .of = 0 };

    insert_job(f, NO_DIFFERENCE);
    for (int n = 1; n <= TIMES_COST_RUNS; n++) {
        vary(f, n, NO_DIFFERENCE);
    }
    cost.of = fixture_cell(f, "unordered").id;
    fixture_read(f, find_cost, &cost);
    assert_int_equal(cost.code, ERR_NOT_FOUND);
}

static enum err_code put_together(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return tx_run(tx, err, "UPDATE case_key SET siblings = 1");
}

static void add_line(void *arg, const char *line)
{
    buf_printf(arg, "%s\n", line);
}

/* fsck of cases that differ in D, TOGETHER by hand or as they were made; what it says. */
static struct buf check_siblings(void **state, enum difference d, bool together)
{
    struct fixture *f = *state;
    struct buf lines = BUF_INIT;
    struct fsck_counts counts;
    struct err err;

    insert_job(f, d);
    if (together) {
        fixture_write(f, put_together, NULL);
    }
    fixture_close(f);
    assert_int_equal(fsck_database(f->path, add_line, &lines, &counts, &err), ERR_OK);
    fixture_open(f);
    start_anew(state);
    return lines;
}

static void test_fsck_finds_siblings_together(void **state)
{
    for (int d = NO_DIFFERENCE; d <= ALL_OF_THEM; d++) {
        struct buf lines = check_siblings(state, (enum difference)d, false);

        if (lines.data && strstr(lines.data, "siblings")) {
            fail_msg("cases that differ in %s: %s", named[d], lines.data);
        }
        buf_release(&lines);
    }
}

/* The second opinion knows the same five parts. */
static void test_fsck_parts_what_are_no_siblings(void **state)
{
    for (int d = NO_DIFFERENCE; d <= ALL_OF_THEM; d++) {
        struct buf lines = check_siblings(state, (enum difference)d, true);

        if (!!strstr(lines.data ? lines.data : "", "it is not with its siblings") !=
            (d != NO_DIFFERENCE)) {
            fail_msg("cases that differ in %s: %s", named[d], lines.data);
        }
        buf_release(&lines);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_only_the_own_control_vouches),
        STORE_TEST(test_only_the_own_control_vouches_when_it_comes_last),
        STORE_TEST(test_a_new_control_is_one_of_its_case),
        STORE_TEST(test_a_changed_kind_is_judged_anew),
        STORE_TEST(test_another_kind_does_not_stand_in),
        STORE_TEST(test_what_varies_is_no_control_by_that),
        STORE_TEST(test_environments_are_not_mixed),
        STORE_TEST(test_cost_is_taken_against_the_own_control),
        STORE_TEST(test_controls_have_no_cost),
        STORE_TEST(test_fsck_finds_siblings_together),
        STORE_TEST(test_fsck_parts_what_are_no_siblings),
    };

    return cmocka_run_group_tests_name("cells_control", tests, NULL, NULL);
}
