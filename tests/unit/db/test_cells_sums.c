/* What a cell adds up to: runs, digests, times and circumstances. */
#include "tests/unit/db/cells_fixture.h"

#include "daemon/evidence/rate.h"

struct digests {
    int64_t cell;
    int limit;
    struct cell_digest list[16];
    int count;
};

static void collect_digest(void *arg, const struct cell_digest *digest)
{
    struct digests *d = arg;

    d->list[d->count++] = *digest;
}

static enum err_code read_digests(struct tx *tx, void *arg, struct err *err)
{
    struct digests *d = arg;

    return cells_each_digest(tx, d->cell, d->limit, collect_digest, d, err);
}

static void test_what_a_cell_adds_up_to(void **state)
{
    struct fixture *f = *state;
    struct fixture_run b = completed(3, ORDERED_B);
    struct fixture_run c = completed(4, ORDERED);
    struct digests d = { .limit = 16 };
    struct cell cell;

    insert_job(f);
    store(f, completed(2, ORDERED)); /* digest 0, ten iterations */
    b.distinct = 2;                  /* 0 nine times, 1 once */
    store(f, b);
    c.digest = 1; /* 1 ten times: as many runs as 0, fewer iterations */
    store(f, c);
    cell = fixture_cell(f, "ordered");
    assert_int_equal(cell.evidence.runs[OUTCOME_COMPLETED], 3);
    assert_int_equal(cell.evidence.iterations, 30);
    assert_int_equal(cell.evidence.distinct_digests, 2);
    assert_int_equal(cell.evidence.devices, 2);
    assert_int_equal(cell.evidence.last_completed_ms, 4900);
    assert_int_equal(cell.first_ms, 2000);
    assert_int_equal(cell.last_ms, 4900);
    assert_int_equal(cell.min_ns, 1002);
    assert_int_equal(cell.max_ns, 3004);
    assert_int_equal(cell.median_ns_sum, 6009);
    assert_int_equal(cell.times.runs, 3);
    assert_int_equal(cell.times.median_ns, times_middle(times_bucket(2003)));
    assert_string_equal(cell.digest, "00000000000000000000000000000000");
    d.cell = cell.id;
    fixture_read(f, read_digests, &d);
    assert_int_equal(d.count, 2);
    assert_int_equal(d.list[0].runs, 2);
    assert_int_equal(d.list[0].iterations, 19);
    assert_string_equal(d.list[0].weight_sum, "0000000000000000");
    assert_int_equal(d.list[1].iterations, 11);
    /* Run 4 alone surely ended on digest 1; run 3 ended on 0. */
    assert_string_equal(d.list[1].weight_sum, "0000000000000001");
    fixture_check_cells(f);
}

static void test_circumstances_are_counted_and_their_times_are_not(void **state)
{
    struct fixture *f = *state;
    struct fixture_run first = completed(1, ORDERED);
    struct fixture_run second = completed(9, ORDERED);
    struct cell cell;

    insert_job(f);
    first.circumstances = contention;
    second.circumstances = poison;
    store(f, first);
    cell = fixture_cell(f, "ordered");
    assert_int_equal(cell.min_ns + cell.max_ns + cell.median_ns_sum, 0);
    store(f, completed(2, ORDERED));
    store(f, second);
    vary(f, 4);
    cell = fixture_cell(f, "ordered");
    assert_int_equal(cell.evidence.runs[OUTCOME_COMPLETED], 3);
    assert_int_equal(cell.evidence.iterations, 30);
    assert_int_equal(cell.evidence.disturbed, 2);
    assert_int_equal(cell.evidence.contended, 1);
    assert_int_equal(cell.min_ns, 1002);
    assert_int_equal(cell.max_ns, 3002);
    assert_int_equal(cell.median_ns_sum, 2002);
    assert_int_equal(cell.times.runs, 1);
    assert_int_equal(cell.verdict, VERDICT_REPRODUCIBLE);
    assert_non_null(strstr(cell.reason, "on 1 device, 1 of the runs under contention;"));
    fixture_check_cells(f);
}

struct pair {
    const char *variant;
    struct cell control;
    enum err_code code;
};

static enum err_code read_control(struct tx *tx, void *arg, struct err *err)
{
    struct pair *p = arg;
    struct fixture_cell c = { .variant = p->variant };

