/* Cells of many devices are judged once a commit: with the same verdict as if they had
 * been judged after each run. */
#include "tests/unit/db/faults_fixture.h"

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "db/dissent/settle.h"
#include "db/dissent/unsettled.h"

enum { MANY = CELLS_SETTLE_DEVICES + 6, WRONG = 7, BATCH_MAX = 8 * MANY };

/* Job 1: a control and a variant on each device. */
static void insert_large_job(struct fixture *f, const char *stack, int runs)
{
    static struct job_item items[2 * MANY];
    struct fixture_job j = fixture_job(1, items, 2 * MANY);

    for (int i = 0; i < MANY; i++) {
        char device[16];

        snprintf(device, sizeof device, "GPU-%d", i);
        items[2 * i] = fixture_item("unordered", device, runs);
        items[2 * i + 1] = fixture_item("ordered", device, runs);
        copy_text(items[2 * i].stack, sizeof items[2 * i].stack, stack);
        copy_text(items[2 * i + 1].stack, sizeof items[2 * i + 1].stack, stack);
    }
    fixture_write(f, fixture_insert_job, &j);
}

struct batch {
    struct fixture_run runs[BATCH_MAX];
    int count;
};

static void add(struct batch *b, int n, int device, bool control, int digest)
{
    b->runs[b->count++] = (struct fixture_run){ .n = n,
                                                .job = 1,
                                                .item = 2 * device + !control,
                                                .outcome = OUTCOME_COMPLETED,
                                                .environment = 1,
                                                .digest = digest,
                                                .distinct = control ? 3 : 1 };
}

static enum err_code store_batch(struct tx *tx, void *arg, struct err *err)
{
    struct batch *b = arg;
    enum err_code code = ERR_OK;

    for (int i = 0; i < b->count && code == ERR_OK; i++) {
        code = fixture_whole_run(tx, &b->runs[i], err);
    }
    return code;
}

/* In one commit, or each run in its own. */
static void store_all(struct fixture *f, struct batch *b, bool together)
{
    if (together) {
        fixture_write(f, store_batch, b);
    }
    for (int i = 0; i < b->count && !together; i++) {
        fixture_write(f, fixture_whole_run, &b->runs[i]);
    }
    b->count = 0;
}

static int64_t count(struct fixture *f, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    int64_t number;

    assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

/* Three runs of each device, of which one is wrong from its second run on. */
static void store_fleet(struct fixture *f, bool together)
{
    struct batch *b = xcalloc(1, sizeof *b);
    int n = 1;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            add(b, n++, i, true, 100 + 10 * (3 * i + round));
            add(b, n++, i, false, i == WRONG && round > 0 ? 9 : 5);
        }
        store_all(f, b, together);
    }
    for (int round = 0; round < 5; round++) {
        add(b, n++, WRONG, false, 9);
        add(b, n++, WRONG + 1, false, 5);
    }
    store_all(f, b, together);
    free(b);
}

