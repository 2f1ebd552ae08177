/* Runs: intent, result, exactly once, proof of work, lists. */
#include "tests/unit/store_fixture.h"

#include "db/tx.h"

static void insert_job(struct fixture *f)
{
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 50),
                                fixture_item("ordered", "cpu:a", 50),
                                fixture_item("ordered", "cpu:b", 50) };
    struct fixture_job j = fixture_job(1, items, 3);

    fixture_write(f, fixture_insert_job, &j);
}

static struct fixture_run completed(int n, int item)
{
    return (struct fixture_run){
        .n = n, .job = 1, .item = item, .outcome = OUTCOME_COMPLETED, .environment = 1
    };
}

struct got {
    int n;
    struct run run;
    struct run_digest digests[FIXTURE_DISTINCT_MAX];
    int digest_count;
    char *log;
    int64_t log_length, log_written;
};

static void collect_digest(void *arg, const struct run_digest *digest)
{
    struct got *g = arg;

    g->digests[g->digest_count++] = *digest;
}

static enum err_code get(struct tx *tx, void *arg, struct err *err)
{
    struct got *g = arg;
    char id[ID_SIZE];

    fixture_id('R', g->n, id);
    if (runs_get(tx, id, &g->run, err) != ERR_OK ||
        runs_each_digest(tx, id, collect_digest, g, err) != ERR_OK) {
        return err->code;
    }
    return runs_log(tx, id, &g->log, &g->log_length, &g->log_written, err);
}

static void test_a_run_from_intent_to_result(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r = completed(3, 1);
    struct got g = { .n = 3 };

    insert_job(f);
    fixture_write(f, fixture_begin, &r);
    fixture_write(f, fixture_start, &r);
    fixture_read(f, get, &g);
    assert_false(g.run.finished);
    assert_int_equal(g.run.pid, 103);
    assert_int_equal(g.run.started_ms, 3010);
    assert_string_equal(g.run.boot_id, "boot");
    assert_string_equal(g.run.key.variant, "ordered");
    assert_int_equal(g.log_length, 0);
    free(g.log);
    r.distinct = 3;
    r.digest = 5;
    fixture_write(f, fixture_finish, &r);
    g = (struct got){ .n = 3 };
    fixture_read(f, get, &g);
    assert_true(g.run.finished);
    assert_int_equal(g.run.outcome, OUTCOME_COMPLETED);
    assert_int_equal(g.run.item, 1);
    assert_int_equal(g.run.cell, r.effect.cell);
    assert_int_equal(g.run.started_ms, 3010);
    assert_int_equal(g.run.finished_ms, 3900);
    assert_int_equal(g.run.iterations, FIXTURE_ITERATIONS);
    assert_int_equal(g.run.median_ns, 2003);
    assert_string_equal(g.run.algorithm, "tree");
    assert_string_equal(g.run.claim, "");
    assert_string_equal(g.run.device_read_back, "cpu:a");
    assert_int_equal(g.digest_count, 3);
    assert_string_equal(g.digests[0].digest, g.run.digest);
    assert_int_equal(g.digests[0].iterations, 8);
    assert_int_equal(g.digests[2].first_iteration, 2);
    assert_string_equal(g.log, "hello");
    assert_int_equal(g.log_written, 5);
    free(g.log);
}

static void test_one_digest_comes_back_too(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r = completed(1, 1);
    struct got g = { .n = 1 };

    insert_job(f);
    r.digest = 7;
    fixture_write(f, fixture_whole_run, &r);
    fixture_read(f, get, &g);
    assert_int_equal(g.digest_count, 1);
    assert_string_equal(g.digests[0].digest, g.run.digest);
    assert_int_equal(g.digests[0].iterations, FIXTURE_ITERATIONS);
    free(g.log);
}

struct samples {
    int n;
    char *start, *end;
    int64_t rows; /* in the whole table */
};

static enum err_code get_samples(struct tx *tx, void *arg, struct err *err)
{
    struct samples *s = arg;
    char id[ID_SIZE];
    struct query q;

    query_begin(&q, tx, "SELECT count(*) FROM run_telemetry");
    s->rows = query_step(&q) ? query_take_int(&q) : -1;
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    fixture_id('R', s->n, id);
    return runs_telemetry(tx, id, &s->start, &s->end, err);
}

