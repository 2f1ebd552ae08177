/* Databases of earlier versions: they open, and what was measured stays. */
#include "tests/unit/db/file_fixture.h"

#include <unistd.h>

#include "daemon/base/array.h"
#include "db/tx.h"

/* One run of item 0, which varies, and two of item 1, which do not. */
static void write_runs(struct fixture *f)
{
    for (int i = 1; i <= 3; i++) {
        struct fixture_run r = { .n = i,
                                 .job = 1,
                                 .item = i > 1,
                                 .outcome = OUTCOME_COMPLETED,
                                 .environment = 1,
                                 .distinct = i > 1 ? 1 : 3 };

        fixture_write(f, fixture_whole_run, &r);
    }
}

/* REPROD_WRITE_FIXTURE=tests/fixtures/vN.db makes the file that tests of schema N + 1 and
 * later open; it is written once, by the last program of schema N. */
static void write_fixture(const char *path)
{
    struct fixture *f = fixture_new();
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 1),
                                fixture_item("ordered", "cpu:a", 2) };
    struct fixture_job j = fixture_job(1, items, 2);
    char command[256];

    fixture_open(f);
    fixture_write(f, fixture_insert_job, &j);
    write_runs(f);
    fixture_close(f);
    snprintf(command, sizeof command, "cp %s %s", f->path, path);
    assert_int_equal(system(command), 0);
    fixture_free(f);
}

static enum err_code count_siblings(struct tx *tx, void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT count(*) FROM case_key GROUP BY siblings ORDER BY siblings");
    for (int i = 0; i < 3 && query_step(&q); i++) {
        ((int64_t *)arg)[i] = query_take_int(&q);
    }
    return query_end(&q, err);
}

/* Cases that are new find those that were migrated. */
static void check_siblings(struct fixture *f)
{
    struct job_item items[] = { fixture_item("patched", "cpu:a", 1),
                                fixture_item("patched", "cpu:a", 1) };
    struct fixture_job j = fixture_job(7, items, 2);
    int64_t counts[3] = { 0 };
    struct err err;

    items[1].key.seed++;
    fixture_write(f, fixture_insert_job, &j);
    assert_int_equal(store_read_sync(f->store, count_siblings, counts, &err), ERR_OK);
    assert_int_equal(counts[0], 3);
    assert_int_equal(counts[1], 1);
    assert_int_equal(counts[2], 0);
}

static void check_old_database(struct fixture *f, int version)
{
    char command[256];
    struct fixture_run next = { .n = 4, .job = 1, .outcome = OUTCOME_COMPLETED };
    struct err err;

    snprintf(command, sizeof command, "cp tests/fixtures/v%d.db %s", version, f->path);
    assert_int_equal(system(command), 0);
    fixture_open(f);
    /* It was reproducible, and nobody compared it with the reference. */
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_INCONCLUSIVE);
    assert_string_equal(fixture_cell(f, "ordered").reason,
                        "the control varied, but was not compared with the float64 "
                        "reference, which its next run is asked to do");
    assert_int_equal(fixture_cell(f, "unordered").verdict, VERDICT_VARIES);
    assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_COMPLETED], 2);
    assert_int_equal(fixture_cell(f, "ordered").times.runs, 2);
    assert_int_equal(fixture_cell(f, "ordered").times.median_ns,
                     times_middle(times_bucket(2002)));
    fixture_check_cells(f);
    assert_int_equal(store_write_sync(f->store, fixture_whole_run, &next, &err),
                     ERR_CONFLICT); /* its job is finished */
    check_siblings(f);
}

static void test_a_database_of_version_1_opens(void **state)
{
    const char *path = getenv("REPROD_WRITE_FIXTURE");

    if (path) {
        write_fixture(path);
    }
    check_old_database(*state, 1);
}

static void test_a_database_of_version_2_opens(void **state)
{
    check_old_database(*state, 2);
}

static void test_a_database_of_version_11_opens(void **state)
{
    check_old_database(*state, 11);
}

/* What was compared stays, by digest.  One of the control's was: that is no longer
 * enough.
 */
