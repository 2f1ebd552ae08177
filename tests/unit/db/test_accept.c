/* What a person acknowledged is told as that, and all else is told as before: whichever
 * rows another program deletes, and whatever refers to them. */
#include "tests/unit/db/cells_fixture.h"
#include "tests/unit/db/edit_fixture.h"

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "db/cells_judge.h"
#include "db/fsck.h"
#include "db/integrity/accept.h"
#include "db/tx.h"

enum { LINE_SIZE = 1024, NOW_MS = 7000 };

static void take_line(void *arg, const char *line)
{
    if (!strstr(line, "which was acknowledged")) {
        snprintf(arg, LINE_SIZE, "%s", line);
    }
}

static struct fsck_counts check(struct fixture *f, char last[LINE_SIZE])
{
    struct fsck_counts counts;
    struct err err = { .message = "" };

    last[0] = '\0';
    if (fsck_database(f->path, take_line, last, &counts, &err) != ERR_OK) {
        fail_msg("fsck: %s", err.message);
    }
    return counts;
}

static void expect_whole(struct fixture *f, const char *after)
{
    char last[LINE_SIZE];
    struct fsck_counts counts = check(f, last);

    if (!fsck_is_whole(&counts) || last[0]) {
        fail_msg("%s: %s", after, last);
    }
}

static void pass_over(void *arg, const char *line)
{
    (void)arg;
    (void)line;
}

static int64_t accept(struct fixture *f)
{
    struct err err = { .message = "" };
    int64_t count;

    if (accept_loss(f->path, NOW_MS, pass_over, NULL, &count, &err) != ERR_OK) {
        fail_msg("accept: %s", err.message);
    }
    return count;
}

static void store_some(struct fixture *f)
{
    insert_job(f);
    vary(f, 1);
    store(f, completed(2, ORDERED));
    store(f, completed(3, ORDERED));
    store(f, completed(4, ORDERED_B));
}

/* More of the same, and a case that was not there. */
static void store_more(struct fixture *f)
{
    struct job_item item = fixture_item("another", "cpu:a", 100);
    struct fixture_job j = fixture_job(2, &item, 1);
    struct fixture_run other = {
        .n = 21, .job = 2, .outcome = OUTCOME_COMPLETED, .environment = 1
    };
    struct fixture_run elsewhere = other;

    elsewhere.n = 22;
    elsewhere.environment = 2;
    fixture_write(f, fixture_insert_job, &j);
    store(f, other);
    store(f, elsewhere);
}

static const struct {
    const char *sql;
    bool ends; /* job 1 */
} deletions[] = {
    { "DELETE FROM case_key WHERE number = 1", true },
    { "DELETE FROM case_key", true },
    { "DELETE FROM cell WHERE id = 2", false },
    { "DELETE FROM cell", false },
    { "DELETE FROM environment", false },
    { "DELETE FROM job", true },
    { "DELETE FROM job_item WHERE seq = 1", true },
    { "DELETE FROM job_item", true },
    { "DELETE FROM run WHERE id = (SELECT max(id) FROM run)", false },
    { "DELETE FROM run", false },
    { "DELETE FROM run_digest", false },
    { "DELETE FROM case_input", false },
    { "DELETE FROM device_environment", false },
    { "DELETE FROM device_stack_environment", false },
    { "DELETE FROM cell_history", false },
    { "DELETE FROM cell_digest", false },
    { "UPDATE job_item SET runs_answered = runs_answered + 1 WHERE seq = 1", false },
    { "UPDATE job SET runs_done = runs_done + 1", false },
    { "UPDATE environment SET first_seen_ms = first_seen_ms + 1", false },
    { "UPDATE environment SET last_seen_ms = last_seen_ms + 1", false },
    { "UPDATE environment SET cells = cells + 1", false },
};

static void test_what_was_acknowledged_is_known(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < COUNT_OF(deletions); i++) {
        char last[LINE_SIZE];
        struct fsck_counts counts;

        store_some(f);
        fixture_close(f);
        expect_whole(f, "nothing was done");
        edit(f, deletions[i].sql);
        counts = check(f, last);
        if (fsck_is_whole(&counts)) {
            fail_msg("not seen: %s", deletions[i].sql);
        }
        assert_true(accept(f) > 0);
        expect_whole(f, deletions[i].sql);
        assert_int_equal(accept(f), 0); /* there is nothing more */
        fixture_open(f);
        store_more(f);
        if (!deletions[i].ends) {
            vary(f, 23);
            store(f, completed(24, ORDERED));
            store(f, completed(25, ORDERED_B));
            store(f, completed(26, FREE));
        }
        fixture_close(f);
        expect_whole(f, deletions[i].sql);
        fixture_remove(f);
        fixture_open(f);
    }
}

