/* A database whose files go away while it is served: nothing is said to be stored that is
 * not where it was opened. */
#include "db/files.h"

#include "tests/unit/db/store_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void file_of(const struct fixture *f, const char *ending, char ret_path[256])
{
    snprintf(ret_path, 256, "%s%s", f->path, ending);
}

static enum err_code insert(struct fixture *f, int number, struct err *err)
{
    struct job_item item = fixture_item("ordered", "cpu:a", 1);
    struct fixture_job j = fixture_job(number, &item, 1);

    return store_write_sync(f->store, fixture_insert_job, &j, err);
}

static void check_refused(struct fixture *f, int number, const char *words)
{
    struct err err;

    assert_int_equal(insert(f, number, &err), ERR_IO);
    if (!strstr(err.message, words) || !strstr(err.message, "not stored")) {
        fail_msg("%s", err.message);
    }
    assert_true(store_failing(f->store));
}

static void test_each_file_that_goes_is_noticed(void **state)
{
    static const char *const endings[] = { "", "-wal", "-shm" };
    struct fixture *f = *state;
    struct err err;

    assert_int_equal(insert(f, 1, &err), ERR_OK);
    for (int i = 0; i < 3; i++) {
        char path[256];
        char away[256];

        file_of(f, endings[i], path);
        file_of(f, ".away", away);
        assert_int_equal(rename(path, away), 0);
        check_refused(f, 2, "was removed or moved away");
        assert_int_equal(rename(away, path), 0);
        assert_int_equal(insert(f, 10 + i, &err), ERR_OK);
        assert_false(store_failing(f->store));
    }
}

static void test_a_file_that_is_replaced_is_noticed(void **state)
{
    struct fixture *f = *state;
    char command[800];
    char away[256];
    struct err err;

    file_of(f, ".away", away);
    snprintf(command, sizeof command, "mv %s %s && cp %s %s", f->path, away, away,
             f->path);
    assert_int_equal(system(command), 0);
    check_refused(f, 1, "was replaced by another file");
    assert_int_equal(rename(away, f->path), 0);
    assert_int_equal(insert(f, 2, &err), ERR_OK);
}

static enum err_code take_away(struct tx *tx, void *arg, struct err *err)
{
    const char *path = arg;
    char away[300];

    (void)tx;
    (void)err;
    snprintf(away, sizeof away, "%s.away", path);
    assert_int_equal(rename(path, away), 0);
    return ERR_OK;
}

/* Between the look before the transaction and its commit. */
static void test_a_file_that_goes_during_a_commit_is_noticed(void **state)
{
    struct fixture *f = *state;
    char away[300];
    struct err err;

    assert_int_equal(store_write_sync(f->store, take_away, f->path, &err), ERR_IO);
    snprintf(away, sizeof away, "%s.away", f->path);
    assert_int_equal(rename(away, f->path), 0);
}

struct answer {
    bool there;
    struct err err;
};

static void take_answer(void *arg, const struct err *result)
{
    struct answer *answer = arg;

    answer->err = *result;
    answer->there = true;
}

static enum err_code probe(struct fixture *f, bool commits)
{
    struct answer answer = { 0 };

    store_probe(f->store, commits, &answer, take_answer);
    while (!answer.there) {
        usleep(1000);
        store_dispatch(f->store);
    }
    return answer.err.code;
}

/* Nobody who keeps what he read has to read it again because of a probe. */
static void test_a_probe_changes_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t generation = store_generation(f->store);
    char log[256];
    struct stat before;
    struct stat after;

    file_of(f, "-wal", log);
    assert_int_equal(stat(log, &before), 0);
    assert_int_equal(probe(f, false), ERR_OK);
    assert_int_equal(stat(log, &after), 0);
    assert_true(after.st_mtim.tv_sec == before.st_mtim.tv_sec &&
                after.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
    usleep(50000); /* more than the steps of a file's time */
    assert_int_equal(probe(f, true), ERR_OK);
    assert_int_equal(stat(log, &after), 0);
    assert_true(after.st_mtim.tv_sec != before.st_mtim.tv_sec ||
                after.st_mtim.tv_nsec != before.st_mtim.tv_nsec);
    assert_true(store_generation(f->store) == generation);
    assert_int_equal(rename(log, f->path), 0);
    assert_int_equal(probe(f, false), ERR_IO);
    assert_int_equal(probe(f, true), ERR_IO);
}

static void test_the_room_of_a_file_system(void **state)
{
    struct fixture *f = *state;
    struct err err;

    assert_int_equal(files_check_room(f->path, &err), ERR_OK);
    assert_int_equal(files_check_room("/proc/self/stat", &err),
                     ERR_IO); /* no room ever */
    assert_non_null(strstr(err.message, "is full"));
    assert_int_equal(files_check_room("/nonexistent", &err), ERR_IO);
}

static pid_t holder;
static int pauses;

/* Instead of the library's: who waits for the holder finds it gone. */
int nanosleep(const struct timespec *requested, struct timespec *remaining)
{
    (void)requested;
    (void)remaining;
    pauses++;
    if (holder) {
        assert_int_equal(kill(holder, SIGKILL), 0);
        assert_int_equal(waitpid(holder, NULL, 0), holder);
        holder = 0;
    }
    return 0;
}

/* A child that a service forked, and that executed nothing yet, has the service's lock
 * when that is killed. */
static void test_a_lock_that_a_child_still_has(void **state)
{
    struct fixture *f = *state;
    struct files_lock first, second;
    struct err err = { .message = "" };

    fixture_close(f);
    assert_int_equal(files_lock(f->path, &first, &err), ERR_OK);
    pauses = 0;
    assert_int_equal(files_lock(f->path, &second, &err), ERR_BUSY);
    assert_true(pauses > 1);
    files_unlock(&second);
    holder = fork();
    assert_true(holder >= 0);
    if (holder == 0) {
        for (;;) {
            pause();
        }
    }
    files_unlock(&first);
    assert_int_equal(files_lock(f->path, &second, &err), ERR_OK);
    assert_int_equal(holder, 0);
    files_unlock(&second);
    fixture_open(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_each_file_that_goes_is_noticed),
        STORE_TEST(test_a_file_that_is_replaced_is_noticed),
        STORE_TEST(test_a_file_that_goes_during_a_commit_is_noticed),
        STORE_TEST(test_a_probe_changes_nothing),
        STORE_TEST(test_the_room_of_a_file_system),
        STORE_TEST(test_a_lock_that_a_child_still_has),
    };

    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
