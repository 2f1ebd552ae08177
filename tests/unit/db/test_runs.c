/* Runs: intent, result, exactly once, telemetry, what a restart loses, lists. */
#include "tests/unit/db/runs_fixture.h"

#include "db/tx.h"

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

static enum err_code count_stacks(struct tx *tx, void *arg, struct err *err)
{
    return tx_fetch_int(tx, (int64_t *)arg, err,
                        "SELECT count(*) FROM device_stack_environment"
                        " WHERE device = 'cpu:a' AND stack = 'another'");
}

/* The stack is that of its own job's item. */
static void test_two_jobs_have_items_of_their_own(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 5);
    struct fixture_job j = fixture_job(2, &item, 1);
    struct fixture_run r = completed(1, 0);
    struct got g = { .n = 1 };
    int64_t count = 0;

    insert_job(f);
    snprintf(item.stack, sizeof item.stack, "another");
    fixture_write(f, fixture_insert_job, &j);
    r.job = 2;
    fixture_write(f, fixture_whole_run, &r);
    fixture_read(f, get, &g);
    assert_string_equal(g.run.stack, "another");
    fixture_read(f, count_stacks, &count);
    assert_int_equal(count, 1);
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

/* The service of before knew a later time. */
static void test_nothing_ends_before_it_began(void **state)
{
    struct fixture *f = *state;
    struct lose lost;
    struct got g = { .n = 9 };
    struct fixture_run run = completed(9, 1);

    insert_job(f);
    fixture_write(f, fixture_begin, &run);
    fixture_write(f, lose_all, &lost);
    fixture_read(f, get, &g);
    assert_int_equal(g.run.intent_ms, 9000);
    assert_int_equal(g.run.finished_ms, 9000);
    free(g.log);
}

struct listed {
    struct runs_filter filter;
    char before[ID_SIZE];
    int limit;
    int numbers[64];
    int count;
};

static void collect_run(void *arg, const struct run_record *run)
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
        STORE_TEST(test_two_jobs_have_items_of_their_own),
        STORE_TEST(test_telemetry_is_stored_where_there_is_some),
        STORE_TEST(test_the_database_wants_small_telemetry),
        STORE_TEST(test_a_run_ends_once),
        STORE_TEST(test_a_restart_loses_what_was_running),
        STORE_TEST(test_nothing_ends_before_it_began),
        STORE_TEST(test_lists),
    };

    return cmocka_run_group_tests_name("runs", tests, NULL, NULL);
}
