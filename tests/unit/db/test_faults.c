/* The n-th call of SQLite's file system fails, for each n of a few transactions: each is
 * acknowledged and there at the next start, or refused; nothing else is found wrong then.
 */
#include <stdbool.h>

#include "db/fsck.h"
#include "tests/unit/db/faulty_vfs.h"
#include "tests/unit/db/store_fixture.h"

enum { STEPS = 5, LASTING = 1000000 };

/* ThreadSanitizer takes ten times as long; what fails is the same, and it sees who shares
 * what. */
#ifdef __SANITIZE_THREAD__
enum { COARSE = 4 };
#else
enum { COARSE = 1 };
#endif

/* What the script was told. */
struct told {
    bool opened;
    bool ok[STEPS];
};

static void write_step(struct fixture *f, struct told *told, int step, store_fn fn,
                       void *arg)
{
    struct err err = { .message = "" };

    told->ok[step] = store_write_sync(f->store, fn, arg, &err) == ERR_OK;
    if (!told->ok[step] && !err.message[0]) {
        fail_msg("step %d was refused without a word", step);
    }
}

/* Two jobs and a run, whatever fails on the way. */
static struct told play(struct fixture *f)
{
    struct job_item items[2] = { fixture_item("ordered", "cpu:a", 1),
                                 fixture_item("ordered", "cpu:a", 1) };
    struct fixture_job first = fixture_job(1, &items[0], 1);
    struct fixture_job second = fixture_job(2, &items[1], 1);
    struct fixture_run run = {
        .n = 1, .job = 1, .environment = 1, .digest = 5, .outcome = OUTCOME_COMPLETED
    };
    struct told told = { false, { false } };
    struct err err = { .message = "" };

    told.opened = store_open(f->path, &fixture_options, &f->store, &err) == ERR_OK;
    if (!told.opened) {
        assert_true(err.message[0] != '\0');
        f->store = NULL;
        return told;
    }
    write_step(f, &told, 0, fixture_insert_job, &first);
    write_step(f, &told, 1, fixture_begin, &run);
    write_step(f, &told, 2, fixture_start, &run);
    write_step(f, &told, 3, fixture_finish, &run);
    write_step(f, &told, 4, fixture_insert_job, &second);
    fixture_close(f);
    return told;
}

static enum err_code get_job(struct tx *tx, void *arg, struct err *err)
{
    struct job job;
    char id[ID_SIZE];

    fixture_id('J', *(int *)arg, id);
    if (jobs_get(tx, id, &job, err) != ERR_OK) {
        return err->code;
    }
    job_release(&job);
    return ERR_OK;
}

static enum err_code get_run(struct tx *tx, void *arg, struct err *err)
{
    struct run_record *run = arg;
    char id[ID_SIZE];

    fixture_id('R', 1, id);
    return runs_get(tx, id, run, err);
}

static void hear(void *arg, const char *line)
{
    (void)arg;
    printf("%s\n", line);
}

/* What was acknowledged is there, and the whole is sound. */
static void check(struct fixture *f, const struct told *told, int n)
{
    struct fsck_counts counts = { 0 };
    struct run_record run;
    struct err err;

    fixture_open(f);
    for (int job = 1; job <= 2; job++) {
        if (told->ok[job == 1 ? 0 : 4] &&
            store_read_sync(f->store, get_job, &job, &err) != ERR_OK) {
            fail_msg("call %d: job %d was acknowledged and is lost", n, job);
        }
    }
    if (told->ok[3]) {
        fixture_read(f, get_run, &run);
        assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    }
    fixture_close(f);
    assert_int_equal(fsck_database(f->path, hear, NULL, &counts, &err), ERR_OK);
    if (counts.damaged || counts.dangling || counts.cells_differing ||
        counts.jobs_differing) {
        fail_msg("call %d: fsck found something", n);
    }
}

/* A database that was closed in order, at F's path: made once, since migrations take
 * long. */
static struct fixture *made;