static void test_a_commit_is_judged_as_its_runs(void **state)
{
    struct cell cells[2][2];

    for (int together = 0; together < 2; together++) {
        struct fixture *f = *state;

        insert_large_job(f, "cpu", 100);
        store_fleet(f, together);
        cells[together][0] = fixture_cell(f, "ordered");
        cells[together][1] = fixture_cell(f, "unordered");
        fixture_check_cells(f);
        assert_int_equal(count(f,
                               "SELECT count(*) FROM cell_dissenter"
                               " WHERE device = 'GPU-7'"),
                         1);
        assert_int_equal(count(f, "SELECT count(*) FROM cell_dissenter"), 1);
        fixture_free(f);
        fixture_setup(state);
    }
    for (int i = 0; i < 2; i++) {
        const struct cell *apart = &cells[0][i], *joint = &cells[1][i];

        assert_int_equal(apart->verdict, joint->verdict);
        assert_string_equal(apart->reason, joint->reason);
        assert_int_equal(apart->agreement, joint->agreement);
        assert_int_equal(apart->agreeing.runs, joint->agreeing.runs);
        assert_int_equal(apart->evidence.distinct_digests,
                         joint->evidence.distinct_digests);
    }
    assert_int_equal(cells[1][0].verdict, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(cells[1][1].verdict, VERDICT_VARIES);
}

/* Whoever asks within the commit hears of the one before. */
static void test_verdicts_within_a_commit(void **state)
{
    struct fixture *f = *state;
    struct batch *b = xcalloc(1, sizeof *b);
    int64_t changes;
    int n = 1;

    insert_large_job(f, "cpu", 100);
    for (int i = 0; i < MANY; i++) {
        add(b, n++, i, false, i == WRONG ? 9 : 5);
    }
    store_all(f, b, true);
    changes = count(f, "SELECT count(*) FROM cell_history");
    for (int i = 0; i < MANY; i++) {
        for (int run = 0; run < 7; run++) {
            add(b, n++, i, false, i == WRONG ? 9 : 5);
        }
    }
    fixture_write(f, store_batch, b);
    for (int i = 0; i < b->count; i++) {
        assert_false(b->runs[i].effect.verdict_changed);
        assert_int_equal(b->runs[i].effect.verdict, b->runs[0].effect.verdict);
    }
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_DEVICES_DISAGREE);
    assert_int_not_equal(b->runs[0].effect.verdict, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(count(f, "SELECT count(*) FROM cell_history"), changes + 1);
    b->count = 0;
    add(b, n++, 0, false, 8); /* one more digest, and the same verdict */
    store_all(f, b, true);
    assert_int_equal(count(f, "SELECT count(*) FROM cell_history"), changes + 2);
    add(b, n++, 0, false, 8);
    store_all(f, b, true);
    assert_int_equal(count(f, "SELECT count(*) FROM cell_history"), changes + 2);
    fixture_check_cells(f);
    free(b);
}

/* Of COUNT runs of the variant after those that made it reproducible. */
static void store_more(struct fixture *f, struct batch *b, int n, int count,
                       void (*change)(struct fixture_run *run))
{
    for (int i = 0; i < count; i++) {
        add(b, n + i, i, false, 5);
    }
    if (change) {
        change(&b->runs[count / 2]);
    }
    fixture_write(f, store_batch, b);
}

static void show_another(struct fixture_run *run)
{
    run->digest = 6;
}

static void warn(struct fixture_run *run)
{
    run->claim = "non-deterministic";
}

static void crash(struct fixture_run *run)
{
    run->outcome = OUTCOME_CRASHED;
}

/* A reproducible cell is judged once, with all of its runs; where one shows something
 * else, what it becomes is that run's, and told once. */
static void test_a_reproducible_cell_within_a_commit(void **state)
{
    static const struct {
        void (*change)(struct fixture_run *run);
        enum verdict verdict;
    } table[] = {
        { NULL, VERDICT_REPRODUCIBLE },
        { show_another, VERDICT_INCONCLUSIVE },
        { warn, VERDICT_INCONCLUSIVE },
        { crash, VERDICT_FAILING },
    };
    struct batch *b = xcalloc(1, sizeof *b);

    for (int i = 0; i < COUNT_OF(table); i++) {
        struct fixture *f = *state;
        int64_t changes;

        insert_large_job(f, "cpu", 100);
        for (int d = 0; d < MANY; d++) {
            add(b, 1 + 2 * d, d, true, 100 + 10 * d);
            add(b, 2 + 2 * d, d, false, 5);
        }
        store_all(f, b, true);
        assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_REPRODUCIBLE);
        changes = count(f, "SELECT count(*) FROM cell_history");
        store_more(f, b, 1000, 4, table[i].change);
        assert_int_equal(b->runs[0].effect.verdict, VERDICT_REPRODUCIBLE);
        b->count = 0;
        assert_int_equal(fixture_cell(f, "ordered").verdict, table[i].verdict);
        assert_int_equal(count(f, "SELECT count(*) FROM cell_history"),
                         changes + (table[i].change != NULL));
        assert_int_equal(count(f,
                               "SELECT count(*) FROM cell_history h"
                               " JOIN run r ON r.id = h.run WHERE r.device = 'GPU-2'"
                               " AND r.intent_ms = 1002000"),
                         table[i].change != NULL);
        fixture_check_cells(f);
        fixture_free(f);
        fixture_setup(state);
    }
    free(b);
}

