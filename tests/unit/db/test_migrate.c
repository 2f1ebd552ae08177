/* Migrations, and which files are opened at all: nothing that is refused is touched. */
#include "tests/unit/db/file_fixture.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/array.h"
#include "daemon/base/log.h"
#include "db/migrate.h"
#include "db/tx.h"

static const struct migration two_steps[] = {
    { "0001-a.sql", "CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (1);" },
    { "0002-b.sql", "ALTER TABLE a ADD COLUMN y INTEGER; UPDATE a SET y = x + 1;" },
};

static void test_each_step_is_applied_once(void **state)
{
    struct err err;
    sqlite3 *db;
    int from;

    (void)state;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(migrate_apply(db, two_steps, 1, &from, &err), ERR_OK);
    assert_int_equal(from, 0);
    assert_int_equal(ask(db, "PRAGMA user_version"), 1);
    assert_int_equal(migrate_apply(db, two_steps, 2, &from, &err), ERR_OK);
    assert_int_equal(from, 1);
    assert_int_equal(ask(db, "SELECT y FROM a"), 2);
    assert_int_equal(migrate_apply(db, two_steps, 2, &from, &err), ERR_OK);
    assert_int_equal(from, 2);
    assert_int_equal(ask(db, "SELECT count(*) FROM a"), 1);
    assert_int_equal(migrate_apply(db, two_steps, 1, &from, &err), ERR_NEWER);
    sqlite3_close(db);
}

static void test_a_failing_step_leaves_the_one_before(void **state)
{
    static const struct migration broken[] = {
        { "0001-a.sql", "CREATE TABLE a (x INTEGER);" },
        { "0002-b.sql", "CREATE TABLE b (x INTEGER); INSERT INTO nowhere VALUES (1);" },
    };
    struct err err;
    sqlite3 *db;
    int from;

    (void)state;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_not_equal(migrate_apply(db, broken, 2, &from, &err), ERR_OK);
    assert_non_null(strstr(err.message, "0002-b.sql"));
    assert_int_equal(ask(db, "PRAGMA user_version"), 1);
    assert_int_equal(ask(db, "SELECT count(*) FROM sqlite_schema"), 1);
    sqlite3_close(db);
}

static void test_dangling_rows_are_found(void **state)
{
    static const struct migration dangling[] = {
        { "0001-a.sql",
          "CREATE TABLE a (x INTEGER PRIMARY KEY);"
          "CREATE TABLE b (x INTEGER REFERENCES a);"
          "INSERT INTO b VALUES (1);" },
    };
    struct err err;
    sqlite3 *db;
    int from;

    (void)state;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(migrate_apply(db, dangling, 1, &from, &err), ERR_CORRUPT);
    sqlite3_close(db);
}

struct bytes {
    char data[1 << 20];
    ssize_t length;
};

static struct bytes *read_all(const char *path)
{
    struct bytes *b = malloc(sizeof *b);
    int fd = open(path, O_RDONLY);

    assert_non_null(b);
    assert_true(fd >= 0);
    b->length = read(fd, b->data, sizeof b->data);
    assert_true(b->length >= 0 && b->length < (ssize_t)sizeof b->data);
    close(fd);
    return b;
}

/* Opening is refused with CODE, and not a byte of the file is changed. */
static void check_refused(struct fixture *f, enum err_code code)
{
    struct bytes *before = read_all(f->path);
    struct bytes *after;
    struct store *store = NULL;
    struct err err = { .code = ERR_OK, .message = "" };
    char log[128];
    struct stat st;

    assert_int_equal(store_open(f->path, &fixture_options, &store, &err), code);
    assert_non_null(strstr(err.message, f->path));
    after = read_all(f->path);
    assert_int_equal(before->length, after->length);
    assert_memory_equal(before->data, after->data, (size_t)before->length);
    snprintf(log, sizeof log, "%s-wal", f->path);
    assert_true(stat(log, &st) != 0 || st.st_size == 0);
    free(before);
    free(after);
}

static void test_a_newer_database_is_refused(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    fixture_close(f);
    execute_in(f->path, "PRAGMA user_version = 99");
    check_refused(f, ERR_NEWER);
}

static enum err_code become_newer(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return tx_run(tx, err, "PRAGMA user_version = 99");
}