static void test_telemetry_is_stored_where_there_is_some(void **state)
{
    struct fixture *f = *state;
    struct fixture_run none = completed(1, 1);
    struct fixture_run some = completed(2, 1);
    struct samples s = { .n = 1 };

    insert_job(f);
    fixture_write(f, fixture_whole_run, &none);
    fixture_read(f, get_samples, &s);
    assert_int_equal(s.rows, 0);
    assert_null(s.start);
    assert_null(s.end);
    some.outcome = OUTCOME_CRASHED;
    some.telemetry_start = "{\"celsius\":41}";
    fixture_write(f, fixture_whole_run, &some);
    s.n = 2;
    fixture_read(f, get_samples, &s);
    assert_int_equal(s.rows, 1);
    assert_string_equal(s.start, "{\"celsius\":41}");
    assert_null(s.end);
    free(s.start);
}

static void test_the_database_wants_small_telemetry(void **state)
{
    struct fixture *f = *state;
    char large[RUN_TELEMETRY_MAX + 2];
    const char *const wrong[] = { "{", "", large };
    struct err err;

    insert_job(f);
    snprintf(large, sizeof large, "\"%0*d\"", RUN_TELEMETRY_MAX - 1, 0);
    for (int i = 0; i < 3; i++) {
        struct fixture_run r = completed(1, 1);

        r.telemetry_end = wrong[i];
        assert_int_equal(store_write_sync(f->store, fixture_whole_run, &r, &err),
                         ERR_INVALID);
    }
    large[RUN_TELEMETRY_MAX - 1] = '"';
    large[RUN_TELEMETRY_MAX] = '\0';
    {
        struct fixture_run r = completed(1, 1);

        r.telemetry_end = large;
        fixture_write(f, fixture_whole_run, &r);
    }
}

static void test_a_run_ends_once(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r = completed(1, 1);
    struct fixture_run again;
    struct err err;

    insert_job(f);
    fixture_write(f, fixture_whole_run, &r);
    again = r;
    again.outcome = OUTCOME_CRASHED;
    assert_int_equal(store_write_sync(f->store, fixture_finish, &again, &err),
                     ERR_CONFLICT);
    assert_int_equal(store_write_sync(f->store, fixture_begin, &again, &err),
                     ERR_CONFLICT);
    assert_int_equal(store_write_sync(f->store, fixture_start, &again, &err),
                     ERR_CONFLICT);
    again.n = 2;
    assert_int_equal(store_write_sync(f->store, fixture_finish, &again, &err),
                     ERR_NOT_FOUND);
    assert_int_equal(store_write_sync(f->store, fixture_start, &again, &err),
                     ERR_NOT_FOUND);
    again.job = 2;
    assert_int_equal(store_write_sync(f->store, fixture_begin, &again, &err),
                     ERR_NOT_FOUND);
    assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_COMPLETED], 1);
    fixture_check_cells(f);
}

/* Breaks one column of a run that completed. */
static enum err_code break_proof(struct tx *tx, void *arg, struct err *err)
{
    int rc = sqlite3_exec(tx->db, arg, NULL, NULL, NULL);

    return rc == SQLITE_OK ? ERR_OK : tx_error(tx->db, rc, err);
}

static void test_the_database_wants_proof_of_work(void **state)
{
    static const struct {
        const char *sql;
        const char *rule;
    } broken[] = {
        { "UPDATE run SET iterations = 0", "completed_has_iterations" },
        { "UPDATE run SET iterations = NULL", "NOT NULL" },
        { "UPDATE run SET elements = 0", "completed_has_elements" },
        { "UPDATE run SET elements = NULL", "completed_has_elements" },
        { "UPDATE run SET elements = -1", "completed_has_elements" },
        { "UPDATE run SET bytes_hashed = 0", "completed_hashed_bytes" },
        { "UPDATE run SET bytes_hashed = NULL", "completed_hashed_bytes" },
        { "UPDATE run SET device_read_back = 'cpu:b'", "completed_on_its_device" },
        { "UPDATE run SET device_read_back = ''", "completed_on_its_device" },
        { "UPDATE run SET device_read_back = NULL", "completed_on_its_device" },
        { "UPDATE run SET digest = NULL", "completed_has_digest" },
        { "UPDATE run SET digest = ''", "completed_has_digest" },
        { "UPDATE run SET digest = 'g0000000000000000000000000000000'",
          "completed_has_digest" },
        { "UPDATE run SET input_digest = NULL", "completed_has_input_digest" },
        { "UPDATE run SET input_digest = '00'", "completed_has_input_digest" },
        { "UPDATE run SET environment = NULL", "completed_has_environment" },
        { "UPDATE run SET cell = NULL", "completed_has_cell" },
        { "UPDATE run SET distinct_digests = 0", "completed_has_distinct_digests" },
        { "UPDATE run SET distinct_digests = 11", "completed_has_distinct_digests" },
        { "UPDATE run SET distinct_digests = NULL", "NOT NULL" },
        { "UPDATE run SET outcome = 'fine'", "CHECK" },
        { "UPDATE run SET finished_ms = NULL", "outcome_ends_a_run" },
        { "UPDATE run SET outcome = NULL", "outcome_ends_a_run" },
        { "UPDATE cell SET verdict = 'reproducible'", "reproducible_is_earned" },
        { "UPDATE cell SET verdict = 'stale'", "CHECK" },
        { "UPDATE run SET cell = 999", "FOREIGN KEY" },
        { "DELETE FROM job_item", "FOREIGN KEY" },
        { "UPDATE run SET elements = 'many'", "cannot store" },
    };
    struct fixture *f = *state;
    struct fixture_run r = completed(1, 1);
    struct err err;

    insert_job(f);
    fixture_write(f, fixture_whole_run, &r);
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        enum err_code code = store_write_sync(f->store, break_proof,
                                              (void *)(uintptr_t)broken[i].sql, &err);

        if (code != ERR_INVALID || !strstr(err.message, broken[i].rule)) {
            fail_msg("%s: %s", broken[i].sql, code == ERR_OK ? "stored" : err.message);
        }
    }
    fixture_write(f, break_proof,
                  (void *)(uintptr_t) "UPDATE run SET iterations = iterations");
}