static void test_a_job_is_told_of_once_a_commit(void **state)
{
    static const char events[] = "SELECT count(*) FROM event WHERE kind = 'job'";
    struct fixture *f = *state;
    struct batch *b = xcalloc(1, sizeof *b);
    int64_t before;

    insert_large_job(f, "cpu", 2);
    before = count(f, events);
    for (int i = 0; i < MANY; i++) {
        add(b, 1 + i, i, false, 5);
    }
    store_all(f, b, true);
    /* that it is running, and how far it is */
    assert_int_equal(count(f, events), before + 2);
    assert_int_equal(count(f,
                           "SELECT json_extract(data, '$.runs_done') FROM event"
                           " WHERE kind = 'job' ORDER BY id DESC LIMIT 1"),
                     MANY);
    free(b);
}

/* A run that was going on when its job ended answers in the same commit. */
static enum err_code end_job(struct tx *tx, void *arg, struct err *err)
{
    struct batch *b = arg;
    struct fixture_run *late = &b->runs[--b->count];

    return fixture_begin(tx, late, err) == ERR_OK && store_batch(tx, b, err) == ERR_OK
               ? fixture_finish(tx, late, err)
               : err->code;
}

static void test_the_end_of_a_job_has_its_time(void **state)
{
    struct fixture *f = *state;
    struct batch *b = xcalloc(1, sizeof *b);

    insert_large_job(f, "cpu", 1);
    for (int i = 0; i < MANY; i++) {
        add(b, 1 + 2 * i, i, true, 100 + 10 * i);
        add(b, 2 + 2 * i, i, false, 5);
    }
    add(b, 500, 0, false, 5);
    fixture_write(f, end_job, b);
    assert_int_equal(count(f,
                           "SELECT count(*) FROM event e JOIN job j ON e.kind = 'job'"
                           " AND json_extract(e.data, '$.state') = 'finished'"
                           " AND j.finished_ms >= e.at_ms"),
                     1);
    free(b);
}

/* The last run that a job wants of such a cell asks for more in the commit in which it
 * is, and the job goes on. */
static void test_a_job_goes_on_within_a_commit(void **state)
{
    struct fixture *f = *state;
    struct batch *b = xcalloc(1, sizeof *b);
    int n = 1, more = 0;

    insert_large_job(f, "cpu", 2);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            /* The first device is the last one. */
            add(b, n++, MANY - 1 - i, false, MANY - 1 - i == WRONG ? 9 : 5);
        }
        fixture_write(f, store_batch, b);
        for (int i = 0; i < b->count; i++) {
            more += b->runs[i].effect.more_count;
            assert_true(b->runs[i].effect.more_count == 0 ||
                        (round == 1 && i == b->count - 1));
            assert_false(b->runs[i].effect.job_finished);
        }
        b->count = 0;
    }
    assert_true(more > 1);
    free(b);
}

static enum err_code store_and_settle(struct tx *tx, void *arg, struct err *err)
{
    return store_batch(tx, arg, err) == ERR_OK ? cells_settle(tx, err) : err->code;
}

/* What comes after that in a transaction is judged at once. */
static enum err_code settle_and_store(struct tx *tx, void *arg, struct err *err)
{
    return cells_settle(tx, err) == ERR_OK ? store_batch(tx, arg, err) : err->code;
}

/* So many runs, without a control, that the wrong one is named; returns what the next is.
 */
