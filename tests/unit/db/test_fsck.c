/* What fsck verified stays verified until it changes, whoever changes it. */
#include "tests/unit/db/cells_fixture.h"

#include "db/connection.h"
#include "db/fsck.h"
#include "db/tx.h"
#include "db/upkeep/marks.h"

#define NOW_MS ((int64_t)1000 * MARKS_MS)

struct told {
    int faults;
};

static void count_fault(void *arg, const char *line)
{
    (void)line;
    ((struct told *)arg)->faults++;
}

static struct fsck_counts check_at(struct fixture *f, int64_t now_ms, bool full,
                                   int readers)
{
    struct told told = { 0 };
    const struct fsck fsck = { .full = full,
                               .marks = true,
                               .readers = readers,
                               .now_ms = now_ms,
                               .report = count_fault,
                               .arg = &told };
    struct fsck_counts counts;
    struct err err = { .message = "" };

    if (fsck_file(f->path, &fsck, &counts, &err) != ERR_OK) {
        fail_msg("fsck: %s", err.message);
    }
    assert_false(counts.marks_failed);
    assert_int_equal(told.faults == 0,
                     !counts.cells_differing && !counts.dangling && !counts.damaged);
    return counts;
}

static struct fsck_counts check(struct fixture *f)
{
    return check_at(f, NOW_MS, false, 1);
}

static void three_cells(struct fixture *f)
{
    insert_job(f);
    store(f, completed(1, ORDERED));
    store(f, completed(2, ORDERED));
    store(f, completed(3, FREE));
    vary(f, 4);
}

static void expect(const struct fsck_counts *counts, int64_t cells, int64_t trusted,
                   int64_t differing)
{
    assert_int_equal(counts->cells, cells);
    assert_int_equal(counts->cells_trusted, trusted);
    assert_int_equal(counts->cells_differing, differing);
}

static void test_what_did_not_change_is_trusted(void **state)
{
    struct fixture *f = *state;
    struct fsck_counts counts;

    three_cells(f);
    counts = check(f);
    expect(&counts, 3, 0, 0);
    counts = check(f);
    expect(&counts, 3, 3, 0);
    store(f, completed(6, ORDERED));
    counts = check(f);
    expect(&counts, 3, 2, 0); /* its verdict depends on others; these did not change */
    counts = check_at(f, NOW_MS, true, 1);
    expect(&counts, 3, 0, 0);
    counts = check_at(f, NOW_MS + MARKS_MS, false, 1);
    expect(&counts, 3, 3, 0);
    counts = check_at(f, NOW_MS + MARKS_MS + MARKS_MS + 1, false, 1);
    expect(&counts, 3, 0, 0); /* too long ago */
}

static enum err_code execute(struct tx *tx, void *arg, struct err *err)
{
    int rc = sqlite3_exec(tx->db, arg, NULL, NULL, NULL);

    return rc == SQLITE_OK ? ERR_OK : tx_error(tx->db, rc, err);
}

/* On either side, after all was verified. */
static void test_changes_of_what_was_verified_are_seen(void **state)
{
    static const char *const changes[] = {
        "UPDATE run SET digest = '11111111111111111111111111111111' WHERE cell = 1",
        "UPDATE run SET iterations = 9 WHERE id = (SELECT min(id) FROM run)",
        "UPDATE run SET cell = 2 WHERE id = (SELECT min(id) FROM run)",
        "UPDATE run_check SET state = 'given_up', digest = NULL",
        "DELETE FROM run_check",
        "UPDATE run_digest SET iterations = iterations + 1",
        "DELETE FROM run_digest",
        ("INSERT INTO run_digest SELECT run, '11111111111111111111111111111111', 1, 4"
         " FROM run_digest LIMIT 1"),
        "UPDATE job_item SET options = '{\"contention\":1}' WHERE seq = 1",
        "UPDATE job_item SET subject = 'library', subject_name = 'x' WHERE seq = 1",
        "UPDATE cell SET iterations = 99 WHERE id = 1",
        "UPDATE cell SET failed_check_words = 'x' WHERE id = 1",
        "UPDATE cell SET verdict = 'inconclusive' WHERE verdict = 'reproducible'",
        "UPDATE cell SET reason = 'because' WHERE id = 2",
        "UPDATE cell_digest SET runs = runs + 1 WHERE cell = 1",
        "UPDATE cell_digest SET checked = NULL",
        "UPDATE cell_time SET runs = runs + 1 WHERE cell = 1",
        "UPDATE cell_algorithm SET runs = runs + 1 WHERE cell = 1",
        "UPDATE cell_algorithm SET algorithm = 'another' WHERE cell = 1",
        "DELETE FROM cell_algorithm WHERE cell = 1",
        "UPDATE cell_device SET varied_ms = varied_ms + 1",
        "UPDATE cell_digest SET weight_sum = '3ff0000000000001'",
        "UPDATE cell_digest SET loss = '3ff0000000000001' WHERE run IS NOT NULL",
        "UPDATE cell_device SET last_digest = '11111111111111111111111111111111'",
        "UPDATE cell SET sum = sum + 1 WHERE id = 1",
        "UPDATE cell_alike SET runs = runs + 1 WHERE cell = 1",
        ("DELETE FROM run_digest; DELETE FROM run_check; DELETE FROM cell_history;"
         " DELETE FROM case_input; DELETE FROM device_stack_environment;"
         " DELETE FROM run_log; DELETE FROM run WHERE cell = 1"),
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct fsck_counts counts;

        three_cells(f);
        check(f);
        fixture_write(f, execute, (void *)(uintptr_t)changes[i]);
        counts = check(f);
        if (counts.cells_differing == 0) {
            fail_msg("not seen: %s", changes[i]);
        }
        counts = check(f); /* what is wrong is never verified */
        assert_int_not_equal(counts.cells_differing, 0);
        fixture_free(f);
        fixture_setup(state);
        f = *state;
    }
}