/* What the daemon might get wrong about a completed run, through runs_finish. */
struct unproven {
    struct fixture_run run;
    int fault;
};

enum { FAULTS = 10 };

static enum err_code finish_unproven(struct tx *tx, void *arg, struct err *err)
{
    struct unproven *u = arg;
    struct run_digest digests[FIXTURE_DISTINCT_MAX];
    struct run_result result = { .digests = digests, .environment_json = "{}" };
    struct run run = fixture_result(&u->run, "cpu:a", digests, &result.digest_count);

    result.run = &run;
    switch (u->fault) {
    case 0:
        run.iterations = 0;
        break;
    case 1:
        run.elements = 0;
        break;
    case 2:
        run.bytes_hashed = 0;
        break;
    case 3:
        run.device_read_back[4] = 'b';
        break;
    case 4:
        run.digest[0] = '\0';
        break;
    case 5:
        run.input_digest[0] = '\0';
        break;
    case 6:
        run.environment[0] = '\0';
        break;
    case 7:
        result.digest_count = 0;
        break;
    case 8:
        run.distinct_digests = 2;
        break;
    default:
        digests[0].iterations = 9;
        break;
    }
    return runs_finish(tx, &result, &u->run.effect, err);
}

static void test_unproven_runs_are_not_stored_as_completed(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r = completed(1, 1);
    struct got g = { .n = 1 };
    struct err err;

    insert_job(f);
    fixture_write(f, fixture_begin, &r);
    for (int i = 0; i < FAULTS; i++) {
        struct unproven u = { .run = r, .fault = i };

        if (store_write_sync(f->store, finish_unproven, &u, &err) != ERR_INVALID) {
            fail_msg("fault %d was stored", i);
        }
    }
    fixture_read(f, get, &g);
    assert_false(g.run.finished);
    assert_int_equal(g.digest_count, 0);
    free(g.log);
}

static void test_other_inputs_make_a_run_invalid(void **state)
{
    struct fixture *f = *state;
    struct fixture_run first = completed(1, 0);
    struct fixture_run other = completed(2, 1); /* another variant of the same case */
    struct got g = { .n = 2 };

    insert_job(f);
    other.input = 1;
    fixture_write(f, fixture_whole_run, &first);
    fixture_write(f, fixture_whole_run, &other);
    assert_int_equal(other.effect.outcome, OUTCOME_INVALID);
    assert_int_equal(other.effect.verdict, VERDICT_FAILING);
    fixture_read(f, get, &g);
    assert_int_equal(g.run.outcome, OUTCOME_INVALID);
    assert_non_null(strstr(g.run.cause, "00000000000000000000000000000100"));
    assert_non_null(strstr(g.run.cause, "00000000000000000000000000000101"));
    assert_non_null(strstr(g.run.cause, "01R00000000000000000000001"));
    assert_non_null(strstr(g.run.cause, "01R00000000000000000000002"));
    free(g.log);
    fixture_check_cells(f);
}

struct lose {
    int count;
};

static enum err_code lose_all(struct tx *tx, void *arg, struct err *err)
{
    return runs_lose_all(tx, "the daemon was restarted", 5000,
                         &((struct lose *)arg)->count, err);
}