static int name_the_wrong_one(struct fixture *f, struct batch *b)
{
    int n = 1;

    insert_large_job(f, "cpu", 100);
    for (int round = 0; round < 7; round++) {
        for (int i = 0; i < MANY; i++) {
            add(b, n++, i, false, i == WRONG ? 9 : 5);
        }
    }
    store_all(f, b, true);
    add(b, n++, WRONG, false, 9);
    store_all(f, b, true);
    assert_int_equal(count(f, "SELECT count(*) FROM cell_dissenter"), 1);
    return n;
}

/* Whichever statement fails: nothing is stored. */
static void test_nothing_is_half_judged(void **state)
{
    struct fixture *f = *state;
    struct batch *b = xcalloc(1, sizeof *b);
    int n = name_the_wrong_one(f, b);

    add(b, n++, WRONG, false, 9);
    assert_true(fail_each_statement(f, true, store_and_settle, b, sizeof *b) > 20);
    b->count = 0;
    add(b, n++, WRONG, false, 9);
    assert_true(fail_each_statement(f, true, settle_and_store, b, sizeof *b) > 20);
    b->count = 0;
    add(b, n++, 0, true, 100);
    store_all(f, b, true);
    add(b, n++, 0, true, 110); /* now the control vouches for others */
    assert_true(fail_each_statement(f, true, store_and_settle, b, sizeof *b) > 40);
    fixture_check_cells(f);
    free(b);
}

/* Of two cells that are to be judged, the first cannot be. */
static void test_neither_of_two_is_judged(void **state)
{
    struct fixture *f = *state;
    struct batch *b = xcalloc(1, sizeof *b);
    int n = name_the_wrong_one(f, b);

    for (int i = 0; i < MANY; i++) {
        add(b, n++, i, true, i == WRONG ? 90 : 50);
        b->runs[b->count - 1].distinct = 1;
    }
    store_all(f, b, true);
    assert_int_not_equal(fixture_cell(f, "unordered").agreement, DISSENT_NONE);
    add(b, n++, WRONG, false, 9);
    add(b, n++, 0, true, 50);
    b->runs[b->count - 1].distinct = 1;
    assert_true(fail_each_statement(f, true, store_and_settle, b, sizeof *b) > 40);
    fixture_check_cells(f);
    free(b);
}

static void add_unsettled(struct tx *tx, int64_t cell, const char *run)
{
    struct unsettled unsettled = { .cell = cell };

    copy_text(unsettled.run, sizeof unsettled.run, run);
    unsettled_add(tx, &unsettled);
}

/* A write that was rolled back takes its runs from what is to be judged, and judged
 * nothing. */
static void test_a_write_that_is_rolled_back(void **state)
{
    struct tx tx = { .db = NULL };
    struct unsettled_mark whole, inner;

    (void)state;
    unsettled_begin(&tx);
    unsettled_mark(&tx, &whole);
    unsettled_back(&tx, &whole);
    assert_int_equal(tx.unsettled_count, 0);
    for (int64_t cell = 1; cell <= 20; cell++) {
        add_unsettled(&tx, cell, "first");
    }
    unsettled_mark(&tx, &inner); /* within the write */
    add_unsettled(&tx, 7, "second");
    add_unsettled(&tx, 21, "second");
    tx.unsettled[0] = tx.unsettled[--tx.unsettled_count]; /* cell 1 was judged */
    assert_false(unsettled_has(&tx, 1));
    while (tx.unsettled_count > 3) { /* and more of them */
        tx.unsettled_count--;
    }
    add_unsettled(&tx, 22, "second");
    add_unsettled(&tx, 23, "second");
    unsettled_back(&tx, &inner);
    unsettled_release(&inner);
    assert_int_equal(tx.unsettled_count, 20);
    for (int64_t cell = 1; cell <= 20; cell++) {
        assert_true(unsettled_has(&tx, cell));
        assert_string_equal(tx.unsettled[cell - 1].run, "first");
    }
    assert_false(unsettled_has(&tx, 21));
    unsettled_back(&tx, &whole);
    unsettled_release(&whole);
    assert_int_equal(tx.unsettled_count, 0);
    free(tx.unsettled);
}

