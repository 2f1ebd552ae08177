/* Runs that are folded count as they did: which are kept, what comes late, and what is
 * damaged. */
#include "tests/unit/db/faults_fixture.h"
#include "tests/unit/db/retention_fixture.h"

#include "daemon/base/mem.h"
#include "db/integrity/cell_repair.h"
#include "db/upkeep/retention.h"
#include "db/upkeep/summaries.h"

enum { ITEM_CONTROL, ITEM_ORDERED };

static void insert_two_items(struct fixture *f)
{
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 30),
                                fixture_item("ordered", "cpu:a", 30) };
    struct fixture_job j = fixture_job(1, items, 2);

    items[1].seq = 1;
    j.job.runs_total = 60;
    fixture_write(f, fixture_insert_job, &j);
}

static enum err_code cancel(struct tx *tx, void *arg, struct err *err)
{
    char id[ID_SIZE];

    fixture_id('J', 1, id);
    (void)arg;
    return jobs_cancel(tx, id, FAR_MS, err);
}

static void run(struct fixture *f, int n, int item, int digest)
{
    struct fixture_run r = { .n = n, .job = 1, .item = item, .environment = 1 };

    r.outcome = OUTCOME_COMPLETED;
    r.digest = digest;
    fixture_write(f, fixture_whole_run, &r);
}

struct seen {
    int n;
    bool stored;
    int64_t runs; /* of the summary that it is in */
};

static enum err_code look(struct tx *tx, void *arg, struct err *err)
{
    struct seen *seen = arg;
    struct run_summary *summary = xcalloc(1, sizeof *summary);
    struct run_record record;
    char id[ID_SIZE];

    fixture_id('R', seen->n, id);
    seen->stored = runs_get(tx, id, &record, err) == ERR_OK;
    seen->runs = summaries_find(tx, id, summary, err) == ERR_OK ? summary->runs : 0;
    free(summary);
    return ERR_OK;
}

static void expect_stored(struct fixture *f, int n)
{
    struct seen seen = { .n = n };

    fixture_read(f, look, &seen);
    assert_true(seen.stored);
    assert_int_equal(seen.runs, 0);
}

static void expect_folded(struct fixture *f, int n, int64_t with)
{
    struct seen seen = { .n = n };

    fixture_read(f, look, &seen);
    assert_false(seen.stored);
    assert_int_equal(seen.runs, with);
}

struct fold {
    struct retention retention;
    struct retention_place place;
    int64_t now_ms;
};

static enum err_code fold_slice(struct tx *tx, void *arg, struct err *err)
{
    struct fold *fold = arg;

    return retention_fold(tx, &fold->retention, fold->now_ms, &fold->place, err);
}

static int64_t fold_with(struct fixture *f, int days, int runs)
{
    struct fold fold = { .retention = { days, runs, 400 }, .now_ms = FAR_MS };

    while (!fold.place.finished) {
        fixture_write(f, fold_slice, &fold);
    }
    return fold.place.folded;
}

/* Ten runs of one cell, the last of them two days after the first nine. */
static void ten_runs(struct fixture *f)
{
    insert_two_items(f);
    for (int n = 1; n < 10; n++) {
        run(f, n, ITEM_ORDERED, n == 6);
    }
    run(f, 10 + 2 * DAY, ITEM_ORDERED, 0);
}

static void test_what_is_kept(void **state)
{
    struct fixture *f = *state;

    ten_runs(f);
    assert_int_equal(fold_with(f, 1, 1), 0); /* the job is open */
    fixture_write(f, cancel, NULL);
    assert_int_equal(fold_with(f, 0, 1), 0);
    assert_int_equal(fold_with(f, 3, 1), 0);
    assert_int_equal(fold_with(f, 1, 10), 0);
    /* 1 and 6 were checked; 2 and 9 are the first and the last that may be folded. */
    assert_int_equal(fold_with(f, 1, 1), 5);
    for (int n = 1; n < 10; n++) {
        if (n == 1 || n == 2 || n == 6 || n == 9) {
            expect_stored(f, n);
        } else {
            expect_folded(f, n, 5);
        }
    }
    expect_stored(f, 10 + 2 * DAY);
    assert_int_equal(fold_with(f, 1, 1), 0); /* again */
    assert_clean(f, 0);
}