static enum err_code mark_all(struct tx *tx, void *arg, struct err *err)
{
    struct mark *marks = arg;

    return marks_store(tx, marks, 1, NOW_MS, err);
}

static enum err_code read_mark(struct tx *tx, void *arg, struct err *err)
{
    bool verified;

    return marks_read(tx, 1, 0, arg, &verified, err);
}

/* The cell changes between the look at it and the note that it is right. */
static void test_a_mark_that_comes_too_late_is_worth_nothing(void **state)
{
    struct fixture *f = *state;
    struct fsck_counts counts;
    struct mark mark;

    three_cells(f);
    fixture_read(f, read_mark, &mark);
    fixture_write(f, execute,
                  (void *)(uintptr_t) "UPDATE run SET digest ="
                                      " '11111111111111111111111111111111' WHERE cell = 1");
    fixture_write(f, mark_all, &mark);
    counts = check(f);
    assert_int_equal(counts.cells_trusted, 0);
    assert_int_not_equal(counts.cells_differing, 0);
}

struct stopping {
    atomic_bool stop;
    struct mark right[8];
    int count;
};

static void stop_after_one(void *arg, const struct mark *mark)
{
    struct stopping *s = arg;

    s->right[s->count++] = *mark;
    atomic_store(&s->stop, true);
}

static enum err_code keep_marks(struct tx *tx, void *arg, struct err *err)
{
    const struct stopping *s = arg;

    return marks_store(tx, s->right, s->count, NOW_MS, err);
}

static void ignore_line(void *arg, const char *line)
{
    (void)arg;
    (void)line;
}

/* A check of the service that is stopped goes on where it was. */
static void test_a_stopped_check_goes_on(void **state)
{
    struct fixture *f = *state;
    struct stopping s = { .count = 0 };
    const struct fsck_served served = { .tx = store_background(f->store),
                                        .now_ms = NOW_MS,
                                        .report = ignore_line,
                                        .right = stop_after_one,
                                        .arg = &s,
                                        .stop = &s.stop };
    struct fsck_counts counts;
    struct err err;

    atomic_init(&s.stop, false);
    three_cells(f);
    assert_int_equal(fsck_served(&served, &counts, &err), ERR_TIMEOUT);
    assert_int_equal(s.count, 1);
    fixture_write(f, keep_marks, &s);
    counts = check(f);
    expect(&counts, 3, 1, 0);
}

static void test_many_readers_find_the_same(void **state)
{
    struct fixture *f = *state;
    struct fsck_counts one, many;

    three_cells(f);
    fixture_write(f, execute,
                  (void *)(uintptr_t) "UPDATE cell SET iterations = 99 WHERE id = 1");
    one = check_at(f, NOW_MS, true, 1);
    many = check_at(f, NOW_MS, true, 7);
    assert_memory_equal(&one, &many, sizeof one);
    assert_int_equal(one.cells_differing, 1);
    many = check_at(f, NOW_MS, false, 7);
    expect(&many, 3, 2, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_what_did_not_change_is_trusted),
        STORE_TEST(test_changes_of_what_was_verified_are_seen),
        STORE_TEST(test_a_mark_that_comes_too_late_is_worth_nothing),
        STORE_TEST(test_a_stopped_check_goes_on),
        STORE_TEST(test_many_readers_find_the_same),
    };

    return cmocka_run_group_tests_name("fsck", tests, NULL, NULL);
}
