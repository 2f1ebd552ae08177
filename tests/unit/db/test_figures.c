/* What a scrape tells of cells: which regressed, which sums they have, and what hosts
 * showed last. */
#include "tests/unit/db/cells_fixture.h"

#include "daemon/base/mem.h"
#include "db/fleet.h"
#include "db/tx.h"
#include "db/views/changes.h"
#include "db/views/figures.h"

#define FIRST  "00000000000000000000000000000001"
#define SECOND "00000000000000000000000000000002"

static void insert_second_job(struct fixture *f)
{
    struct job_item items[ITEMS];
    struct fixture_job j = fixture_job(2, items, ITEMS);

    for (int i = 0; i < ITEMS; i++) {
        items[i] = fixture_item(asked[i].variant, asked[i].device, 100);
        run_options_read(asked[i].options, &items[i].options);
    }
    snprintf(items[FREE].no_control, sizeof items[FREE].no_control, "nothing can vary");
    fixture_write(f, fixture_insert_job, &j);
}

/* Devices cpu:a and cpu:b are on host h at *ARG. */
static enum err_code see(struct tx *tx, void *arg, struct err *err)
{
    const int64_t *at_ms = arg;
    struct host host = { .name = "h", .last_seen_ms = *at_ms };
    struct device a = {
        .id = "cpu:a", .host = "h", .backend = "cpu", .last_seen_ms = *at_ms
    };
    struct device b = a;

    copy_text(b.id, sizeof b.id, "cpu:b");
    return hosts_seen(tx, &host, err) == ERR_OK && devices_seen(tx, &a, err) == ERR_OK
               ? devices_seen(tx, &b, err)
               : err->code;
}

static void insert_jobs(struct fixture *f)
{
    int64_t at_ms = 1;

    insert_job(f);
    insert_second_job(f);
    fixture_write(f, see, &at_ms);
}

/* Run N of JOB, of ITEM, with DIGEST. */
static enum verdict run(struct fixture *f, int n, int job, int item, int digest)
{
    struct fixture_run r = completed(n, item);

    r.job = job;
    r.digest = digest;
    return store(f, r);
}

struct found {
    const char *stacks;
    int count;
    struct regressed_cell last;
};

static void take_regressed(void *arg, const struct regressed_cell *cell)
{
    struct found *found = arg;

    found->last = *cell;
    found->count++;
}

static enum err_code find_regressed(struct tx *tx, void *arg, struct err *err)
{
    const struct found *found = arg;

    return figures_each_regressed(tx, found->stacks, take_regressed, arg, err);
}

static struct found regressed_where(struct fixture *f, const char *stacks)
{
    struct found found = { .stacks = stacks };

    fixture_read(f, find_regressed, &found);
    return found;
}

static struct found regressed(struct fixture *f)
{
    return regressed_where(f, "{\"h\":null}");
}

static void test_other_bits_in_a_later_job_are_a_regression(void **state)
{
    struct fixture *f = *state;
    struct found found;

    insert_jobs(f);
    vary(f, 1);
    run(f, 2, 1, ORDERED, 7);
    assert_int_equal(run(f, 3, 1, ORDERED, 7), VERDICT_REPRODUCIBLE);
    assert_int_equal(run(f, 4, 2, ORDERED, 7), VERDICT_REPRODUCIBLE);
    assert_int_equal(regressed(f).count, 0);
    assert_int_equal(run(f, 5, 2, ORDERED, 8), VERDICT_VARIES);
    found = regressed(f);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.last.key.variant, "ordered");
    assert_string_equal(found.last.environment, FIRST);
    assert_int_equal(found.last.verdict, VERDICT_VARIES);
    assert_true(found.last.since_ms > 0);
    run(f, 6, 2, ORDERED, 9); /* a third digest is no other regression */
    assert_int_equal(regressed(f).count, 1);
}

/* A survey finds what varies seldom in its third run. */
static void test_within_one_job_it_is_a_finding(void **state)
{
    struct fixture *f = *state;

    insert_jobs(f);
    vary(f, 1);
    run(f, 2, 1, ORDERED, 7);
    assert_int_equal(run(f, 3, 1, ORDERED, 7), VERDICT_REPRODUCIBLE);
    assert_int_equal(run(f, 4, 1, ORDERED, 8), VERDICT_VARIES);
    run(f, 5, 2, ORDERED, 9);
    assert_int_equal(regressed(f).count, 0);
}

static void test_without_a_control_two_runs_are_needed(void **state)
{
    struct fixture *f = *state;

    insert_jobs(f);
    run(f, 1, 1, FREE, 7);
    run(f, 2, 2, FREE, 8);
    assert_int_equal(regressed(f).count, 0);
    run(f, 3, 1, ORDERED_B, 7);
    run(f, 4, 1, ORDERED_B, 7);
    run(f, 5, 2, ORDERED_B, 8);
    assert_int_equal(regressed(f).count, 1);
    assert_string_equal(regressed(f).last.key.variant, "ordered");
}