static void test_checks_of_version_18_stay(void **state)
{
    struct fixture *f = *state;
    struct checks checks;
    char command[256];

    snprintf(command, sizeof command, "cp tests/fixtures/v18.db %s", f->path);
    assert_int_equal(system(command), 0);
    fixture_open(f);
    checks = fixture_cell(f, "unordered").evidence.checks;
    assert_int_equal(checks.passed, 1);
    assert_int_equal(checks.digests_passed, 1);
    assert_int_equal(checks.share_ppm, 1000);
    assert_int_equal(checks.cut_off, 0);
    assert_string_equal(fixture_cell(f, "ordered").reason,
                        "the control varied, but only one of its digests was compared "
                        "with the float64 reference, which its next run is asked to do");
    assert_int_equal(fixture_cell(f, "ordered").evidence.checks.digests_passed, 1);
    fixture_check_cells(f);
}

/* What was measured stays, under the subject that it always had: whose variant it was on
 * that backend. */
static void test_old_cells_get_their_subject(void **state)
{
    static const struct {
        const char *backend, *workload, *variant, *stack;
        enum subject subject;
        const char *name;
    } old[] = {
        { "cpu", "conv_wgrad", "ordered", "cpu", SUBJECT_MODEL, "" },
        { "cuda", "conv_wgrad", "ordered", "cudnn9", SUBJECT_MODEL, "" },
        { "cuda", "conv_wgrad", "algo_1", "cudnn9", SUBJECT_LIBRARY, "cuDNN" },
        { "cuda", "conv_autotune", "fixed", "cudnn9", SUBJECT_LIBRARY, "cuDNN" },
        { "cpu", "conv_autotune", "fixed", "cpu", SUBJECT_MODEL, "" },
        { "cuda", "algorithm_cache", "cached", "cudnn9", SUBJECT_MODEL, "" },
        { "cuda", "ctc_loss", "cudnn_deterministic", "c", SUBJECT_LIBRARY, "cuDNN" },
        { "cuda", "ring_allreduce", "fixed_root", "c", SUBJECT_MODEL, "" },
        { "cuda", "cudnn_conv_fwd", "algo_0_tf32", "c", SUBJECT_LIBRARY, "cuDNN" },
        { "cuda", "matmul_batched", "cublas", "c", SUBJECT_LIBRARY, "cuBLAS" },
        { "cuda", "ring_allreduce", "nccl_tree", "c", SUBJECT_LIBRARY, "NCCL" },
        { "cpu", "onednn_matmul", "library", "onednn", SUBJECT_LIBRARY, "oneDNN" },
        { "cpu", "resnet", "default", "external", SUBJECT_FRAMEWORK, "resnet" },
    };

    for (int i = 0; i < COUNT_OF(old); i++) {
        struct fixture *f = *state;
        struct cell cell;
        char sql[640];

        snprintf(sql, sizeof sql, "cp tests/fixtures/v11.db %s", f->path);
        assert_int_equal(system(sql), 0);
        snprintf(sql, sizeof sql,
                 "UPDATE case_key SET workload = '%s';"
                 "UPDATE case_key SET variant = '%s' WHERE variant = 'ordered';"
                 "INSERT INTO host VALUES ('a', 'b', 1, 1);"
                 "INSERT INTO device VALUES ('cpu:a', 'a', '%s', 'm', '{}', 1, 1);"
                 "UPDATE job_item SET stack = '%s'",
                 old[i].workload, old[i].variant, old[i].backend, old[i].stack);
        execute_in(f->path, sql);
        fixture_open(f);
        cell = fixture_cell(f, old[i].variant);
        assert_int_equal(cell.subject, old[i].subject);
        assert_string_equal(cell.subject_name, old[i].name);
        assert_int_equal(cell.evidence.runs[OUTCOME_COMPLETED], 2);
        fixture_check_cells(f);
        fixture_close(f);
        unlink(f->path);
    }
}

/* What was measured by a control that is no race vouches for nothing else. */
static void test_known_controls_get_their_kinds(void **state)
{
    static const char cases[] =
        "INSERT INTO case_key (workload, version, variant, size, dtype, seed, is_control,"
        " no_control) VALUES ('dropout', 1, 'unseeded', 's', 'f', 1, 1, ''),"
        " ('dropout', 1, 'shared', 's', 'f', 1, 1, ''),"
        " ('dropout', 1, 'seeded', 's', 'f', 1, 0, ''),"
        " ('uninitialized_read', 1, 'cleared', 's', 'f', 1, 0, ''),"
        " ('conv_autotune', 1, 'fixed', 's', 'f', 1, 0, '')";
    static const char *const counts[] = {
        "SELECT count(*) FROM case_key WHERE kind = 'entropy' AND variant = 'unseeded'",
        "SELECT count(*) FROM case_key WHERE kind = 'poison' AND variant = 'cleared'",
        "SELECT count(*) FROM case_key WHERE kind = 'choice' AND variant = 'fixed'",
        "SELECT count(*) FROM case_key WHERE kind <> 'race'",
    };
    static const int64_t expected[] = { 1, 1, 1, 3 };
    struct fixture *f = *state;
    char command[256];
    sqlite3 *db;

    snprintf(command, sizeof command, "cp tests/fixtures/v11.db %s", f->path);
    assert_int_equal(system(command), 0);
    execute_in(f->path, cases);
    fixture_open(f);
    fixture_close(f);
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ask(db, counts[i]), expected[i]);
    }
    sqlite3_close(db);
}