static void test_a_restart_loses_what_was_running(void **state)
{
    struct fixture *f = *state;
    struct lose lost;
    struct got g = { .n = 2 };
    struct fixture_run runs[] = { completed(1, 0), completed(2, 1), completed(3, 1) };

    insert_job(f);
    fixture_write(f, fixture_whole_run, &runs[0]);
    fixture_write(f, fixture_begin, &runs[1]);
    fixture_write(f, fixture_start, &runs[1]);
    fixture_write(f, fixture_begin, &runs[2]);
    fixture_close(f);
    fixture_open(f);
    fixture_write(f, lose_all, &lost);
    assert_int_equal(lost.count, 2);
    fixture_read(f, get, &g);
    assert_int_equal(g.run.outcome, OUTCOME_LOST);
    assert_string_equal(g.run.cause, "the daemon was restarted");
    assert_int_equal(g.run.cell, 0);
    assert_int_equal(g.run.pid, 102);
    free(g.log);
    fixture_write(f, lose_all, &lost);
    assert_int_equal(lost.count, 0);
}

struct listed {
    struct runs_filter filter;
    char before[ID_SIZE];
    int limit;
    int numbers[64];
    int count;
};

static void collect_run(void *arg, const struct run *run)
{
    struct listed *l = arg;

    l->numbers[l->count++] = (int)strtol(run->id + 3, NULL, 10);
}

static enum err_code list(struct tx *tx, void *arg, struct err *err)
{
    struct listed *l = arg;

    return runs_list(tx, &l->filter, l->before, l->limit, collect_run, l, err);
}

static void check_list(struct fixture *f, struct runs_filter filter, int before,
                       const char *expected)
{
    struct listed l = { .filter = filter, .limit = 3 };
    char text[64] = "";

    if (before) {
        fixture_id('R', before, l.before);
    }
    fixture_read(f, list, &l);
    for (int i = 0; i < l.count; i++) {
        size_t used = strlen(text);

        snprintf(text + used, sizeof text - used, "%s%d", i ? " " : "", l.numbers[i]);
    }
    assert_string_equal(text, expected);
}

static void test_lists(void **state)
{
    struct fixture *f = *state;
    struct runs_filter by_job = { .cell = 0 };
    struct runs_filter by_cell = { .cell = 0 };

    insert_job(f);
    /* Items 0 and 1 are on cpu:a, 2 on cpu:b; every fourth run crashes. */
    for (int i = 1; i <= 9; i++) {
        struct fixture_run r = completed(i, i % 3);

        r.outcome = i % 4 ? OUTCOME_COMPLETED : OUTCOME_CRASHED;
        fixture_write(f, fixture_whole_run, &r);
    }
    fixture_id('J', 1, by_job.job);
    by_cell.cell = fixture_cell(f, "ordered").id;
    check_list(f, (struct runs_filter){ .cell = 0 }, 0, "9 8 7");
    check_list(f, (struct runs_filter){ .cell = 0 }, 7, "6 5 4");
    check_list(f, by_job, 2, "1");
    check_list(f, by_cell, 0, "8 7 5");
    check_list(f, by_cell, 5, "4 2 1");
    check_list(f, (struct runs_filter){ .device = "cpu:b" }, 8, "5 2");
    check_list(f, (struct runs_filter){ .workload = "conv_wgrad" }, 0, "9 8 7");
    check_list(f, (struct runs_filter){ .variant = "unordered" }, 0, "9 6 3");
    check_list(f, (struct runs_filter){ .workload = "ctc_loss" }, 0, "");
    check_list(f, (struct runs_filter){ .by_outcome = true, .outcome = OUTCOME_CRASHED },
               0, "8 4");
    check_list(f,
               (struct runs_filter){ .by_outcome = true, .outcome = OUTCOME_COMPLETED },
               0, "9 7 6");
    check_list(f,
               (struct runs_filter){ .workload = "conv_wgrad",
                                     .variant = "ordered",
                                     .device = "cpu:a",
                                     .by_outcome = true,
                                     .outcome = OUTCOME_COMPLETED },
               0, "7 1");
    by_job.job[3] = '9';
    check_list(f, by_job, 0, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_run_from_intent_to_result),
        STORE_TEST(test_one_digest_comes_back_too),
        STORE_TEST(test_telemetry_is_stored_where_there_is_some),
        STORE_TEST(test_the_database_wants_small_telemetry),
        STORE_TEST(test_a_run_ends_once),
        STORE_TEST(test_the_database_wants_proof_of_work),
        STORE_TEST(test_unproven_runs_are_not_stored_as_completed),
        STORE_TEST(test_other_inputs_make_a_run_invalid),
        STORE_TEST(test_a_restart_loses_what_was_running),
        STORE_TEST(test_lists),
    };

    return cmocka_run_group_tests_name("runs", tests, NULL, NULL);
}