static void test_a_control_is_to_vary(void **state)
{
    struct fixture *f = *state;

    insert_jobs(f);
    run(f, 1, 1, UNORDERED, 7);
    run(f, 2, 1, UNORDERED, 7);
    run(f, 3, 2, UNORDERED, 8);
    assert_int_equal(regressed(f).count, 0);
}

/* A second device joins whose first run shows one digest. */
static void test_a_proof_that_waits_is_no_regression(void **state)
{
    struct fixture *f = *state;
    struct fixture_run crash = completed(5, ORDERED);

    insert_jobs(f);
    vary(f, 1);
    run(f, 2, 1, ORDERED, 7);
    assert_int_equal(run(f, 3, 1, ORDERED, 7), VERDICT_REPRODUCIBLE);
    assert_int_equal(run(f, 4, 2, UNORDERED_B, 8), VERDICT_INCONCLUSIVE);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
    assert_int_equal(regressed(f).count, 0);
    crash.outcome = OUTCOME_CRASHED;
    crash.job = 2;
    assert_int_equal(store(f, crash), VERDICT_FAILING);
    assert_int_equal(regressed(f).count, 1);
}

static enum err_code count_cells(struct tx *tx, void *arg, struct err *err)
{
    return figures_of_cells(tx, 3600 * 1000, 1000 * 1000, arg, err);
}

static enum err_code damage(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return tx_run(tx, err,
                  "UPDATE cell SET iterations = iterations + 1"
                  " WHERE verdict = 'reproducible'");
}

static void test_sums_are_of_now_and_trust_no_damaged_row(void **state)
{
    struct fixture *f = *state;
    struct fixture_run crash = completed(4, ORDERED_B);
    struct cell_figures figures;

    insert_jobs(f);
    vary(f, 2901);
    run(f, 2, 1, ORDERED, 7);
    run(f, 3, 1, ORDERED, 7);
    crash.outcome = OUTCOME_CRASHED;
    crash.environment = 2;
    store(f, crash);
    fixture_read(f, count_cells, &figures);
    assert_int_equal(figures.cells[VERDICT_VARIES], 1);
    assert_int_equal(figures.cells[VERDICT_STALE], 1); /* it ran an hour ago */
    assert_int_equal(figures.cells[VERDICT_FAILING], 1);
    assert_int_equal(figures.runs[OUTCOME_COMPLETED], 4);
    assert_int_equal(figures.runs[OUTCOME_CRASHED], 1);
    assert_int_equal(figures.iterations, 40);
    fixture_write(f, damage, NULL);
    fixture_read(f, count_cells, &figures);
    assert_int_equal(figures.cells[VERDICT_STALE], 0);
    assert_int_equal(figures.cells[VERDICT_INCONCLUSIVE], 1);
}

static enum err_code see_host(struct tx *tx, void *arg, struct err *err)
{
    struct host host = { .name = "h", .last_seen_ms = 9 };

    (void)arg;
    return hosts_seen(tx, &host, err);
}

static void test_only_what_is_in_use_counts(void **state)
{
    static const struct {
        const char *stacks;
        int count;
    } table[] = {
        { "{\"h\":null}", 1 },
        { "{\"h\":[\"x\",\"cpu\"]}", 1 },
        { "{\"h\":[\"x\"],\"other\":[\"cpu\"]}", 0 },
        { "{\"other\":null}", 0 },
        { "{}", 0 },
    };
    struct fixture *f = *state;
    struct fixture_run r = completed(9, FREE);

    insert_jobs(f);
    vary(f, 1);
    run(f, 2, 1, ORDERED, 7);
    run(f, 3, 1, ORDERED, 7);
    run(f, 4, 2, ORDERED, 8);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_int_equal(regressed_where(f, table[i].stacks).count, table[i].count);
    }
    r.environment = 2;
    store(f, r); /* after run 901, of vary */
    assert_int_equal(regressed(f).count, 1);
    r.n = 902;
    store(f, r);
    assert_int_equal(regressed(f).count, 0);
    r.n = 903;
    r.environment = 1;
    store(f, r);
    assert_int_equal(regressed(f).count, 1);
    fixture_write(f, see_host, NULL); /* the host has the device no longer */
    assert_int_equal(regressed(f).count, 0);
}

struct dissent_found {
    char text[128];
};

static void take_dissenter(void *arg, const char *device, int64_t cells)
{
    struct dissent_found *found = arg;
    size_t used = strlen(found->text);

    snprintf(found->text + used, sizeof found->text - used, "%s:%d ", device, (int)cells);
}

static enum err_code find_dissenters(struct tx *tx, void *arg, struct err *err)
{
    return figures_each_dissenter(tx, "{\"h\":[\"cpu\"]}", take_dissenter, arg, err);
}

