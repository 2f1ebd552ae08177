/* Traces in the database: stored with the run, equal ones once, found when damaged. */
#include "tests/unit/db/store_fixture.h"

#include "db/fsck.h"
#include "db/traces.h"
#include "db/tx.h"
#include "tests/unit/jobs/options_fixture.h"

static void make(struct trace *t, uint64_t value)
{
    trace_init(t);
    for (int64_t step = 0; step < 4; step++) {
        trace_add(t, 0, step, "conv/forward", (struct digest){ 1, 2 },
                  (struct digest){ 3, value });
        trace_add(t, 0, step, "loss", (struct digest){ 3, value },
                  (struct digest){ 4, value });
    }
}

/* Run N of job 1, with TRACE. */
static void finish_run(struct fixture *f, int n, enum outcome outcome,
                       const struct trace *trace)
{
    struct fixture_run r = { .n = n, .job = 1, .outcome = outcome, .trace = trace };

    r.environment = outcome == OUTCOME_COMPLETED;
    fixture_write(f, fixture_whole_run, &r);
}

static void insert_job(struct fixture *f)
{
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 50),
                                fixture_item("ordered", "cpu:a", 50) };
    struct fixture_job j = fixture_job(1, items, 2);

    run_options_read("{\"probes\":1}", &items[0].options);
    fixture_write(f, fixture_insert_job, &j);
}

struct got {
    int n;
    struct run_record run;
    struct trace trace;
    int64_t number;
    enum err_code code;
    char message[512];
};

static enum err_code get(struct tx *tx, void *arg, struct err *err)
{
    struct got *g = arg;
    char id[ID_SIZE];

    fixture_id('R', g->n, id);
    if (runs_get(tx, id, &g->run, err) != ERR_OK) {
        return err->code;
    }
    g->code = runs_trace(tx, id, &g->trace, &g->number, err);
    snprintf(g->message, sizeof g->message, "%s", g->code == ERR_OK ? "" : err->message);
    return ERR_OK;
}

static struct got get_run(struct fixture *f, int n)
{
    struct got g = { .n = n };

    fixture_read(f, get, &g);
    return g;
}

static void test_a_trace_comes_back(void **state)
{
    struct fixture *f = *state;
    struct trace t;
    struct got g;

    insert_job(f);
    make(&t, 5);
    t.dropped = 3;
    finish_run(f, 1, OUTCOME_COMPLETED, &t);
    finish_run(f, 2, OUTCOME_COMPLETED, NULL);
    g = get_run(f, 1);
    assert_int_equal(g.code, ERR_OK);
    assert_int_equal(g.run.trace_records, 8);
    assert_int_equal(g.run.trace_dropped, 3);
    assert_int_equal(g.trace.count, 8);
    assert_int_equal(g.trace.dropped, 3);
    assert_memory_equal(g.trace.records, t.records, 8 * sizeof *t.records);
    trace_release(&g.trace);
    g = get_run(f, 2);
    assert_int_equal(g.run.trace_records, 0);
    assert_int_equal(g.code, ERR_NOT_FOUND);
    assert_non_null(strstr(g.message, g.run.id));
    trace_release(&t);
}

static enum err_code count_traces(struct tx *tx, void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx, "SELECT count(*) FROM trace");
    *(int64_t *)arg = query_step(&q) ? query_take_int(&q) : -1;
    return query_end(&q, err);
}

static void test_equal_traces_are_stored_once(void **state)
{
    struct fixture *f = *state;
    struct trace t;
    struct trace other;
    int64_t count;
    struct got g[4];

    insert_job(f);
    make(&t, 5);
    make(&other, 6);
    finish_run(f, 1, OUTCOME_COMPLETED, &t);
    finish_run(f, 2, OUTCOME_CRASHED, &t);
    finish_run(f, 3, OUTCOME_INVALID, &other);
    t.dropped = 1;
    finish_run(f, 4, OUTCOME_TIMEOUT, &t);
    fixture_read(f, count_traces, &count);
    assert_int_equal(count, 3);
    for (int i = 0; i < 4; i++) {
        g[i] = get_run(f, i + 1);
        assert_int_equal(g[i].code, ERR_OK);
        trace_release(&g[i].trace);
    }
    assert_int_equal(g[0].number, g[1].number);
    assert_int_not_equal(g[0].number, g[2].number);
    assert_int_not_equal(g[0].number, g[3].number);
    trace_release(&t);
    trace_release(&other);
}

