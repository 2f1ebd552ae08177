/* The store's threads and transactions. */
#include "tests/unit/db/store_fixture.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "db/events.h"
#include "db/tx.h"

static enum err_code note(struct tx *tx, void *arg, struct err *err)
{
    return tx_run(tx, err,
                  "INSERT INTO event (at_ms, kind, data) VALUES (?, 'run', '{}')",
                  *(int *)arg);
}

static enum err_code note_and_fail(struct tx *tx, void *arg, struct err *err)
{
    note(tx, arg, err);
    return err_set(err, ERR_INVALID, "on purpose");
}

static enum err_code break_rule(struct tx *tx, void *arg, struct err *err)
{
    note(tx, arg, err);
    return tx_run(tx, err, "INSERT INTO event (at_ms, kind, data) VALUES (1, '', '{}')");
}

struct noted {
    int64_t values[64];
    int count;
};

static void collect_event(void *arg, const struct event *event)
{
    struct noted *n = arg;

    assert_true(n->count < 64);
    n->values[n->count++] = event->at_ms;
}

static enum err_code read_events(struct tx *tx, void *arg, struct err *err)
{
    return events_each(tx, 0, 64, collect_event, arg, err);
}

struct answer {
    int value;
    int *next;
    int order;
    enum err_code code;
};

static void done(void *arg, const struct err *result)
{
    struct answer *a = arg;

    a->order = ++*a->next;
    a->code = result->code;
}

static enum err_code note_answer(struct tx *tx, void *arg, struct err *err)
{
    struct answer *a = arg;

    return a->value < 0 ? note_and_fail(tx, &a->value, err) : note(tx, &a->value, err);
}

static void drain(struct store *store)
{
    while (store_pending(store)) {
        struct pollfd p = { .fd = store_fd(store), .events = POLLIN };

        assert_int_equal(poll(&p, 1, 60000), 1);
        store_dispatch(store);
    }
}

/* Keeps the writer busy until the test has queued the rest: one commit for all of them.
 */
struct gate {
    pthread_mutex_t lock;
    atomic_bool entered;
};

static enum err_code wait_at_gate(struct tx *tx, void *arg, struct err *err)
{
    struct gate *gate = arg;

    (void)tx;
    (void)err;
    gate->entered = true;
    pthread_mutex_lock(&gate->lock);
    pthread_mutex_unlock(&gate->lock);
    return ERR_OK;
}

static void nothing(void *arg, const struct err *result)
{
    (void)arg;
    assert_int_equal(result->code, ERR_OK);
}

static void test_group_commit_keeps_order(void **state)
{
    struct fixture *f = *state;
    struct gate gate = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct answer answers[32];
    struct noted noted = { .count = 0 };
    uint64_t before = store_generation(f->store);
    int next = 0;

    pthread_mutex_lock(&gate.lock);
    store_write(f->store, wait_at_gate, &gate, nothing);
    /* The gate is one commit, or joins the next: either way the 32 share at most two. */
    for (int i = 0; i < 32; i++) {
        answers[i] = (struct answer){ .value = i, .next = &next };
        store_write(f->store, note_answer, &answers[i], done);
    }
    assert_int_equal(store_pending(f->store), 33);
    pthread_mutex_unlock(&gate.lock);
    drain(f->store);
    assert_true(store_generation(f->store) - before <= 2);
    assert_true(store_generation(f->store) > before);
    fixture_read(f, read_events, &noted);
    assert_int_equal(noted.count, 32);
    for (int i = 0; i < 32; i++) {
        assert_int_equal(answers[i].order, i + 1);
        assert_int_equal(answers[i].code, ERR_OK);
        assert_int_equal(noted.values[i], i);
    }
}