static void test_the_newest_are_kept(void **state)
{
    struct fixture *f = *state;

    ten_runs(f);
    fixture_write(f, cancel, NULL);
    assert_int_equal(fold_with(f, 1, 4), 2); /* of 2, 3, 4 and 5; 7 is among the newest */
    expect_folded(f, 3, 2);
    expect_folded(f, 4, 2);
    expect_stored(f, 5);
    expect_stored(f, 7);
    assert_clean(f, 0);
}

/* A clock that is far ahead ages nothing that no later run is stored for. */
static void test_age_is_counted_from_the_latest_run(void **state)
{
    struct fixture *f = *state;

    insert_two_items(f);
    for (int n = 1; n < 10; n++) {
        run(f, n, ITEM_ORDERED, 0);
    }
    fixture_write(f, cancel, NULL);
    assert_int_equal(fold_with(f, 1, 1), 0);
}

/* A failure that comes late, with an id between those that are folded. */
static void test_a_late_failure_among_folded_runs(void **state)
{
    struct fixture_run late = { .n = 5,
                                .job = 1,
                                .item = ITEM_ORDERED,
                                .outcome = OUTCOME_CRASHED,
                                .environment = 1 };
    struct fixture *f = *state;

    insert_two_items(f);
    fixture_write(f, fixture_begin, &late);
    for (int n = 1; n < 10; n++) {
        if (n != late.n) {
            run(f, n, ITEM_ORDERED, 0);
        }
    }
    run(f, 10 + 2 * DAY, ITEM_ORDERED, 0);
    fixture_write(f, cancel, NULL);
    assert_int_equal(fold_with(f, 1, 1), 5); /* 3, 4, 6, 7, 8 */
    fixture_write(f, fixture_finish, &late);
    assert_int_equal(fixture_cell(f, "ordered").evidence.completed_since_failure, 5);
    assert_clean(f, 0);
    fixture_write(f, rebuild_all, NULL);
    assert_int_equal(fixture_cell(f, "ordered").evidence.completed_since_failure, 5);
}

static enum err_code damage(struct tx *tx, void *arg, struct err *err)
{
    int rc = sqlite3_exec(tx->db, arg, NULL, NULL, NULL);

    return rc == SQLITE_OK ? ERR_OK : tx_error(tx->db, rc, err);
}

/* A row that is not what was stored would be one in a summary, where nothing shows it. */
static void test_a_damaged_run_is_not_folded(void **state)
{
    struct fixture *f = *state;

    ten_runs(f);
    fixture_write(f, cancel, NULL);
    fixture_write(f, damage,
                  (void *)(uintptr_t) "UPDATE run SET max_rss_kb = 5"
                                      " WHERE id = '01R00000000000000000000004'");
    assert_int_equal(fold_with(f, 1, 1), 4);
    expect_stored(f, 4);
    expect_folded(f, 5, 4);
}

static enum err_code rebuild_one(struct tx *tx, void *arg, struct err *err)
{
    return cells_rebuild(tx, *(int64_t *)arg, FAR_MS, err);
}

/* A cell is built anew from its summaries whole or not; what of them is damaged counts as
 * nothing, and is in quarantine. */
static void test_rebuilding_from_summaries(void **state)
{
    struct fixture *f = *state;
    struct cell cell;

    ten_runs(f);
    fixture_write(f, cancel, NULL);
    assert_int_equal(fold_with(f, 1, 4), 2);
    assert_int_equal(fold_with(f, 1, 1), 3); /* a second summary */
    cell = fixture_cell(f, "ordered");
    fail_each_statement(f, true, rebuild_one, &cell.id, sizeof cell.id);
    assert_clean(f, 0);
    fixture_write(f, damage,
                  (void *)(uintptr_t) "UPDATE run_summary SET max_ns = 1000000000");
    fixture_write(f, damage,
                  (void *)(uintptr_t) "UPDATE run SET max_rss_kb = 5"
                                      " WHERE id = '01R00000000000000000000002'");
    fail_each_statement(f, true, rebuild_one, &cell.id, sizeof cell.id);
    cell = fixture_cell(f, "ordered");
    assert_int_equal(cell.verdict, VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(cell.reason, "damaged in the database"));
    assert_int_equal(cell.evidence.runs[OUTCOME_COMPLETED], 10 - 5 - 1);
}