/* A run whose result is refused leaves no trace. */
static void test_traces_are_part_of_the_transaction(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r = { .n = 1, .job = 1, .outcome = OUTCOME_COMPLETED };
    struct trace t;
    struct err err;
    int64_t count;

    insert_job(f);
    make(&t, 5);
    r.trace = &t; /* completed, but in no environment */
    assert_int_equal(store_write_sync(f->store, fixture_whole_run, &r, &err),
                     ERR_INVALID);
    fixture_read(f, count_traces, &count);
    assert_int_equal(count, 0);
    trace_release(&t);
}

static enum err_code check_asked(struct tx *tx, void *arg, struct err *err)
{
    char run[ID_SIZE];
    int64_t iterations;
    struct run_options options;

    (void)arg;
    fixture_id('R', 1, run);
    if (runs_asked(tx, run, &options, &iterations, err) != ERR_OK) {
        return err->code;
    }
    check_options(&options, "{\"probes\":1}");
    assert_int_equal(iterations, 10);
    return ERR_OK;
}

static void test_how_a_run_was_asked_for(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    finish_run(f, 1, OUTCOME_COMPLETED, NULL);
    fixture_read(f, check_asked, NULL);
}

static enum err_code execute(struct tx *tx, void *arg, struct err *err)
{
    return tx_run(tx, err, (const char *)arg);
}

struct faults {
    char text[1024];
};

static void collect_fault(void *arg, const char *line)
{
    struct faults *faults = arg;
    size_t used = strlen(faults->text);

    snprintf(faults->text + used, sizeof faults->text - used, "%s\n", line);
}

static void check_fsck(struct fixture *f, int64_t traces, int64_t damaged,
                       const char *line)
{
    struct faults faults = { "" };
    struct fsck_counts counts;
    struct err err;

    assert_int_equal(fsck_database(f->path, collect_fault, &faults, &counts, &err),
                     ERR_OK);
    assert_int_equal(counts.traces, traces);
    assert_int_equal(counts.traces_damaged, damaged);
    if (!strstr(faults.text, line)) {
        fail_msg("no '%s' in: %s", line, faults.text);
    }
}

static void test_fsck(void **state)
{
    static char flip[] =
        "UPDATE trace SET packed = CAST(substr(packed, 1, 60)"
        " || x'00' || substr(packed, 62) AS BLOB)";
    static char count[] = "UPDATE run_trace SET records = 7";
    static char orphan[] = "DELETE FROM run_trace WHERE records = 7";
    static char digest[] =
        "UPDATE trace SET digest = replace(digest, substr(digest, 1,"
        " 1), iif(substr(digest, 1, 1) = 'a', 'b', 'a'))";
    struct fixture *f = *state;
    struct trace t;

    insert_job(f);
    make(&t, 5);
    finish_run(f, 1, OUTCOME_COMPLETED, &t);
    finish_run(f, 2, OUTCOME_COMPLETED, &t);
    check_fsck(f, 1, 0, "");
    fixture_write(f, execute, count);
    check_fsck(f, 1, 1, "trace 1: it has other numbers of records than its runs say");
    fixture_write(f, execute, orphan);
    check_fsck(f, 1, 1, "trace 1: it belongs to no run");
    fixture_write(f, execute, digest);
    check_fsck(f, 1, 2, "trace 1: its digest is not that of its bytes");
    fixture_write(f, execute, flip);
    check_fsck(f, 1, 1, "trace 1: its bytes are not those of a trace");
    trace_release(&t);
}

static void test_a_damaged_trace_is_not_read(void **state)
{
    static char flip[] = "UPDATE trace SET packed = substr(packed, 2)";
    struct fixture *f = *state;
    struct trace t;
    struct got g;

    insert_job(f);
    make(&t, 5);
    finish_run(f, 1, OUTCOME_COMPLETED, &t);
    fixture_write(f, execute, flip);
    g = get_run(f, 1);
    assert_int_equal(g.code, ERR_CORRUPT);
    assert_int_equal(g.trace.count, 0);
    trace_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_trace_comes_back),
        STORE_TEST(test_equal_traces_are_stored_once),
        STORE_TEST(test_traces_are_part_of_the_transaction),
        STORE_TEST(test_how_a_run_was_asked_for),
        STORE_TEST(test_fsck),
        STORE_TEST(test_a_damaged_trace_is_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
