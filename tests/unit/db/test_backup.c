/* Backup of a database in use, and fsck. */
#include "db/backup.h"

#include <sqlite3.h>
#include <unistd.h>

#include "daemon/base/buf.h"
#include "db/fsck.h"
#include "db/tx.h"
#include "tests/unit/db/store_fixture.h"

static void fill(struct fixture *f, int from, int to)
{
    if (from == 1) {
        struct job_item items[] = { fixture_item("unordered", "cpu:a", 100),
                                    fixture_item("ordered", "cpu:a", 100) };
        struct fixture_job j = fixture_job(1, items, 2);

        fixture_write(f, fixture_insert_job, &j);
    }
    for (int i = from; i <= to; i++) {
        struct fixture_run r = { .n = i,
                                 .job = 1,
                                 .item = i % 2,
                                 .outcome = OUTCOME_COMPLETED,
                                 .environment = 1,
                                 .distinct = i % 2 ? 1 : 2 };

        fixture_write(f, fixture_whole_run, &r);
    }
}

static void collect_line(void *arg, const char *line)
{
    buf_printf(arg, "%s\n", line);
}

/* What fsck says about PATH, counted; LINES may be NULL. */
static struct fsck_counts fsck(const char *path, struct buf *lines)
{
    struct buf own = BUF_INIT;
    struct fsck_counts counts;
    struct err err;

    if (fsck_database(path, collect_line, lines ? lines : &own, &counts, &err) !=
        ERR_OK) {
        fail_msg("%s", err.message);
    }
    buf_release(&own);
    return counts;
}

static void copy_path(struct fixture *f, char ret_path[128])
{
    snprintf(ret_path, 128, "%s/copy.db", f->directory);
}

static void test_the_copy_is_the_database_at_that_instant(void **state)
{
    struct fixture *f = *state;
    char copy[128];
    struct fsck_counts counts;
    struct err err;

    copy_path(f, copy);
    fill(f, 1, 6);
    assert_int_equal(backup_database(f->path, copy, &err), ERR_OK);
    fill(f, 7, 8);
    counts = fsck(copy, NULL);
    assert_int_equal(counts.damaged + counts.dangling + counts.cells_differing, 0);
    assert_int_equal(counts.cells, 2);
    assert_int_equal(counts.jobs, 1);
    fixture_close(f);
    snprintf(f->path, sizeof f->path, "%s/copy.db", f->directory);
    fixture_open(f);
    assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_COMPLETED], 3);
    fill(f, 7, 7); /* and it can be served in its place */
}

static void test_nothing_is_overwritten(void **state)
{
    struct fixture *f = *state;
    char copy[128];
    char partial[160];
    struct err err;

    copy_path(f, copy);
    assert_int_equal(backup_database(f->path, f->path, &err), ERR_CONFLICT);
    assert_int_equal(backup_database(f->path, copy, &err), ERR_OK);
    assert_int_equal(backup_database(f->path, copy, &err), ERR_CONFLICT);
    unlink(copy);
    snprintf(partial, sizeof partial, "%s.partial", copy);
    assert_int_not_equal(access(partial, F_OK), 0);
    fclose(fopen(partial, "w"));
    assert_int_equal(backup_database(f->path, copy, &err), ERR_CONFLICT);
    assert_int_equal(access(partial, F_OK), 0);
}

static void test_bad_places(void **state)
{
    struct fixture *f = *state;
    char copy[128];
    struct err err;

    copy_path(f, copy);
    assert_int_equal(backup_database("/nonexistent/x.db", copy, &err), ERR_NOT_FOUND);
    assert_int_equal(backup_database("/etc/hostname", copy, &err), ERR_CORRUPT);
    assert_int_equal(backup_database(f->path, "/nonexistent/copy.db", &err), ERR_IO);
    assert_int_not_equal(access(copy, F_OK), 0);
}

static void test_fsck_beside_a_daemon(void **state)
{
    struct fixture *f = *state;
    struct fsck_counts counts;

    fill(f, 1, 4);
    counts = fsck(f->path, NULL);
    assert_int_equal(counts.damaged, 0);
    assert_int_equal(counts.cells, 2);
    assert_int_equal(counts.cells_differing, 0);
    assert_int_equal(counts.jobs_differing, 0);
    fill(f, 5, 6);
}

/* fsck says nothing about PATH but why it cannot yet. */
static void check_fsck_waits(const char *path, const char *why)
{
    struct buf lines = BUF_INIT;
    struct fsck_counts counts;
    struct err err;

    assert_int_equal(fsck_database(path, collect_line, &lines, &counts, &err),
                     ERR_CONFLICT);
    assert_non_null(strstr(err.message, why));
    assert_int_equal(lines.length, 0);
    buf_release(&lines);
}

static enum err_code damage(struct tx *tx, void *arg, struct err *err)
{
    int rc = sqlite3_exec(tx->db, arg, NULL, NULL, NULL);

    return rc == SQLITE_OK ? ERR_OK : tx_error(tx->db, rc, err);
}