static void place_database(const struct fixture *f)
{
    char command[256];

    snprintf(command, sizeof command, "cp %s %s", made->path, f->path);
    assert_int_equal(system(command), 0);
}

static int make_database(void **state)
{
    (void)state;
    made = fixture_new();
    fixture_open(made);
    fixture_close(made);
    return 0;
}

static int remove_database(void **state)
{
    (void)state;
    fixture_free(made);
    return 0;
}

/* Each STEP-th call fails, that one alone or all from there on, on a database that is new
 * or that was closed in order.  Returns how many were tried. */
static int sweep(bool is_new, bool lasts, int step)
{
    int tried = 0;
    bool struck = true;

    for (int n = 1; struck; n += step) {
        struct fixture *f = fixture_new();
        struct told told;

        if (!is_new) {
            place_database(f);
        }
        faulty.full = n % 2 == 0;
        faulty_plan(n, lasts ? LASTING : n);
        told = play(f);
        struck = atomic_load(&faulty.failed) > 0;
        faulty_plan(0, 0);
        if (!struck) {
            assert_true(told.opened && told.ok[0] && told.ok[3] && told.ok[4]);
        }
        check(f, &told, n);
        fixture_free(f);
        tried++;
    }
    return tried;
}

/* make faults sets REPROD_FAULTS_ALL, and tries every call. */
static int some(int step)
{
    return getenv("REPROD_FAULTS_ALL") ? 1 : step * COARSE;
}

static void test_each_call_fails_once(void **state)
{
    (void)state;
    assert_in_range(sweep(false, false, some(9)), 20 / COARSE, 2000);
}

static void test_all_calls_fail_from_one_on(void **state)
{
    (void)state;
    assert_in_range(sweep(false, true, some(25)), 8 / COARSE, 2000);
}

static void test_a_new_database(void **state)
{
    (void)state;
    assert_in_range(sweep(true, false, some(61)), 5 / COARSE, 2000);
    assert_in_range(sweep(true, true, some(61)), 5 / COARSE, 2000);
}

/* A database whose service was killed, in a folder of its own: its log is there. */
static struct fixture *make_unclean(void)
{
    struct fixture *from = fixture_new();
    struct fixture *unclean = fixture_new();
    struct job_item item = fixture_item("ordered", "cpu:a", 1);
    struct fixture_job job = fixture_job(1, &item, 1);
    char command[512];

    place_database(from);
    fixture_open(from);
    fixture_write(from, fixture_insert_job, &job);
    snprintf(command, sizeof command, "cp %s* %s", from->path, unclean->directory);
    assert_int_equal(system(command), 0);
    fixture_free(from);
    return unclean;
}

/* A start that meets an error of the disk does not say that the database is damaged. */
static void test_an_error_is_not_damage(void **state)
{
    struct fixture *unclean = make_unclean();
    bool struck = true;
    int failed = 0;

    (void)state;
    for (int n = 1; struck; n += some(5)) {
        struct fixture *f = fixture_new();
        struct err err = { .message = "" };
        char command[512];

        snprintf(command, sizeof command, "cp %s %s-wal %s", unclean->path, unclean->path,
                 f->directory);
        assert_int_equal(system(command), 0);
        faulty.full = false;
        faulty_plan(n, n);
        if (store_open(f->path, &fixture_options, &f->store, &err) != ERR_OK) {
            failed++;
            f->store = NULL;
            if (err.code == ERR_CORRUPT) {
                fail_msg("call %d: %s", n, err.message);
            }
        }
        struck = atomic_load(&faulty.failed) > 0;
        faulty_plan(0, 0);
        fixture_free(f);
    }
    assert_true(failed > 10 / COARSE);
    fixture_free(unclean);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_fails_once),
        cmocka_unit_test(test_all_calls_fail_from_one_on),
        cmocka_unit_test(test_a_new_database),
        cmocka_unit_test(test_an_error_is_not_damage),
    };

    faulty_install();
    return cmocka_run_group_tests_name("faults", tests, make_database, remove_database);
}
