/* How much a cell varies, read from its runs: folded, damaged and refused ones too. */
#include "tests/unit/db/cells_fixture.h"
#include "tests/unit/db/edit_fixture.h"
#include "tests/unit/db/retention_fixture.h"

#include <math.h>

#include "db/upkeep/retention.h"
#include "db/views/spread.h"

struct read {
    int64_t cell;
    struct cell_spread spread;
};

static enum err_code read_spread(struct tx *tx, void *arg, struct err *err)
{
    struct read *read = arg;

    return cell_spread_read(tx, read->cell, &read->spread, err);
}

/* Without what it allocated. */
static struct cell_spread spread_of_cell(struct fixture *f, int64_t cell)
{
    struct read read = { .cell = cell };

    fixture_read(f, read_spread, &read);
    cell_spread_release(&read.spread);
    return read.spread;
}

static struct cell_spread spread_of_control(struct fixture *f)
{
    return spread_of_cell(f, fixture_cell(f, "unordered").id);
}

static void test_sums_and_losses_of_completed_runs(void **state)
{
    struct fixture *f = *state;
    struct fixture_run failed = completed(4, UNORDERED);
    struct cell_spread s;

    insert_job(f);
    for (int n = 1; n < 4; n++) {
        struct fixture_run r = completed(n, n == 3 ? UNORDERED_B : UNORDERED);

        r.digest = n;
        r.loss = n == 2 ? 0 : 8 * n;
        store(f, r);
    }
    failed.outcome = OUTCOME_CRASHED;
    store(f, failed);
    store(f, completed(5, ORDERED)); /* another cell */
    s = spread_of_control(f);
    assert_int_equal(s.runs, 3);
    assert_int_equal(s.weight_sum.runs, 3);
    assert_int_equal(s.weight_sum.least, 1);
    assert_int_equal(s.weight_sum.greatest, 3);
    assert_int_equal(s.weight_sum.ulp, 2);
    assert_int_equal(s.loss.runs, 2);
    assert_int_equal(s.loss.ulp, 16);
    assert_string_equal(s.localisation, "");
    assert_int_equal(spread_of_cell(f, 12345).runs, 0);
}

/* With the same digest as ever, or it could not be folded: so of a control, whose two
 * digests come again and again. */
static enum err_code fold_all(struct tx *tx, void *arg, struct err *err)
{
    static const struct retention retention = { 1, 1, 400 };
    struct retention_place *place = arg;

    return retention_fold(tx, &retention, FAR_MS, place, err);
}

static enum err_code cancel_job(struct tx *tx, void *arg, struct err *err)
{
    char id[ID_SIZE];

    (void)arg;
    fixture_id('J', 1, id);
    return jobs_cancel(tx, id, FAR_MS, err);
}

static struct retention_place fold(struct fixture *f)
{
    struct retention_place place = { .old_ms = 0 };

    while (!place.finished) {
        fixture_write(f, fold_all, &place);
    }
    return place;
}

static void twenty_runs(struct fixture *f)
{
    insert_job(f);
    for (int n = 1; n <= 20; n++) {
        struct fixture_run r = completed(n < 20 ? n : n + 2 * DAY, UNORDERED);

        r.digest = n % 2;
        r.loss = 7 + n % 2;
        store(f, r);
    }
    fixture_write(f, cancel_job, NULL);
}

static void expect_equal(const struct spread *a, const struct spread *b)
{
    assert_int_equal(a->runs, b->runs);
    assert_int_equal(a->distinct, b->distinct);
    assert_int_equal(a->least, b->least);
    assert_int_equal(a->greatest, b->greatest);
    assert_true(a->standard_deviation == b->standard_deviation);
}

static void test_folded_runs_count_as_they_did(void **state)
{
    struct fixture *f = *state;
    struct cell_spread before, after;

    twenty_runs(f);
    before = spread_of_control(f);
    assert_int_equal(before.runs, 20);
    assert_int_equal(before.weight_sum.ulp, 1);
    assert_true(fold(f).folded >= 10);
    after = spread_of_control(f);
    assert_int_equal(after.runs, 20);
    expect_equal(&before.weight_sum, &after.weight_sum);
    expect_equal(&before.loss, &after.loss);
}

/* What counts as invalid, and what is not what was stored, is in no spread. */
static void test_what_does_not_count(void **state)
{
    struct fixture *f = *state;
    int64_t left;

    twenty_runs(f);
    fold(f);
    edit(f,
         "UPDATE run_summary SET loss = '7ff0000000000000' WHERE number ="
         " (SELECT min(number) FROM run_summary)");
    left = spread_of_control(f).runs;
    assert_in_range(left, 1, 19);
    assert_int_equal(spread_of_control(f).loss.not_finite, 0);
    edit(f,
         "UPDATE run SET weight_sum = 'fff0000000000000' WHERE id ="
         " (SELECT max(id) FROM run)");
    assert_int_equal(spread_of_control(f).runs, left - 1);
    edit(f, "DELETE FROM run WHERE id = (SELECT max(id) FROM run)");
    assert_int_equal(spread_of_control(f).runs, left - 1);
}

#define DIFFERENCE(a, b)                                                                 \
    "UPDATE localisation SET state = 'localised', ended_ms = 5, search = '{}',"          \
    " difference = '{\"a\":\"01R" a "\",\"b\":\"01R" b "\"}'"
#define ZEROS "0000000000000000000000"

static enum err_code insert_localisation(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return tx_run(tx, err, "INSERT INTO localisation (job, runs_min) VALUES (1, 2)");
}

/* Elements are of two runs of this very cell. */
static void test_elements_of_the_cell(void **state)
{
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 3),
                                fixture_item("unordered", "cpu:a", 3) };
    struct fixture_job j = fixture_job(1, items, 2);
    struct fixture *f = *state;
    struct fixture_run elsewhere = completed(3, 1);
    char job[ID_SIZE];

    items[1].seq = 1;
    fixture_write(f, fixture_insert_job, &j);
    fixture_write(f, insert_localisation, NULL);
    store(f, completed(1, 1));
    store(f, completed(2, 1));
    elsewhere.environment = 2;
    store(f, elsewhere);
    assert_string_equal(spread_of_control(f).localisation, "");
    edit(f, DIFFERENCE(ZEROS "1", ZEROS "2"));
    fixture_id('J', 1, job);
    assert_string_equal(spread_of_control(f).localisation, job);
    edit(f, DIFFERENCE(ZEROS "1", ZEROS "3"));
    assert_string_equal(spread_of_control(f).localisation, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_sums_and_losses_of_completed_runs),
        STORE_TEST(test_folded_runs_count_as_they_did),
        STORE_TEST(test_what_does_not_count),
        STORE_TEST(test_elements_of_the_cell),
    };

    return cmocka_run_group_tests_name("spread", tests, NULL, NULL);
}
