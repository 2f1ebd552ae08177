/* The witness of the last commit, taken away or changed while it is kept. */
#include "tests/unit/db/store_fixture.h"

#include <inttypes.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "db/integrity/witness.h"
#include "db/tx.h"

static enum err_code change(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return tx_run(tx, err, "INSERT INTO accepted_loss (at_ms, what) VALUES (1, 'x')");
}

static enum err_code leave(struct tx *tx, void *arg, struct err *err)
{
    (void)tx;
    (void)arg;
    (void)err;
    return ERR_OK;
}

static enum err_code read_commits(struct tx *tx, void *arg, struct err *err)
{
    return commits_read(tx, arg, err);
}

/* What the witness says of the database. */
static enum witness_word ask(struct fixture *f, struct commits *ret_witnessed)
{
    struct commits found;
    struct err err;

    assert_int_equal(store_read_sync(f->store, read_commits, &found, &err), ERR_OK);
    return witness_ask(f->path, &found, ret_witnessed);
}

static void write_work(struct fixture *f, store_fn fn)
{
    struct err err;

    assert_int_equal(store_write_sync(f->store, fn, NULL, &err), ERR_OK);
}

static void replace(const char *path)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs("reprod commit 1\n", file);
    fclose(file);
}

static void remove_it(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static void replace_it(const char *path)
{
    assert_int_equal(unlink(path), 0);
    replace(path);
}

static void truncate_it(const char *path)
{
    assert_int_equal(truncate(path, 0), 0);
}

/* Also where nothing more is committed. */
static void test_it_is_made_anew(void **state)
{
    static void (*const harms[])(const char *) = { remove_it, replace_it, truncate_it,
                                                   replace };
    struct fixture *f = *state;
    char *path = xasprintf("%s-seq", f->path);
    struct commits before, after;

    write_work(f, change);
    for (int i = 0; i < 4; i++) {
        struct stat st;

        assert_int_equal(ask(f, &before), WITNESS_AGREES);
        harms[i](path);
        write_work(f, leave);
        assert_int_equal(ask(f, &after), WITNESS_AGREES);
        assert_int_equal(after.number, before.number);
        assert_false(store_witness_gone(f->store));
        assert_int_equal(stat(path, &st), 0);
        write_work(f, change);
        assert_int_equal(ask(f, &after), WITNESS_AGREES);
        assert_int_equal(after.number, before.number + 1);
    }
    free(path);
}

/* What cannot be made anew is told, until it can. */
static void test_it_cannot_be_made_anew(void **state)
{
    struct fixture *f = *state;
    char *path = xasprintf("%s-seq", f->path);
    struct commits witnessed;

    write_work(f, change);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    write_work(f, change);
    assert_true(store_witness_gone(f->store));
    assert_int_equal(rmdir(path), 0);
    write_work(f, leave);
    assert_false(store_witness_gone(f->store));
    assert_int_equal(ask(f, &witnessed), WITNESS_AGREES);
    free(path);
}

static void edit(struct fixture *f, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void probe_done(void *arg, const struct err *result)
{
    *(struct err *)arg = *result;
}

static struct err probe(struct fixture *f, bool commits)
{
    struct err found = { .code = ERR_INTERNAL };

    store_probe(f->store, commits, &found, probe_done);
    while (store_pending(f->store) > 0) {
        struct pollfd ready = { .fd = store_fd(f->store), .events = POLLIN };

        poll(&ready, 1, -1);
        store_dispatch(f->store);
    }
    return found;
}

/* Whoever takes the count away, or sets it back, hides a loss: nothing is acknowledged
 * until it is put back. */
static void test_the_count_is_taken_away_while_served(void **state)
{
    static const char *const edits[] = {
        "DELETE FROM commits",
        "UPDATE commits SET number = number - 1",
        "UPDATE commits SET lineage = lineage + 1",
    };
    struct fixture *f = *state;

    for (int i = 0; i < 3; i++) {
        struct commits before, after;
        struct err err;
        char back[128];

        write_work(f, change);
        assert_int_equal(ask(f, &before), WITNESS_AGREES);
        edit(f, edits[i]);
        assert_int_equal(store_write_sync(f->store, change, NULL, &err), ERR_IO);
        assert_non_null(strstr(err.message, "the count of commits in the database"));
        assert_int_equal(probe(f, false).code, ERR_IO);
        assert_int_equal(probe(f, true).code, ERR_IO);
        assert_int_equal(store_write_sync(f->store, change, NULL, &err), ERR_IO);
        snprintf(back, sizeof back,
                 "DELETE FROM commits; INSERT INTO commits VALUES (%" PRId64 ", %" PRId64
                 ")",
                 before.lineage, before.number);
        edit(f, back);
        assert_int_equal(probe(f, true).code, ERR_OK);
        write_work(f, change);
        assert_int_equal(ask(f, &after), WITNESS_AGREES);
        assert_int_equal(after.number, before.number + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_it_is_made_anew, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_it_cannot_be_made_anew, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_the_count_is_taken_away_while_served,
                                        fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