static void test_fsck_sees_damage(void **state)
{
    static char unearned[] =
        "UPDATE cell SET verdict = 'reproducible', completed = 3"
        " WHERE distinct_digests = 1";
    static char counts_of_job[] = "UPDATE job SET runs_done = 5";
    static char strangers[] =
        "UPDATE case_key SET siblings = 9 WHERE variant = 'ordered'";
    static char orphan[] =
        "INSERT INTO cell_device (cell, device, options, runs) VALUES (77, 'x', '', 1)";
    struct fixture *f = *state;
    struct buf lines = BUF_INIT;
    struct fsck_counts counts;
    sqlite3 *db;

    fill(f, 1, 1); /* one run of `ordered`: inconclusive */
    fixture_write(f, damage, unearned);
    fixture_write(f, damage, counts_of_job);
    fixture_write(f, damage, strangers);
    fixture_close(f);
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK); /* without foreign keys */
    assert_int_equal(sqlite3_exec(db, orphan, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    counts = fsck(f->path, &lines);
    assert_int_equal(counts.damaged, 0);
    assert_int_equal(counts.dangling, 4);
    assert_int_equal(counts.cells_differing, 2); /* and that of the orphan */
    assert_int_equal(counts.jobs_differing, 1);
    assert_non_null(strstr(lines.data, "completed: stored 3, the runs give 1"));
    assert_non_null(strstr(lines.data, "verdict: stored \"reproducible\""));
    assert_non_null(strstr(lines.data, "table cell_device"));
    assert_non_null(strstr(lines.data, "it is not with its siblings"));
    assert_non_null(strstr(lines.data, "case 9: its inputs are not those of its runs"));
    buf_release(&lines);
}

/* An upgrade is not damage, and nothing differs because of it. */
static void test_fsck_waits_for_an_upgrade(void **state)
{
    static char older_rules[] =
        "UPDATE judged SET rules = 1;"
        "UPDATE cell SET reason = 'as of old';" FIXTURE_SEAL_CELLS;
    struct fixture *f = *state;
    char command[256];

    fill(f, 1, 4);
    fixture_write(f, damage, older_rules);
    check_fsck_waits(f->path, "rules of another reprod");
    fixture_close(f);
    fixture_open(f);
    assert_int_equal(fsck(f->path, NULL).cells_differing, 0);
    fixture_close(f);
    snprintf(command, sizeof command, "cp tests/fixtures/v2.db %s", f->path);
    assert_int_equal(system(command), 0);
    check_fsck_waits(f->path, "schema 2");
}

/* Pages have numbers from one on. */
static long page_of_logs(const char *path)
{
    sqlite3_stmt *statement;
    sqlite3 *db;
    long page;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(
                         db, "SELECT rootpage FROM sqlite_schema WHERE name = 'run_log'",
                         -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    page = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return page;
}

/* Overwrites a page of PATH that nobody needs to open it. */
static void damage_page(const char *path)
{
    long page = page_of_logs(path);
    FILE *file = fopen(path, "r+");

    assert_non_null(file);
    fseek(file, (page - 1) * 4096, SEEK_SET);
    for (int i = 0; i < 4096; i++) {
        fputc(0xff, file);
    }
    fclose(file);
}

static void test_damaged_pages(void **state)
{
    struct fixture *f = *state;
    struct fsck_counts counts;
    char copy[128];
    char partial[160];
    struct err err;

    copy_path(f, copy);
    snprintf(partial, sizeof partial, "%s.partial", copy);
    fill(f, 1, 4);
    fixture_close(f);
    damage_page(f->path);
    counts = fsck(f->path, NULL);
    assert_true(counts.damaged > 0);
    assert_int_equal(backup_database(f->path, copy, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.message, "nothing was written"));
    assert_int_not_equal(access(copy, F_OK), 0);
    assert_int_not_equal(access(partial, F_OK), 0);
}

static void test_a_backup_takes_the_place(void **state)
{
    struct fixture *f = *state;
    char copy[128];
    char *kept;
    struct err err;

    copy_path(f, copy);
    fill(f, 1, 4);
    assert_int_equal(backup_database(f->path, copy, &err), ERR_OK);
    fill(f, 5, 8);
    assert_int_equal(backup_restore(copy, f->path, 77, &kept, &err), ERR_BUSY);
    fixture_close(f);
    damage_page(f->path);
    assert_int_equal(backup_restore(copy, f->path, 77, &kept, &err), ERR_OK);
    assert_true(fsck(kept, NULL).damaged > 0);
    fixture_open(f);
    assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_COMPLETED], 2);
    assert_int_equal(fsck(f->path, NULL).cells_differing, 0);
    free(kept);
}

/* It is copied before it is moved away. */
static void test_a_database_can_take_its_own_place(void **state)
{
    struct fixture *f = *state;
    char *kept = NULL;
    struct err err;

    fill(f, 1, 4);
    fixture_close(f);
    assert_int_equal(backup_restore(f->path, f->path, 77, &kept, &err), ERR_OK);
    assert_int_equal(fsck(kept, NULL).cells_differing, 0);
    fixture_open(f);
    assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_COMPLETED], 2);
    free(kept);
}