    assert_int_equal(fixture_find_cell(tx, &c, err), ERR_OK);
    assert_true(c.found);
    p->code = cells_get_control(tx, c.cell.id, &p->control, err);
    return ERR_OK;
}

static void test_the_control_of_a_cost(void **state)
{
    struct fixture *f = *state;
    struct pair p = { .variant = "ordered" };
    struct fixture_run loaded = varying(5);

    insert_job(f);
    loaded.circumstances = contention;
    store(f, completed(1, ORDERED));
    store(f, varying(2));
    store(f, varying(3));
    store(f, loaded);
    fixture_read(f, read_control, &p);
    assert_int_equal(p.code,
                     ERR_NOT_FOUND); /* two runs are not enough, nor a loaded one */
    store(f, varying(4));
    for (int n = 6; n < 6 + TIMES_COST_RUNS; n++) { /* no other variant is its base */
        store(f, completed(n, ORDERED));
        store(f, completed(n + TIMES_COST_RUNS, FREE));
    }
    fixture_read(f, read_control, &p);
    assert_int_equal(p.code, ERR_OK);
    assert_string_equal(p.control.key.variant, "unordered");
    assert_int_equal(p.control.times.runs, 3);
    p.variant = "unordered";
    fixture_read(f, read_control, &p);
    assert_int_equal(p.code, ERR_NOT_FOUND);
}

/* What a library costs is not told by a model that does the same. */
static void test_a_cost_is_within_one_subject(void **state)
{
    struct fixture *f = *state;
    struct pair p = { .variant = "ordered" };
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 9),
                                fixture_item("ordered", "cpu:a", 9) };
    struct fixture_job j = fixture_job(1, items, 2);

    items[1].subject = SUBJECT_LIBRARY;
    snprintf(items[1].subject_name, sizeof items[1].subject_name, "oneDNN");
    fixture_write(f, fixture_insert_job, &j);
    for (int n = 1; n <= TIMES_COST_RUNS; n++) {
        store(f, completed(n, 0));
        store(f, completed(n + TIMES_COST_RUNS, 1));
    }
    fixture_read(f, read_control, &p);
    assert_int_equal(p.code, ERR_NOT_FOUND);
}

static void test_of_equally_frequent_digests_the_smallest_is_shown(void **state)
{
    struct fixture *f = *state;
    struct fixture_run high = completed(1, ORDERED);
    struct fixture_run low = completed(2, ORDERED);

    insert_job(f);
    high.digest = 9;
    low.digest = 8;
    store(f, high);
    store(f, low);
    assert_string_equal(fixture_cell(f, "ordered").digest,
                        "00000000000000000000000000000008");
    high.n = 3;
    store(f, high);
    assert_string_equal(fixture_cell(f, "ordered").digest,
                        "00000000000000000000000000000009");
    low.n = 4;
    store(f, low);
    assert_string_equal(fixture_cell(f, "ordered").digest,
                        "00000000000000000000000000000008");
    fixture_check_cells(f);
}

static void test_of_as_many_runs_the_digest_of_more_iterations_is_shown(void **state)
{
    for (int order = 0; order < 2; order++) {
        struct fixture *f = *state;

        insert_job(f);
        for (int i = 0; i < 2; i++) {
            struct fixture_run r = completed(i + 1, ORDERED);
            bool mixed = i == order;

            r.distinct = mixed ? 2 : 1; /* 5 nine times and 6 once, or 9 ten times */
            r.digest = mixed ? 5 : 9;
            store(f, r);
        }
        assert_string_equal(fixture_cell(f, "ordered").digest,
                            "00000000000000000000000000000009");
        fixture_check_cells(f);
        fixture_teardown(state);
        fixture_setup(state);
    }
}

enum { DEPARTING_RUNS = 24, DIGESTS = 5 };

/* What the iterations of DEPARTING_RUNS runs show, one by one.  As in the fixture: run N
 * begins with digest begins_with(N), and ends with one iteration of each of its other
 * digests. */
static int begins_with(int n)
{
    return n % 7 == 6; /* 0 is the most frequent by far, later on as well */
}

static struct departures counted(void)
{
    int64_t runs[DIGESTS] = { 0 }, iterations[DIGESTS] = { 0 }, first[DIGESTS] = { 0 };
    int64_t only[DIGESTS] = { 0 }, later = DEPARTING_RUNS * (FIXTURE_ITERATIONS - 1);
    int most = 0;

