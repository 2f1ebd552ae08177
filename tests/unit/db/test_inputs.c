/* The inputs of a case: by majority, contested, decided by a person; and the runs, cells
 * and jobs that follow. */
#include "tests/unit/db/runs_fixture.h"

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "db/case_keys.h"
#include "db/cells.h"
#include "db/fleet.h"
#include "db/inputs.h"
#include "db/jobs.h"

/* Items of insert_job: the control and `ordered` of cpu:a, `ordered` of cpu:b. */
enum { CONTROL, ON_A, ON_B };

static void store(struct fixture *f, int n, int item, int input)
{
    struct fixture_run r = completed(n, item);

    r.input = input;
    fixture_write(f, fixture_whole_run, &r);
}

static void expect_outcome(struct fixture *f, int n, enum outcome outcome)
{
    struct got g = { .n = n };

    fixture_read(f, get, &g);
    if (g.run.outcome != outcome) {
        fail_msg("run %d: %s, %s", n, outcome_name(g.run.outcome), g.run.cause);
    }
    assert_int_equal(g.run.cause[0] != '\0', outcome == OUTCOME_INVALID);
    if (outcome == OUTCOME_INVALID) {
        assert_non_null(strstr(g.run.cause, "its inputs have digest 0000000000000000"));
    }
    free(g.log);
}

/* N runs from 1 on, each as INVALID says. */
static void expect_invalid(struct fixture *f, const char *invalid)
{
    for (int n = 1; invalid[n - 1]; n++) {
        expect_outcome(f, n, invalid[n - 1] == 'x' ? OUTCOME_INVALID : OUTCOME_COMPLETED);
    }
    fixture_check_cells(f);
}

static enum err_code read_job(struct tx *tx, void *arg, struct err *err)
{
    char id[ID_SIZE];

    fixture_id('J', 1, id);
    return jobs_get(tx, id, arg, err);
}

static void expect_failed(struct fixture *f, int64_t failed)
{
    struct job job = { .state = JOB_QUEUED };

    fixture_read(f, read_job, &job);
    assert_int_equal(job.runs_failed, failed);
    job_release(&job);
}

struct cells {
    int count;
    struct cell cells[4];
};

static void add_cell(void *arg, const struct cell *cell)
{
    struct cells *cells = arg;

    cells->cells[cells->count++] = *cell;
}

static enum err_code read_cells(struct tx *tx, void *arg, struct err *err)
{
    struct environment environment;
    char *json = NULL;
    enum err_code code = environments_get(tx, "", &environment, &json, err);

    free(json);
    return code == ERR_OK ? cells_each(tx, environment.id, 0, add_cell, arg, err) : code;
}

/* Of the cell of VARIANT. */
static struct cell cell_of(struct fixture *f, const char *variant)
{
    struct cells cells = { 0 };

    fixture_read(f, read_cells, &cells);
    for (int i = 0; i < cells.count; i++) {
        if (strcmp(cells.cells[i].key.variant, variant) == 0) {
            return cells.cells[i];
        }
    }
    fail_msg("there is no cell of %s", variant);
    return cells.cells[0];
}

/* A first run with wrong inputs is outvoted, and condemns nothing that comes later. */
static void test_a_bad_first_run(void **state)
{
    struct fixture *f = *state;
    struct cell cell;

    insert_job(f);
    store(f, 1, ON_A, 1);
    expect_invalid(f, ".");
    store(f, 2, ON_A, 0);
    expect_invalid(f, "..");
    cell = cell_of(f, "ordered");
    assert_int_equal(cell.verdict, VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(cell.reason, "its inputs are contested: "));
    assert_non_null(strstr(cell.reason, "01R00000000000000000000001"));
    assert_non_null(strstr(cell.reason, "01R00000000000000000000002"));
    store(f, 3, ON_A, 0);
    expect_invalid(f, "x..");
    expect_failed(f, 1);
    cell = cell_of(f, "ordered");
    assert_int_equal(cell.verdict, VERDICT_FAILING);
    assert_int_equal(cell.evidence.runs[OUTCOME_COMPLETED], 2);
    assert_int_equal(cell.evidence.runs[OUTCOME_INVALID], 1);
    for (int n = 4; n < 24; n++) {
        store(f, n, ON_A, 0);
    }
    assert_int_equal(cell_of(f, "ordered").verdict, VERDICT_INCONCLUSIVE);
    store(f, 24, ON_A, 1);
    expect_outcome(f, 24, OUTCOME_INVALID);
    expect_failed(f, 2);
    fixture_check_cells(f);
}

/* Siblings share their inputs: the cells of other variants follow, too. */
static void test_siblings_follow(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    store(f, 1, CONTROL, 1);
    store(f, 2, ON_A, 0);
    assert_non_null(strstr(cell_of(f, "unordered").reason, "contested"));
    assert_non_null(strstr(cell_of(f, "ordered").reason, "contested"));
    store(f, 3, ON_A, 0);
    assert_int_equal(cell_of(f, "unordered").verdict, VERDICT_FAILING);
    assert_int_equal(cell_of(f, "unordered").evidence.iterations, 0);
    assert_null(strstr(cell_of(f, "ordered").reason, "contested"));
    expect_invalid(f, "x..");
}