/* After what goes wrong everything is where it was. */
static void test_what_cannot_be_restored(void **state)
{
    struct fixture *f = *state;
    char copy[128];
    char *kept = NULL;
    struct err err;

    copy_path(f, copy);
    fill(f, 1, 4);
    assert_int_equal(backup_database(f->path, copy, &err), ERR_OK);
    fixture_close(f);
    damage_page(copy);
    assert_int_equal(backup_restore(copy, f->path, 77, &kept, &err), ERR_CORRUPT);
    assert_int_equal(backup_restore("/etc/hostname", f->path, 77, &kept, &err),
                     ERR_CORRUPT);
    assert_int_equal(backup_restore("/nonexistent/x.db", f->path, 77, &kept, &err),
                     ERR_NOT_FOUND);
    assert_null(kept);
    fixture_open(f);
    assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_COMPLETED], 2);
}

/* What a restore that was killed leaves, step by step. */
static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* The steps: the copy; the marker; the second name of what was there, or, where the file
 * system has no such names, its move; its log; the copy takes its place; the witness. */
static void leave_half(const struct fixture *f, const char *copy, int steps, bool links)
{
    char restored[160], marker[160], kept[200], from[200], to[240], command[400];

    snprintf(restored, sizeof restored, "%s.restored", f->path);
    snprintf(marker, sizeof marker, "%s.restoring", f->path);
    snprintf(kept, sizeof kept, "%s.replaced-2026-11-24T03:40:00.000Z", f->path);
    snprintf(command, sizeof command, "cp %s %s", copy, restored);
    assert_int_equal(system(command), 0);
    if (steps >= 1) {
        put(marker, "2026-11-24T03:40:00.000Z");
    }
    if (steps >= 2) {
        assert_int_equal((links ? link : rename)(f->path, kept), 0);
    }
    snprintf(from, sizeof from, "%s-wal", f->path);
    snprintf(to, sizeof to, "%s-wal", kept);
    if (steps >= 3) {
        assert_int_equal(rename(from, to), 0);
    }
    if (steps >= 4) {
        assert_int_equal(rename(restored, f->path), 0);
    }
    snprintf(from, sizeof from, "%s-seq", f->path);
    snprintf(to, sizeof to, "%s-seq", kept);
    if (steps >= 5) {
        assert_int_equal(rename(from, to), 0);
    }
}

static void test_a_restore_that_was_killed(void **state)
{
    for (int steps = 0; steps <= 5; steps++) {
        for (int links = steps == 2 || steps == 3 ? 0 : 1; links <= 1; links++) {
            struct fixture *f = *state;
            char copy[128], left[240], kept[200];
            struct err err = { .message = "" };

            copy_path(f, copy);
            fill(f, 1, 4);
            assert_int_equal(backup_database(f->path, copy, &err), ERR_OK);
            fill(f, 5, 8);
            fixture_close(f);
            snprintf(left, sizeof left, "%s-wal", f->path);
            put(left, "nothing that SQLite takes for a log");
            leave_half(f, copy, steps, links);
            fixture_open(f);
            assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_COMPLETED],
                             steps == 0 ? 4 : 2);
            assert_null(store_refusal(f->store));
            for (int i = 0; i < 3; i++) {
                static const char *const endings[] = { ".restored", ".restoring",
                                                       ".restored.partial" };

                snprintf(left, sizeof left, "%s%s", f->path, endings[i]);
                assert_int_not_equal(access(left, F_OK), 0);
            }
            snprintf(kept, sizeof kept, "%s.replaced-2026-11-24T03:40:00.000Z", f->path);
            assert_int_equal(access(kept, F_OK) == 0, steps > 0);
            if (steps > 0) {
                assert_int_equal(fsck(kept, NULL).cells, fsck(f->path, NULL).cells);
                snprintf(left, sizeof left, "%s-seq", kept);
                assert_int_equal(access(left, F_OK), 0);
            }
            fixture_free(f);
            fixture_setup(state);
        }
    }
}

/* A start would take it for a database that is to be made. */
static void test_an_empty_backup(void **state)
{
    struct fixture *f = *state;
    char copy[128];
    char *kept = NULL;
    struct err err;

    copy_path(f, copy);
    fill(f, 1, 4);
    fixture_close(f);
    put(copy, "");
    assert_int_equal(backup_restore(copy, f->path, 77, &kept, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.message, "is empty"));
    fixture_open(f);
    assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_COMPLETED], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_the_copy_is_the_database_at_that_instant),
        STORE_TEST(test_nothing_is_overwritten),
        STORE_TEST(test_bad_places),
        STORE_TEST(test_fsck_beside_a_daemon),
        STORE_TEST(test_fsck_sees_damage),
        STORE_TEST(test_fsck_waits_for_an_upgrade),
        STORE_TEST(test_damaged_pages),
        STORE_TEST(test_a_backup_takes_the_place),
        STORE_TEST(test_a_database_can_take_its_own_place),
        STORE_TEST(test_what_cannot_be_restored),
        STORE_TEST(test_a_restore_that_was_killed),
        STORE_TEST(test_an_empty_backup),
    };

    return cmocka_run_group_tests_name("backup", tests, NULL, NULL);
}