static void test_a_failing_function_is_rolled_back_alone(void **state)
{
    struct fixture *f = *state;
    struct gate gate = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct answer answers[9];
    struct noted noted = { .count = 0 };
    int next = 0;

    pthread_mutex_lock(&gate.lock);
    store_write(f->store, wait_at_gate, &gate, nothing);
    for (int i = 0; i < 9; i++) {
        answers[i] = (struct answer){ .value = i % 3 == 1 ? -i : i, .next = &next };
        store_write(f->store, note_answer, &answers[i], done);
    }
    pthread_mutex_unlock(&gate.lock);
    drain(f->store);
    fixture_read(f, read_events, &noted);
    assert_int_equal(noted.count, 6);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(answers[i].code, i % 3 == 1 ? ERR_INVALID : ERR_OK);
    }
}

static void test_a_broken_rule_is_an_error_and_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct noted noted = { .count = 0 };
    uint64_t before = store_generation(f->store);
    int value = 1;
    struct err err;

    assert_int_equal(store_write_sync(f->store, break_rule, &value, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "CHECK"));
    fixture_read(f, read_events, &noted);
    assert_int_equal(noted.count, 0);
    fixture_write(f, note, &value);
    assert_true(store_generation(f->store) > before);
}

static enum err_code count_for_ever(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return tx_run(tx, err,
                  "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
                  " SELECT sum(i) FROM n");
}

static void test_a_read_over_its_deadline_is_interrupted(void **state)
{
    struct fixture *f = *state;
    struct store_options options = fixture_options;
    struct noted noted = { .count = 0 };
    struct err err;
    int value = 3;

    fixture_close(f);
    options.read_deadline_ms = 50;
    options.readers = 1;
    assert_int_equal(store_open(f->path, &options, &f->store, &err), ERR_OK);
    assert_int_equal(store_read_sync(f->store, count_for_ever, NULL, &err), ERR_TIMEOUT);
    fixture_write(f, note, &value);
    fixture_read(f, read_events, &noted); /* the reader is as good as before */
    assert_int_equal(noted.count, 1);
}

static void test_a_reader_cannot_write(void **state)
{
    struct fixture *f = *state;
    struct err err;
    int value = 3;

    assert_int_equal(store_read_sync(f->store, note, &value, &err), ERR_IO);
}

static void test_too_many_reads_are_refused(void **state)
{
    struct fixture *f = *state;
    struct gate gate = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct err err;
    int accepted = 0;

    pthread_mutex_lock(&gate.lock);
    while (accepted < 1000 &&
           store_read(f->store, wait_at_gate, &gate, nothing, &err) == ERR_OK) {
        accepted++;
    }
    pthread_mutex_unlock(&gate.lock);
    assert_int_equal(err.code, ERR_BUSY);
    assert_true(accepted >= 256 && accepted <= 256 + fixture_options.readers);
    drain(f->store);
}

static void count_done(void *arg, const struct err *result);

/* However many heavy reads there are, the others are served beside them. */
static void test_heavy_reads_hold_up_no_cheap_one(void **state)
{
    struct fixture *f = *state;
    struct gate gate = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct noted noted = { .count = 0 };
    struct err err;
    int heavy = 0;

    pthread_mutex_lock(&gate.lock);
    while (heavy < 1000 &&
           store_read_heavy(f->store, wait_at_gate, &gate, nothing, &err) == ERR_OK) {
        heavy++;
    }
    assert_int_equal(err.code, ERR_BUSY);
    assert_true(heavy >= 64 && heavy <= 64 + fixture_options.readers);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(store_read_sync(f->store, read_events, &noted, &err), ERR_OK);
    }
    assert_true(store_pending(f->store) == heavy);
    pthread_mutex_unlock(&gate.lock);
    drain(f->store);
}

static void count_done(void *arg, const struct err *result)
{
    (void)result;
    ++*(int *)arg;
}

static void test_close_commits_what_is_queued(void **state)
{
    struct fixture *f = *state;
    struct noted noted = { .count = 0 };
    int calls = 0;

    for (int i = 0; i < 20; i++) {
        store_write(f->store, note, &calls, count_done);
    }
    fixture_close(f);
    assert_int_equal(calls, 20);
    fixture_open(f);
    fixture_read(f, read_events, &noted);
    assert_int_equal(noted.count, 20);
}