/* In the way of which what was acknowledged could stand. */
static void test_another_fault_is_told(void **state)
{
    static const struct {
        const char *known, *next;
    } pairs[] = {
        { "DELETE FROM run WHERE id = (SELECT min(id) FROM run)",
          "DELETE FROM run WHERE id = (SELECT max(id) FROM run)" },
        { "DELETE FROM case_key WHERE number = 1",
          "DELETE FROM case_key WHERE number = 2" },
        { "UPDATE job_item SET runs_answered = runs_answered + 1 WHERE seq = 1",
          "UPDATE job_item SET runs_answered = runs_answered + 1 WHERE seq = 1" },
        { "UPDATE job_item SET runs_answered = runs_answered + 1 WHERE seq = 1",
          "UPDATE job_item SET runs_answered = runs_answered + 1 WHERE seq = 2" },
        { "UPDATE environment SET cells = cells + 1",
          "UPDATE environment SET cells = cells + 1" },
        { "UPDATE case_input SET runs = runs + 1",
          "UPDATE case_input SET runs = runs + 1" },
        { "UPDATE job SET runs_done = runs_done + 1",
          "UPDATE job SET runs_failed = runs_failed + 1" },
    };
    struct fixture *f = *state;

    for (int i = 0; i < COUNT_OF(pairs); i++) {
        char last[LINE_SIZE];
        struct fsck_counts counts;

        store_some(f);
        fixture_close(f);
        edit(f, pairs[i].known);
        accept(f);
        expect_whole(f, pairs[i].known);
        edit(f, pairs[i].next);
        counts = check(f, last);
        if (fsck_is_whole(&counts) || !last[0]) {
            fail_msg("not seen behind %s: %s", pairs[i].known, pairs[i].next);
        }
        fixture_remove(f);
        fixture_open(f);
    }
}

struct numbers {
    int64_t case_key, siblings, environment, cell, job;
};

static enum err_code read_numbers(struct tx *tx, void *arg, struct err *err)
{
    struct numbers *n = arg;

    return tx_fetch(
        tx, TX_TARGETS(&n->case_key, &n->siblings, &n->environment, &n->cell, &n->job),
        err,
        "SELECT k.number, k.siblings, c.environment, c.id, r.job FROM run r"
        " JOIN case_key k ON k.number = r.case_key JOIN cell c"
        " ON c.id = r.cell ORDER BY r.id DESC LIMIT 1");
}

/* What refers to the row that is gone does not count for the new one. */
static void test_a_number_is_given_once(void **state)
{
    struct fixture *f = *state;
    struct numbers before, after;

    store_some(f);
    store_more(f);
    fixture_read(f, read_numbers, &before);
    fixture_close(f);
    edit(f,
         "DELETE FROM case_key; DELETE FROM environment; DELETE FROM cell;"
         "DELETE FROM job");
    accept(f);
    fixture_open(f);
    {
        struct job_item item = fixture_item("third", "cpu:a", 100);
        struct fixture_job j = fixture_job(3, &item, 1);
        struct fixture_run r = {
            .n = 31, .job = 3, .outcome = OUTCOME_COMPLETED, .environment = 1
        };

        fixture_write(f, fixture_insert_job, &j);
        store(f, r);
    }
    fixture_read(f, read_numbers, &after);
    assert_true(after.case_key > before.case_key);
    assert_int_equal(after.siblings, after.case_key);
    assert_true(after.environment > before.environment);
    assert_true(after.cell > before.cell);
    assert_true(after.job > before.job);
    fixture_close(f);
    expect_whole(f, "a number each");
}

/* A start under new rules judges what can be read. */
static void test_cells_without_a_case_are_not_judged(void **state)
{
    static const char *const forgotten[] = { "UPDATE judged SET rules = 0",
                                             "DELETE FROM judged" };
    struct fixture *f = *state;

    store_some(f);
    fixture_close(f);
    edit(f, "DELETE FROM case_key WHERE number = 1");
    accept(f);
    for (int i = 0; i < COUNT_OF(forgotten); i++) {
        edit(f, forgotten[i]);
        fixture_open(f); /* and the rules are those of this program again */
        fixture_close(f);
        expect_whole(f, forgotten[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_what_was_acknowledged_is_known),
        STORE_TEST(test_another_fault_is_told),
        STORE_TEST(test_a_number_is_given_once),
        STORE_TEST(test_cells_without_a_case_are_not_judged),
    };

    return cmocka_run_group_tests_name("accept", tests, NULL, NULL);
}