    for (int n = 0; n < DEPARTING_RUNS; n++) {
        int begins = begins_with(n), distinct = 1 + n % 4 % 3;

        for (int i = 0; i < FIXTURE_ITERATIONS; i++) {
            int late = i - (FIXTURE_ITERATIONS - distinct);
            int shown = begins + (late > 0 ? late : 0);

            iterations[shown]++;
            runs[shown] += i == 0 || late > 0;
            first[shown] += i == 0;
        }
        only[begins] += distinct == 1;
    }
    for (int d = 1; d < DIGESTS; d++) {
        most = runs[d] > runs[most] ||
                       (runs[d] == runs[most] && iterations[d] > iterations[most])
                   ? d
                   : most;
    }
    return (struct departures){ rate_of(later - iterations[most] + first[most], later),
                                rate_of(DEPARTING_RUNS - only[most], DEPARTING_RUNS) };
}

/* In the order in which the runs were, and backwards. */
static void test_departures_are_those_of_the_stored_runs(void **state)
{
    struct fixture *f = *state;
    struct departures expected = counted(), found;
    struct cell cell;

    insert_job(f);
    for (int i = 0; i < DEPARTING_RUNS; i++) {
        for (int item = UNORDERED; item <= ORDERED; item++) {
            int n = item == UNORDERED ? i : DEPARTING_RUNS - 1 - i;
            struct fixture_run r = completed(1 + 2 * n + item, item);

            r.digest = begins_with(n);
            r.distinct = 1 + n % 4 % 3;
            store(f, r);
        }
    }
    for (int item = UNORDERED; item <= ORDERED; item++) {
        cell = fixture_cell(f, asked[item].variant);
        assert_true(departures_of(&cell, &found));
        assert_int_equal(found.runs.k, expected.runs.k);
        assert_int_equal(found.runs.n, expected.runs.n);
        assert_int_equal(found.iterations.k, expected.iterations.k);
        assert_int_equal(found.iterations.n, expected.iterations.n);
    }
    assert_true(expected.iterations.k > 0 && expected.runs.k < expected.runs.n);
    fixture_check_cells(f);
}

/* A run that was too short to be timed says nothing of how long one takes. */
static void test_a_run_without_a_time(void **state)
{
    for (int first = 0; first < 2; first++) {
        struct fixture *f = *state;
        struct fixture_run untimed = completed(first ? 1 : 3, ORDERED);
        struct cell cell;

        insert_job(f);
        untimed.untimed = true;
        if (first) {
            store(f, untimed);
        }
        store(f, completed(2, ORDERED));
        if (!first) {
            store(f, untimed);
        }
        cell = fixture_cell(f, "ordered");
        assert_int_equal(cell.min_ns, 1002);
        assert_int_equal(cell.max_ns, 3002);
        assert_int_equal(cell.times.runs, 1);
        fixture_check_cells(f);
        fixture_free(f);
        fixture_setup(state);
    }
}

/* The sums of a run are those of the digest that its last iteration showed first. */
static void test_sums_of_a_digest_that_came_last(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r = completed(1, ORDERED);
    struct digests d = { .limit = 16 };

    insert_job(f);
    r.distinct = FIXTURE_ITERATIONS; /* each iteration has one of its own */
    r.sum = 7;
    store(f, r);
    d.cell = fixture_cell(f, "ordered").id;
    fixture_read(f, read_digests, &d);
    assert_int_equal(d.count, FIXTURE_ITERATIONS);
    for (int i = 0; i < d.count; i++) {
        bool last = strcmp(d.list[i].digest, "00000000000000000000000000000009") == 0;

        assert_string_equal(d.list[i].weight_sum, last ? "0000000000000007" : "");
    }
    fixture_check_cells(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_what_a_cell_adds_up_to),
        STORE_TEST(test_circumstances_are_counted_and_their_times_are_not),
        STORE_TEST(test_the_control_of_a_cost),
        STORE_TEST(test_a_cost_is_within_one_subject),
        STORE_TEST(test_of_equally_frequent_digests_the_smallest_is_shown),
        STORE_TEST(test_of_as_many_runs_the_digest_of_more_iterations_is_shown),
        STORE_TEST(test_departures_are_those_of_the_stored_runs),
        STORE_TEST(test_a_run_without_a_time),
        STORE_TEST(test_sums_of_a_digest_that_came_last),
    };

    return cmocka_run_group_tests_name("cells_sums", tests, NULL, NULL);
}