struct again {
    struct store *store;
    int calls;
    enum err_code last;
    int value;
};

static void write_again(void *arg, const struct err *result)
{
    struct again *a = arg;

    a->last = result->code;
    if (++a->calls == 1) {
        store_write(a->store, note, &a->value, count_done);
    }
}

static enum err_code note_again(struct tx *tx, void *arg, struct err *err)
{
    return note(tx, &((struct again *)arg)->value, err);
}

static void test_a_write_from_the_last_callback_is_refused(void **state)
{
    struct fixture *f = *state;
    struct again a = { .store = f->store };

    store_write(f->store, note_again, &a, write_again);
    fixture_close(f);
    assert_int_equal(a.calls, 1);
    assert_int_equal(a.value, 1); /* its callback was called, by then with an error */
}

static enum err_code limit_pages(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return tx_run(tx, err, "PRAGMA max_page_count = 1"); /* clamped to what it has */
}

static enum err_code fill(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return tx_run(tx, err,
                  "INSERT INTO event (at_ms, kind, data) SELECT 1, 'run',"
                  " json_quote(hex(zeroblob(4000000)))");
}

static void test_a_full_disk_is_an_error_of_who_met_it(void **state)
{
    struct fixture *f = *state;
    struct noted noted = { .count = 0 };
    struct answer first = { .value = 1, .next = &(int){ 0 } };
    struct err err;
    int value = 7;

    fixture_write(f, limit_pages, NULL);
    assert_int_equal(store_write_sync(f->store, fill, NULL, &err), ERR_IO);
    assert_non_null(strstr(err.message, "full"));
    fixture_write(f, note, &value); /* small enough for the page that is there */
    store_write(f->store, note_answer, &first, done);
    assert_int_equal(store_write_sync(f->store, fill, NULL, &err), ERR_IO);
    drain(f->store);
    fixture_read(f, read_events, &noted);
    /* Stored if and only if it was said to be. */
    assert_int_equal(noted.count, first.code == ERR_OK ? 2 : 1);
}

static enum err_code ask_pragmas(struct tx *tx, void *arg, struct err *err)
{
    int64_t *answers = arg;
    struct query q;

    query_begin(&q, tx,
                "SELECT s.synchronous, t.temp_store FROM pragma_synchronous s,"
                " pragma_temp_store t");
    if (query_step(&q)) {
        answers[0] = query_take_int(&q);
        answers[1] = query_take_int(&q);
    }
    return query_end(&q, err);
}

/* Commits reach the disk, what a savepoint may put back does not: it would be written for
 * every page of every write. */
static void test_what_goes_to_the_disk(void **state)
{
    struct fixture *f = *state;
    int64_t answers[2] = { 0, 0 };

    fixture_write(f, ask_pragmas, answers);
    assert_int_equal(answers[0], 2); /* FULL */
    assert_int_equal(answers[1], 2); /* MEMORY */
}

/* What SQLite does by itself on some errors. */
static enum err_code abandon(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return tx_run(tx, err, "ROLLBACK");
}

static void count_io_error(void *arg, const struct err *result)
{
    *(int *)arg += result->code == ERR_IO;
}

static void test_what_an_abandoned_transaction_held_is_not_said_to_be_stored(void **state)
{
    struct fixture *f = *state;
    struct gate gate = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct noted noted = { .count = 0 };
    int next = 0;
    int errors = 0;
    struct answer before = { .value = 1, .next = &next };
    struct answer after = { .value = 2, .next = &next };

    /* While the writer waits at the gate, what follows becomes one commit. */
    pthread_mutex_lock(&gate.lock);
    store_write(f->store, wait_at_gate, &gate, nothing);
    while (!gate.entered) {
        usleep(1000);
    }
    store_write(f->store, note_answer, &before, done);
    store_write(f->store, abandon, &errors, count_io_error);
    store_write(f->store, note_answer, &after, done);
    pthread_mutex_unlock(&gate.lock);
    drain(f->store);
    fixture_read(f, read_events, &noted);
    assert_int_equal(errors, 1);
    assert_int_equal(before.code, ERR_IO);
    assert_int_equal(after.code, ERR_OK);
    assert_int_equal(noted.count, 1);
    assert_int_equal(noted.values[0], 2);
}

