/* Opening a database: by one daemon at a time, where it can be, and not when damaged. */
#include "tests/unit/db/store_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/id.h"

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
        STORE_TEST(test_ids_go_on_where_the_database_ends),
        STORE_TEST(test_unwritable_places_are_refused),
        STORE_TEST(test_damage_is_found_after_an_unclean_end),
    };

    return cmocka_run_group_tests_name("store_open", tests, NULL, NULL);
}