/* The newer version stands in the log only: killed before a checkpoint. */
static void test_a_newer_database_is_refused_by_its_log(void **state)
{
    struct fixture *f = *state;
    char command[256];
    struct stat before;
    struct stat after;
    struct store *store = NULL;
    struct err err;

    fixture_open(f);
    fixture_write(f, become_newer, NULL);
    snprintf(command, sizeof command,
             "cd %s && mkdir copy && cp reprod.db reprod.db-wal copy", f->directory);
    assert_int_equal(system(command), 0);
    fixture_close(f);
    snprintf(command, sizeof command, "%s/copy/reprod.db-wal", f->directory);
    assert_int_equal(stat(command, &before), 0);
    snprintf(f->path, sizeof f->path, "%s/copy/reprod.db", f->directory);
    assert_int_equal(store_open(f->path, &fixture_options, &store, &err), ERR_NEWER);
    assert_int_equal(stat(command, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
}

static void test_garbage_is_refused(void **state)
{
    struct fixture *f = *state;
    FILE *file = fopen(f->path, "w");

    assert_non_null(file);
    for (int i = 0; i < 5000; i++) {
        fprintf(file, "this is not a database %d\n", i);
    }
    fclose(file);
    check_refused(f, ERR_CORRUPT);
    file = fopen(f->path, "w");
    assert_non_null(file);
    fputs("short", file);
    fclose(file);
    check_refused(f, ERR_CORRUPT);
}

static void test_another_program_s_database_is_refused(void **state)
{
    struct fixture *f = *state;

    execute_in(f->path, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    check_refused(f, ERR_CORRUPT);
    execute_in(f->path, "PRAGMA application_id = 7");
    check_refused(f, ERR_CORRUPT);
}

static void test_a_truncated_database_is_refused(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    fixture_close(f);
    assert_int_equal(truncate(f->path, 8192), 0);
    check_refused(f, ERR_CORRUPT);
}

static void test_an_empty_file_becomes_a_database(void **state)
{
    struct fixture *f = *state;
    int fd = open(f->path, O_CREAT | O_WRONLY, 0600);
    struct job_item item = fixture_item("ordered", "cpu:a", 1);
    struct fixture_job j = fixture_job(1, &item, 1);

    close(fd);
    fixture_open(f);
    fixture_write(f, fixture_insert_job, &j);
}

static void keep_lines(void *arg, const char *line)
{
    char *kept = arg;
    size_t length = strlen(kept);

    snprintf(kept + length, 1024 - length, "%s\n", line);
}

/* The lines that opening the database of F logs. */
static void open_logging(struct fixture *f, char ret_lines[1024])
{
    ret_lines[0] = '\0';
    log_set_sink(keep_lines, ret_lines);
    fixture_open(f);
    log_set_sink(NULL, NULL);
    fixture_close(f);
}

static void test_what_takes_long_is_announced(void **state)
{
    struct fixture *f = *state;
    char command[160];
    char lines[1024];

    open_logging(f, lines);
    assert_string_equal(lines, "");
    snprintf(command, sizeof command, "cp tests/fixtures/v2.db %s", f->path);
    assert_int_equal(system(command), 0);
    open_logging(f, lines);
    assert_non_null(strstr(lines, "database: going from schema 2 to"));
    assert_non_null(strstr(lines, "nothing is served until that is done"));
    assert_non_null(strstr(lines, "database: it has schema"));
    open_logging(f, lines);
    assert_string_equal(lines, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_step_is_applied_once),
        cmocka_unit_test(test_a_failing_step_leaves_the_one_before),
        cmocka_unit_test(test_dangling_rows_are_found),
        FILE_TEST(test_a_newer_database_is_refused),
        FILE_TEST(test_a_newer_database_is_refused_by_its_log),
        FILE_TEST(test_garbage_is_refused),
        FILE_TEST(test_another_program_s_database_is_refused),
        FILE_TEST(test_a_truncated_database_is_refused),
        FILE_TEST(test_an_empty_file_becomes_a_database),
        FILE_TEST(test_what_takes_long_is_announced),
    };

    return cmocka_run_group_tests_name("migrate", tests, NULL, NULL);
}
