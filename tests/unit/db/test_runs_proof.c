/* A run is stored as completed with proof of work and the inputs of its case, or not. */
#include "tests/unit/db/runs_fixture.h"

#include "daemon/base/array.h"

#include "db/tx.h"

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
    struct run_record run =
        fixture_result(&u->run, "cpu:a", digests, &result.digest_count);

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
    case FAULTS: /* none */
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

/* Runs of a cell with the same bits have the same sums, and all did the same work. */
static void test_runs_that_contradict_each_other_are_invalid(void **state)
{
    static const struct {
        struct fixture_run run;
        const char *cause;
    } wrong[] = {
        { { .sum = 1 }, "has a weight sum with bits 0000000000000001" },
        { { .loss = 7 }, "and a loss with bits 0000000000000007" },
        { { .elements = 65 }, "65 elements and 256 bytes hashed an iteration; run 01R" },
    };
    struct fixture *f = *state;
    struct fixture_run right = completed(1, 1);
    struct fixture_run other = completed(20, 1);

    insert_job(f);
    fixture_write(f, fixture_whole_run, &right);
    for (int i = 0; i < COUNT_OF(wrong); i++) {
        struct fixture_run r = completed(i + 2, 1);
        struct got g = { .n = i + 2 };

        r.sum = wrong[i].run.sum;
        r.loss = wrong[i].run.loss;
        r.elements = wrong[i].run.elements;
        fixture_write(f, fixture_whole_run, &r);
        assert_int_equal(r.effect.outcome, OUTCOME_INVALID);
        assert_int_equal(r.effect.verdict, VERDICT_FAILING);
        fixture_read(f, get, &g);
        if (!strstr(g.run.cause, wrong[i].cause) ||
            !strstr(g.run.cause, "01R00000000000000000000001")) {
            fail_msg("%s", g.run.cause);
        }
        free(g.log);
    }
    other.digest = 5; /* other bits have other sums */
    other.sum = 3;
    fixture_write(f, fixture_whole_run, &other);
    assert_int_equal(other.effect.outcome, OUTCOME_COMPLETED);
    fixture_check_cells(f);
}

/* Nor do runs with the same bits record other outputs. */
static void test_outputs_that_contradict_the_digest(void **state)
{
    static const struct {
        uint64_t first, second; /* what the iterations of a run recorded */
        const char *cause;      /* NULL: it completes */
    } runs[] = {
        { 7, 7, NULL },
        { 7, 7, NULL },
        { 8, 8, "run 01R00000000000000000000001 of the same case recorded another" },
        { 7, 8, "recorded different outputs as output/y" },
    };
    struct fixture *f = *state;

    insert_job(f);
    for (int i = 0; i < COUNT_OF(runs); i++) {
        struct fixture_run r = completed(i + 1, 1);
        struct got g = { .n = i + 1 };
        struct trace trace;

        trace_init(&trace);
        trace_add(&trace, 0, 0, "output/y", (struct digest){ 1, 2 },
                  (struct digest){ 3, runs[i].first });
        trace_add(&trace, 1, 0, "output/y", (struct digest){ 1, 2 },
                  (struct digest){ 3, runs[i].second });
        r.trace = &trace;
        fixture_write(f, fixture_whole_run, &r);
        fixture_read(f, get, &g);
        if (!runs[i].cause) {
            assert_int_equal(r.effect.outcome, OUTCOME_COMPLETED);
        } else if (r.effect.outcome != OUTCOME_INVALID ||
                   !strstr(g.run.cause, runs[i].cause)) {
            fail_msg("%d: %s", i, g.run.cause);
        }
        free(g.log);
        trace_release(&trace);
    }
}

/* Another workload, version, size, type or seed is another case. */
static void test_other_cases_have_other_inputs(void **state)
{
    enum { CASES = 6 };
    struct fixture *f = *state;
    struct job_item items[CASES];
    struct fixture_job j = fixture_job(1, items, CASES);

    for (int i = 0; i < CASES; i++) {
        items[i] = fixture_item("ordered", "cpu:a", 9);
    }
    items[1].key.workload[0] = 'b';
    items[2].key.version = 2;
    items[3].key.size[0] = 'S';
    items[4].key.dtype[0] = 'F';
    items[5].key.seed = 2;
    fixture_write(f, fixture_insert_job, &j);
    for (int i = 0; i < CASES; i++) {
        struct fixture_run r = completed(i + 1, i);

        r.input = i;
        fixture_write(f, fixture_whole_run, &r);
        assert_int_equal(r.effect.outcome, OUTCOME_COMPLETED);
    }
}

/* Also where nothing but the run itself would be stored twice. */
static void test_a_result_is_of_a_run_that_runs(void **state)
{
    struct fixture *f = *state;
    struct unproven u = { .run = completed(1, 1), .fault = FAULTS };
    struct got g = { .n = 1 };
    struct err err;

    insert_job(f);
    assert_int_equal(store_write_sync(f->store, finish_unproven, &u, &err),
                     ERR_NOT_FOUND);
    fixture_write(f, fixture_begin, &u.run);
    fixture_write(f, finish_unproven, &u);
    u.run.outcome = OUTCOME_CRASHED;
    assert_int_equal(store_write_sync(f->store, finish_unproven, &u, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.message, "is finished already"));
    fixture_read(f, get, &g);
    assert_int_equal(g.run.outcome, OUTCOME_COMPLETED);
    free(g.log);
}

/* The item of the same number in another job is another. */
static void test_the_effect_names_the_job_of_the_run(void **state)
{
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 9),
                                fixture_item("ordered", "cpu:a", 9) };

    for (int n = 1; n <= 3; n++) {
        struct fixture_job j = fixture_job(n, items, 2);

        fixture_write(f, fixture_insert_job, &j);
    }
    for (int n = 1; n <= 3; n++) {
        struct fixture_run r = completed(n, n % 2);
        char job[ID_SIZE];

        r.job = n;
        fixture_id('J', n, job);
        fixture_write(f, fixture_whole_run, &r);
        assert_string_equal(r.effect.job, job);
        assert_int_equal(r.effect.item, n % 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_the_database_wants_proof_of_work),
        STORE_TEST(test_unproven_runs_are_not_stored_as_completed),
        STORE_TEST(test_runs_that_contradict_each_other_are_invalid),
        STORE_TEST(test_outputs_that_contradict_the_digest),
        STORE_TEST(test_other_cases_have_other_inputs),
        STORE_TEST(test_a_result_is_of_a_run_that_runs),
        STORE_TEST(test_the_effect_names_the_job_of_the_run),
    };

    return cmocka_run_group_tests_name("runs_proof", tests, NULL, NULL);
}