static enum err_code trim(struct tx *tx, void *arg, struct err *err)
{
    return events_trim(tx, *(int64_t *)arg, err);
}

static enum err_code last(struct tx *tx, void *arg, struct err *err)
{
    return events_last(tx, arg, err);
}

static void test_events_trim(void **state)
{
    struct fixture *f = *state;
    struct noted noted = { .count = 0 };
    int64_t keep = 3;
    int64_t id;

    fixture_read(f, last, &id);
    assert_int_equal(id, 0);
    for (int i = 0; i < 10; i++) {
        fixture_write(f, note, &i);
    }
    fixture_write(f, trim, &keep);
    fixture_read(f, read_events, &noted);
    assert_int_equal(noted.count, 3);
    assert_int_equal(noted.values[0], 7);
    keep = 0; /* one stays, so that ids are not used twice */
    fixture_write(f, trim, &keep);
    fixture_write(f, note, &(int){ 99 });
    fixture_read(f, last, &id);
    assert_int_equal(id, 11);
}

static void done_slowly(void *arg, const struct err *result)
{
    int64_t until_ms = clock_monotonic_ms() + 3;

    while (clock_monotonic_ms() < until_ms) {
    }
    done(arg, result);
}

static enum err_code read_nothing(struct tx *tx, void *arg, struct err *err)
{
    (void)tx;
    (void)arg;
    (void)err;
    return ERR_OK;
}

/* Callbacks of writes that take long are called one a turn, in their order, and those of
 * reads do not wait for all of them. */
static void test_callbacks_leave_the_loop_its_turns(void **state)
{
    struct fixture *f = *state;
    struct answer answers[8], read = { .value = 1 };
    int called = 0, reads = 0, value = 99;
    struct err err;

    read.next = &reads;
    for (int i = 0; i < 8; i++) {
        answers[i] = (struct answer){ .value = i, .next = &called };
        store_write(f->store, note_answer, &answers[i], done_slowly);
    }
    assert_int_equal(store_write_sync(f->store, note, &value, &err), ERR_OK);
    assert_int_equal(store_read(f->store, read_nothing, &read, done, &err), ERR_OK);
    for (int turn = 1; turn <= 8; turn++) {
        struct pollfd fd = { .fd = store_fd(f->store), .events = POLLIN };

        assert_int_equal(poll(&fd, 1, 10000), 1);
        store_dispatch(f->store);
        assert_int_equal(called, turn);
        assert_int_equal(answers[turn - 1].order, turn);
    }
    while (store_pending(f->store) > 0) {
        store_dispatch(f->store);
    }
    assert_int_equal(reads, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_group_commit_keeps_order),
        STORE_TEST(test_a_failing_function_is_rolled_back_alone),
        STORE_TEST(test_a_broken_rule_is_an_error_and_changes_nothing),
        STORE_TEST(test_a_read_over_its_deadline_is_interrupted),
        STORE_TEST(test_a_reader_cannot_write),
        STORE_TEST(test_heavy_reads_hold_up_no_cheap_one),
        STORE_TEST(test_too_many_reads_are_refused),
        STORE_TEST(test_close_commits_what_is_queued),
        STORE_TEST(test_a_write_from_the_last_callback_is_refused),
        STORE_TEST(test_what_goes_to_the_disk),
        STORE_TEST(test_a_full_disk_is_an_error_of_who_met_it),
        STORE_TEST(test_what_an_abandoned_transaction_held_is_not_said_to_be_stored),
        STORE_TEST(test_events_trim),
        STORE_TEST(test_callbacks_leave_the_loop_its_turns),
    };

    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