static void count_fault(void *arg, const char *line)
{
    (void)line;
    ++*(int *)arg;
}

/* Whatever a summary says counts: fsck sees each change of it. */
static void test_fsck_sees_damaged_summaries(void **state)
{
    static const char *const damages[] = {
        "UPDATE run_summary SET iterations = iterations + 1",
        "UPDATE run_summary SET digest = '11111111111111111111111111111111'",
        "UPDATE run_summary SET input_digest = '11111111111111111111111111111111'",
        "UPDATE run_summary SET circumstances = '{\"contention\":1}'",
        "UPDATE run_summary SET claim = 'deterministic'",
        "UPDATE run_summary SET median_ns_sum = median_ns_sum + 1",
        "UPDATE run_summary SET times = '{\"3\":5}'",
        "UPDATE run_summary SET times = '{\"-1\":2,\"999999999\":3}'",
        "UPDATE run_summary SET min_ns = 1",
        "UPDATE run_summary SET max_ns = 1000000000",
        "UPDATE run_summary SET refused = 1",
        "UPDATE run_summary SET first_ms = 1",
        "UPDATE run_summary SET last_ms = last_ms + 100000000000",
        "UPDATE run_summary SET item = 0",
        ("UPDATE run_summary SET runs = runs - 1, ids = substr(ids, 27),"
         " first_run = CAST(substr(ids, 27, 26) AS TEXT)"),
        ("UPDATE run_summary SET ids = CAST(substr(ids, 1, 26) || substr(ids, 53, 26)"
         " || substr(ids, 27, 26) || substr(ids, 79) AS BLOB)"),
        ("UPDATE run_summary SET"
         " ids = CAST('01R00000000000000000000002' || substr(ids, 27) AS BLOB),"
         " first_run = '01R00000000000000000000002'"),
        "DELETE FROM run_summary",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        struct fsck_counts counts;
        struct err err;
        int faults = 0;

        ten_runs(f);
        fixture_write(f, cancel, NULL);
        assert_int_equal(fold_with(f, 1, 1), 5);
        fixture_write(f, damage, (void *)(uintptr_t)damages[i]);
        assert_int_equal(fsck_database(f->path, count_fault, &faults, &counts, &err),
                         ERR_OK);
        if (faults == 0) {
            fail_msg("not seen: %s", damages[i]);
        }
        fixture_free(f);
        fixture_setup(state);
        f = *state;
    }
}

static enum err_code repair(struct tx *tx, void *arg, struct err *err)
{
    return cell_repair(tx, 1, FAR_MS, arg, err);
}

/* A summary that is not what was stored proves nothing: its cell is not built anew from
 * it, and is no longer good. */
static void test_a_damaged_summary_is_no_evidence(void **state)
{
    static const char *const damages[] = {
        "UPDATE run_summary SET iterations = iterations + 1",
        "UPDATE run_summary SET median_ns_sum = median_ns_sum + 1",
        "UPDATE run_summary SET sum = sum + 1",
        "DELETE FROM run_summary",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        enum cell_repair repaired = CELL_REBUILT;
        struct cell cell;

        ten_runs(f);
        fixture_write(f, cancel, NULL);
        assert_int_equal(fold_with(f, 1, 1), 5);
        fixture_write(f, damage, (void *)(uintptr_t)damages[i]);
        fixture_write(f, repair, &repaired);
        assert_int_equal(repaired, CELL_ISOLATED);
        cell = fixture_cell(f, "ordered");
        assert_int_equal(cell.verdict, VERDICT_INCONCLUSIVE);
        assert_int_equal(cell.evidence.runs[OUTCOME_COMPLETED], 10);
        fixture_free(f);
        fixture_setup(state);
        f = *state;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_what_is_kept),
        STORE_TEST(test_the_newest_are_kept),
        STORE_TEST(test_age_is_counted_from_the_latest_run),
        STORE_TEST(test_a_late_failure_among_folded_runs),
        STORE_TEST(test_a_damaged_run_is_not_folded),
        STORE_TEST(test_rebuilding_from_summaries),
        STORE_TEST(test_fsck_sees_damaged_summaries),
        STORE_TEST(test_a_damaged_summary_is_no_evidence),
    };

    return cmocka_run_group_tests_name("retention", tests, NULL, NULL);
}