static enum err_code see_hosts(struct tx *tx, void *arg, struct err *err)
{
    static const char *const names[] = { "a", "b" };

    (void)arg;
    for (int i = 0; i < COUNT_OF(names); i++) {
        struct host host = { .last_seen_ms = 1 };
        struct device device = {
            .backend = "cpu", .model = "x", .attributes_json = "{}", .last_seen_ms = 1
        };

        copy_text(host.name, sizeof host.name, names[i]);
        copy_text(host.boot_id, sizeof host.boot_id, "b");
        copy_text(device.host, sizeof device.host, names[i]);
        snprintf(device.id, sizeof device.id, "cpu:%s", names[i]);
        if (hosts_seen(tx, &host, err) != ERR_OK ||
            devices_seen(tx, &device, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

/* Of two hosts that disagree nobody knows which is right, however often one runs. */
static void test_two_hosts_that_disagree(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    fixture_write(f, see_hosts, NULL);
    for (int n = 1; n <= 5; n++) {
        store(f, n, ON_A, 1);
    }
    store(f, 6, ON_B, 0);
    expect_invalid(f, "......");
    assert_non_null(strstr(cell_of(f, "ordered").reason, "1 of 2 hosts say 0000"));
    expect_failed(f, 0);
}

struct decision {
    int64_t siblings;
    const char *digest;
};

static enum err_code decide(struct tx *tx, void *arg, struct err *err)
{
    const struct decision *d = arg;

    return case_inputs_decide(tx, d->siblings, d->digest, "they said so", 77, err);
}

struct seen {
    int count;
    char decided[DIGEST_TEXT_SIZE];
    int camps;
    bool contested;
};

static void see(void *arg, int64_t siblings, const struct case_inputs *inputs)
{
    struct seen *seen = arg;

    assert_true(siblings > 0);
    seen->count++;
    seen->camps = inputs->camp_count;
    seen->contested = inputs->inputs.contested;
    copy_text(seen->decided, sizeof seen->decided, inputs->decided);
}

static enum err_code read_inputs(struct tx *tx, void *arg, struct err *err)
{
    return case_inputs_each(tx, 0, 10, see, arg, err);
}

static void test_a_person_decides(void **state)
{
    static const char right[] = "00000000000000000000000000000100";
    struct fixture *f = *state;
    struct decision d = { .siblings = 1, .digest = "00000000000000000000000000000109" };
    struct seen seen = { 0 };
    struct err err;

    insert_job(f);
    store(f, 1, ON_A, 1);
    store(f, 2, ON_A, 1);
    store(f, 3, ON_B, 0);
    expect_invalid(f, "..x");
    assert_int_equal(store_write_sync(f->store, decide, &d, &err), ERR_INVALID);
    d.siblings = 77;
    assert_int_equal(store_write_sync(f->store, decide, &d, &err), ERR_NOT_FOUND);
    d.siblings = 1;
    d.digest = right;
    fixture_write(f, decide, &d);
    expect_invalid(f, "xx.");
    expect_failed(f, 2);
    fixture_read(f, read_inputs, &seen);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.camps, 2);
    assert_false(seen.contested);
    assert_string_equal(seen.decided, right);
    store(f, 4, ON_A, 1);
    expect_invalid(f, "xx.x");
    d.digest = "";
    fixture_write(f, decide, &d);
    expect_invalid(f, "..x.");
    store(f, 5, ON_B, 0);
    store(f, 6, ON_B, 0);
    expect_invalid(f, "......");
    seen = (struct seen){ 0 };
    fixture_read(f, read_inputs, &seen);
    assert_true(seen.contested);
    assert_string_equal(seen.decided, "");
}

/* A run that is refused keeps what it showed: when its camp wins it counts in full. */
static void test_what_was_refused_is_not_lost(void **state)
{
    struct fixture *f = *state;
    struct fixture_run varied = completed(3, ON_A);
    struct cell cell;

    insert_job(f);
    store(f, 1, ON_A, 0);
    store(f, 2, ON_A, 0);
    varied.input = 1;
    varied.distinct = 3;
    varied.check = CHECK_PASSED;
    fixture_write(f, fixture_whole_run, &varied);
    expect_invalid(f, "..x");
    store(f, 4, ON_A, 1);
    store(f, 5, ON_A, 1);
    expect_invalid(f, "xx...");
    cell = cell_of(f, "ordered");
    assert_int_equal(cell.evidence.distinct_digests, 3);
    assert_int_equal(cell.evidence.checks.passed, 1);
    assert_int_equal(cell.verdict, VERDICT_VARIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_bad_first_run),
        STORE_TEST(test_siblings_follow),
        STORE_TEST(test_two_hosts_that_disagree),
        STORE_TEST(test_a_person_decides),
        STORE_TEST(test_what_was_refused_is_not_lost),
    };

    return cmocka_run_group_tests_name("inputs of cases", tests, NULL, NULL);
}