static struct {
    bool in_memory;        /* what is sorted stays there, as of now … */
    bool sorted, had_room; /* … a migration has sorted all runs; it could use a file */
} temporary;

static int note_statement(unsigned type, void *arg, void *statement, void *text)
{
    const char *sql = text;

    (void)type;
    (void)arg;
    (void)statement;
    if (strncmp(sql, "PRAGMA temp_store", strlen("PRAGMA temp_store")) == 0) {
        temporary.in_memory = true;
    } else if (strncmp(sql, "INSERT INTO cell_device", 23) == 0) {
        temporary.sorted = true;
        temporary.had_room = !temporary.in_memory;
    }
    return 0;
}

static int trace_connection(sqlite3 *db, char **ret_error, const void *api)
{
    (void)ret_error;
    (void)api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, note_statement, NULL);
}

/* Ten million runs are a gigabyte to sort. */
static void test_migrations_sort_in_files(void **state)
{
    memset(&temporary, 0, sizeof temporary);
    assert_int_equal(sqlite3_auto_extension((void (*)(void))trace_connection), SQLITE_OK);
    check_old_database(*state, 2);
    sqlite3_reset_auto_extension();
    assert_true(temporary.sorted && temporary.had_room);
    assert_true(temporary.in_memory);
}

static enum err_code pretend_other_rules(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    (void)err;
    assert_int_equal(sqlite3_exec(tx->db,
                                  "UPDATE cell SET verdict = 'reproducible', reason = ''"
                                  " WHERE distinct_digests = 1; UPDATE judged SET rules "
                                  "= 0;" FIXTURE_SEAL_CELLS,
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    return ERR_OK;
}

static int changes;

static void count_change(void *arg, const struct cell_change *change)
{
    (void)arg;
    changes++;
    assert_int_equal(change->verdict, VERDICT_INCONCLUSIVE);
}

static enum err_code read_changes(struct tx *tx, void *arg, struct err *err)
{
    return cells_each_change(tx, *(int64_t *)arg, 0, 10, count_change, NULL, err);
}

/* A control that varied under load alone, and a variant that was measured without. */
static void test_cells_of_other_rules_are_judged_anew(void **state)
{
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 9),
                                fixture_item("ordered", "cpu:a", 9) };
    struct fixture_job j = fixture_job(1, items, 2);
    struct fixture_run again = {
        .n = 4, .job = 1, .outcome = OUTCOME_COMPLETED, .environment = 1, .distinct = 3
    };
    struct cell cell;

    run_options_read("{\"contention\":4}", &items[0].options);
    fixture_open(f);
    fixture_write(f, fixture_insert_job, &j);
    write_runs(f);
    fixture_write(f, fixture_whole_run, &again);
    fixture_write(f, pretend_other_rules, NULL);
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_REPRODUCIBLE);
    fixture_close(f);
    fixture_open(f);
    cell = fixture_cell(f, "ordered");
    assert_int_equal(cell.verdict, VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(cell.reason, "contention 4"));
    fixture_check_cells(f);
    changes = 0;
    fixture_read(f, read_changes, &cell.id);
    assert_int_equal(changes, 2); /* by its first run, and now */
    fixture_close(f);
    fixture_open(f);
    changes = 0;
    fixture_read(f, read_changes, &cell.id);
    assert_int_equal(changes, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(test_a_database_of_version_1_opens),
        FILE_TEST(test_a_database_of_version_2_opens),
        FILE_TEST(test_a_database_of_version_11_opens),
        FILE_TEST(test_checks_of_version_18_stay),
        FILE_TEST(test_old_cells_get_their_subject),
        FILE_TEST(test_migrations_sort_in_files),
        FILE_TEST(test_known_controls_get_their_kinds),
        FILE_TEST(test_cells_of_other_rules_are_judged_anew),
    };

    return cmocka_run_group_tests_name("migrate_old", tests, NULL, NULL);
}