/* A control of which it could not be told, and which varies then. */
static void test_others_hear_that_a_control_varies(void **state)
{
    struct fixture *f = *state;
    struct batch *b = xcalloc(1, sizeof *b);
    int n = 1;

    insert_large_job(f, "cpu", 100);
    for (int i = 0; i < MANY; i++) {
        add(b, n++, i, true, i == WRONG ? 90 : 50);
        b->runs[b->count - 1].distinct = 1;
        add(b, n++, i, false, 5);
        add(b, n++, i, false, 5);
    }
    store_all(f, b, true);
    assert_int_not_equal(fixture_cell(f, "unordered").verdict, VERDICT_VARIES);
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_INCONCLUSIVE);
    for (int i = 0; i < MANY; i++) {
        add(b, n++, i, true, 100 + 10 * i);
    }
    store_all(f, b, true);
    assert_int_equal(fixture_cell(f, "unordered").verdict, VERDICT_VARIES);
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_REPRODUCIBLE);
    fixture_check_cells(f);
    free(b);
}

/* All vary now and then, and one shows another digest in each run. */
static void test_who_is_named_where_all_vary(void **state)
{
    struct fixture *f = *state;
    struct batch *b = xcalloc(1, sizeof *b);
    int n = 1;

    insert_large_job(f, "cpu", 100);
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < MANY; i++) {
            add(b, n++, i, false, i == WRONG ? 9 : round == 2 ? 6 : 5);
        }
    }
    for (int i = 0; i < 12; i++) {
        add(b, n++, WRONG, false, 9);
    }
    store_all(f, b, true);
    assert_int_equal(fixture_cell(f, "ordered").agreement, DISSENT_BOTH);
    assert_int_equal(count(f, "SELECT count(*) FROM cell_dissenter"), 1);
    fixture_check_cells(f);
    free(b);
}

/* Of a command: what its control answered decides what it shows of others. */
static void test_challenges_within_a_commit(void **state)
{
    struct fixture *f = *state;
    struct batch *b = xcalloc(1, sizeof *b);
    int n = 1;

    insert_large_job(f, "external", 100);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            add(b, n++, i, true, 100 + 10 * (2 * i + round));
            add(b, n++, i, false, 5);
        }
        store_all(f, b, true);
    }
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_INCONCLUSIVE);
    for (int i = 0; i < 3; i++) {
        struct fixture_run *r = &b->runs[b->count];

        add(b, n++, i, i < 2, 90000 + 20 * i);
        r->seed = 7000 + (uint64_t)i;
        r->input = 40 + i;
        add(b, n++, i, true, 90010 + 20 * i);
    }
    assert_true(fail_each_statement(f, true, store_and_settle, b, sizeof *b) > 40);
    assert_int_equal(fixture_cell(f, "unordered").evidence.challenges.passed, 2);
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_REPRODUCIBLE);
    fixture_check_cells(f);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_commit_is_judged_as_its_runs),
        STORE_TEST(test_verdicts_within_a_commit),
        STORE_TEST(test_a_reproducible_cell_within_a_commit),
        STORE_TEST(test_a_job_is_told_of_once_a_commit),
        STORE_TEST(test_the_end_of_a_job_has_its_time),
        STORE_TEST(test_a_job_goes_on_within_a_commit),
        STORE_TEST(test_nothing_is_half_judged),
        STORE_TEST(test_neither_of_two_is_judged),
        cmocka_unit_test(test_a_write_that_is_rolled_back),
        STORE_TEST(test_others_hear_that_a_control_varies),
        STORE_TEST(test_who_is_named_where_all_vary),
        STORE_TEST(test_challenges_within_a_commit),
    };

    return cmocka_run_group_tests_name("settle", tests, NULL, NULL);
}