static enum err_code name_one(struct tx *tx, void *arg, struct err *err)
{
    return tx_run(
               tx, err,
               "INSERT INTO cell_dissenter (cell, device, since_ms)"
               " SELECT c.id, ?, 5 FROM cell c JOIN case_key k ON k.number = c.case_key"
               " WHERE k.variant = 'ordered'",
               (const char *)arg) == ERR_OK
               ? tx_run(tx, err,
                        "UPDATE cell SET verdict = 'devices_disagree'"
                        " WHERE verdict = 'varies' AND distinct_digests = 2")
               : err->code;
}

/* One that went away, or was measured in another environment last, is cured. */
static void test_a_dissenter_that_is_not_in_use_counts_for_nothing(void **state)
{
    static char gone[] = "gone", present[] = "cpu:a";
    struct fixture *f = *state;
    struct dissent_found found = { "" };

    insert_jobs(f);
    vary(f, 1);
    run(f, 2, 1, ORDERED, 7);
    run(f, 3, 1, ORDERED, 7);
    run(f, 4, 2, ORDERED, 8);
    fixture_write(f, name_one, gone);
    assert_int_equal(regressed(f).count, 0);
    fixture_read(f, find_dissenters, &found);
    assert_string_equal(found.text, "");
    fixture_write(f, name_one, present);
    assert_int_equal(regressed(f).count, 1);
    assert_int_equal(regressed(f).last.verdict, VERDICT_DEVICES_DISAGREE);
    fixture_read(f, find_dissenters, &found);
    assert_string_equal(found.text, "cpu:a:1 ");
}

static enum err_code change(struct tx *tx, void *arg, struct err *err)
{
    return changes_seen(tx, "h", 5, arg, err);
}

static enum err_code report(struct tx *tx, void *arg, struct err *err)
{
    const int64_t *number = arg;

    return changes_report(tx, *number, 6, *number == 1 ? "[1]" : "[2]", err);
}

struct told {
    int64_t seen, measuring;
    int reported;
    char reports[32];
    bool back, forth, nowhere;
};

static void take_reported(void *arg, const struct reported_change *change)
{
    struct told *told = arg;

    told->reported++;
    copy_text(told->reports, sizeof told->reports, change->reports);
    assert_string_equal(change->host, "h");
    assert_int_equal(change->at_ms, 5);
}

static enum err_code tell(struct tx *tx, void *arg, struct err *err)
{
    struct told *told = arg;

    told->reported = 0;
    if (figures_open_changes(tx, &told->seen, &told->measuring, err) != ERR_OK ||
        figures_each_reported(tx, take_reported, told, err) != ERR_OK ||
        figures_went_back(tx, "h", SECOND, FIRST, &told->back, err) != ERR_OK ||
        figures_went_back(tx, "h", FIRST, SECOND, &told->forth, err) != ERR_OK) {
        return err->code;
    }
    return figures_went_back(tx, "h", FIRST, FIRST, &told->nowhere, err);
}

static void test_the_newest_report_of_a_host_counts(void **state)
{
    static char facts[3][32] = { "{\"host\":{\"kernel\":\"1\"}}",
                                 "{\"host\":{\"kernel\":\"2\"}}",
                                 "{\"host\":{\"kernel\":\"3\"}}" };
    struct fixture *f = *state;
    struct fixture_run r = completed(2, ORDERED);
    struct told told;

    insert_jobs(f);
    for (int i = 0; i < 3; i++) {
        fixture_write(f, change, facts[i]);
    }
    fixture_read(f, tell, &told);
    assert_int_equal(told.seen, 2);
    assert_int_equal(told.reported, 0);
    assert_false(told.back || told.forth); /* nothing was run */
    for (int64_t number = 1; number <= 2; number++) {
        fixture_write(f, report, &number);
        fixture_read(f, tell, &told);
        assert_int_equal(told.reported, 1);
        assert_string_equal(told.reports, number == 1 ? "[1]" : "[2]");
        assert_int_equal(told.seen, 2 - number);
    }
    assert_int_equal(told.measuring, 0);
    run(f, 1, 1, ORDERED, 7);
    r.environment = 2;
    store(f, r);
    run(f, 3, 1, ORDERED, 7);
    fixture_read(f, tell, &told);
    assert_true(told.back);
    assert_false(told.forth || told.nowhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_other_bits_in_a_later_job_are_a_regression),
        STORE_TEST(test_within_one_job_it_is_a_finding),
        STORE_TEST(test_without_a_control_two_runs_are_needed),
        STORE_TEST(test_a_control_is_to_vary),
        STORE_TEST(test_a_proof_that_waits_is_no_regression),
        STORE_TEST(test_sums_are_of_now_and_trust_no_damaged_row),
        STORE_TEST(test_only_what_is_in_use_counts),
        STORE_TEST(test_a_dissenter_that_is_not_in_use_counts_for_nothing),
        STORE_TEST(test_the_newest_report_of_a_host_counts),
    };

    return cmocka_run_group_tests_name("figures", tests, NULL, NULL);
}
