/* Opening a database: by one daemon at a time, where it can be, and not when damaged. */
#include "tests/unit/db/store_fixture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/array.h"
#include "daemon/base/id.h"
#include "daemon/base/mem.h"

/* What a process of its own gets when it opens the fixture's database: the code. */
static enum err_code open_elsewhere(const struct fixture *f)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct store *store = NULL;
        struct err err = { .code = ERR_OK };

        _exit((int)store_open(f->path, &fixture_options, &store, &err));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return (enum err_code)WEXITSTATUS(status);
}

static void unlink_all(const struct fixture *f)
{
    static const char *const endings[] = { "", "-wal", "-shm", ".lock" };

    for (int i = 0; i < COUNT_OF(endings); i++) {
        char path[512];

        snprintf(path, sizeof path, "%s%s", f->path, endings[i]);
        unlink(path);
    }
}

/* Whatever is unlinked, nobody else serves the folder. */
static void test_a_lock_cannot_be_unlinked(void **state)
{
    struct fixture *f = *state;
    char path[512];

    assert_int_equal(open_elsewhere(f), ERR_BUSY);
    snprintf(path, sizeof path, "%s.lock", f->path);
    unlink(path);
    assert_int_equal(open_elsewhere(f), ERR_BUSY);
    unlink_all(f);
    assert_int_equal(open_elsewhere(f), ERR_BUSY);
    fixture_close(f);
    fixture_open(f);
}

/* Who can only read cannot stop a start. */
static void test_readers_cannot_lock(void **state)
{
    struct fixture *f = *state;
    char *folder = xstrdup(f->path);
    int held, file;

    *strrchr(folder, '/') = '\0';
    fixture_close(f);
    assert_int_equal(chmod(folder, 0755), 0);
    held = open(folder, O_RDONLY | O_CLOEXEC);
    file = open(f->path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(held, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(flock(file, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(open_elsewhere(f), ERR_OK);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(open_elsewhere(f), ERR_BUSY);
    close(file);
    close(held);
    fixture_open(f);
    free(folder);
}

static void test_files_are_their_owners(void **state)
{
    static const char *const endings[] = { "", "-wal", "-shm" };
    const struct fixture *f = *state;

    for (int i = 0; i < COUNT_OF(endings); i++) {
        char path[512];
        struct stat st;

        snprintf(path, sizeof path, "%s%s", f->path, endings[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
}

static void test_one_daemon_at_a_time(void **state)
{
    struct fixture *f = *state;
    struct store *second = NULL;
    struct err err;

    assert_int_equal(store_open(f->path, &fixture_options, &second, &err), ERR_BUSY);
    assert_non_null(strstr(err.message, "another reprod"));
    fixture_close(f);
    fixture_open(f);
}

/* Whether a failure came after the runs that would heal it is told by ids. */
static void test_ids_go_on_where_the_database_ends(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 5);
    struct fixture_job j = fixture_job(1, &item, 1);
    struct fixture_run r = { .n = 7, .job = 1 };
    char stored[ID_SIZE];
    char id[ID_SIZE];
    char next[ID_SIZE];

    fixture_id('R', r.n, stored);
    id_new(1, id);
    assert_true(strcmp(id, stored) < 0);
    fixture_write(f, fixture_insert_job, &j);
    fixture_write(f, fixture_begin, &r);
    fixture_close(f);
    fixture_open(f);
    id_new(2, id); /* the clock went back */
    assert_true(id_valid(id) && strcmp(id, stored) > 0);
    fixture_close(f);
    fixture_open(f);
    id_new(3, next);
    assert_true(strcmp(next, id) > 0);
}

static void test_unwritable_places_are_refused(void **state)
{
    struct store *store = NULL;
    struct err err;

    (void)state;
    assert_int_equal(store_open("/nonexistent/reprod.db", &fixture_options, &store, &err),
                     ERR_IO);
    assert_int_equal(store_open("/proc/reprod.db", &fixture_options, &store, &err),
                     ERR_IO);
    assert_int_equal(store_open("/tmp", &fixture_options, &store, &err), ERR_IO);
}

static void test_damage_is_found_after_an_unclean_end(void **state)
{
    struct fixture *f = *state;
    struct store *store = NULL;
    struct err err;
    char wal[128];
    char bytes[4096];
    struct stat st;
    int fd;

    fixture_close(f);
    assert_int_equal(stat(f->path, &st), 0);
    fd = open(f->path, O_RDWR);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(pwrite(fd, bytes, sizeof bytes, st.st_size - 4096), 4096);
    close(fd);
    snprintf(wal, sizeof wal, "%s-wal", f->path);
    fd = open(wal, O_RDWR | O_CREAT, 0600);
    assert_int_equal(write(fd, bytes, 100), 100);
    close(fd);
    assert_int_equal(store_open(f->path, &fixture_options, &store, &err), ERR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_one_daemon_at_a_time),
        STORE_TEST(test_a_lock_cannot_be_unlinked),
        STORE_TEST(test_readers_cannot_lock),
        STORE_TEST(test_files_are_their_owners),
        STORE_TEST(test_ids_go_on_where_the_database_ends),
        STORE_TEST(test_unwritable_places_are_refused),
        STORE_TEST(test_damage_is_found_after_an_unclean_end),
    };

    return cmocka_run_group_tests_name("store_open", tests, NULL, NULL);
}
