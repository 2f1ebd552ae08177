/* Lists walk an index, and what shows cells and jobs reads no run. */
#include "tests/unit/db/cells_fixture.h"

#include "db/connection.h"
#include "db/tx.h"
#include "db/views/spread.h"

static void ignore_cell(void *arg, const struct cell *cell)
{
    (void)arg;
    (void)cell;
}

static void ignore_job(void *arg, const struct job *job)
{
    (void)arg;
    (void)job;
}

static void ignore_run(void *arg, const struct run_record *run)
{
    (void)arg;
    (void)run;
}

static void ignore_digest(void *arg, const struct cell_digest *digest)
{
    (void)arg;
    (void)digest;
}

static void ignore_change(void *arg, const struct cell_change *change)
{
    (void)arg;
    (void)change;
}

/* Uses every function that a page of cells or jobs is read with. */
static void read_cells_and_jobs(struct tx *tx)
{
    struct cell cell;
    struct job job;
    struct err err;

    assert_int_equal(cells_each(tx, "x", 0, ignore_cell, NULL, &err), ERR_OK);
    assert_int_equal(cells_each(tx, "x", 5, ignore_cell, NULL, &err), ERR_OK);
    assert_int_equal(cells_get(tx, 1, &cell, &err), ERR_OK);
    assert_int_equal(cells_get_control(tx, cell.id, &cell, &err), ERR_NOT_FOUND);
    assert_int_equal(cells_each_digest(tx, 1, 0, ignore_digest, NULL, &err), ERR_OK);
    assert_int_equal(cells_each_change(tx, 1, 0, 0, ignore_change, NULL, &err), ERR_OK);
    assert_int_equal(jobs_list(tx, "", false, 5, ignore_job, NULL, &err), ERR_OK);
    assert_int_equal(jobs_each_open(tx, ignore_job, NULL, &err), ERR_OK);
    assert_int_equal(jobs_get(tx, "x", &job, &err), ERR_NOT_FOUND);
}

static void read_runs(struct tx *tx)
{
    static const struct runs_filter filters[] = {
        { .cell = 0 },     { .cell = 1 },
        { .job = "x" },    { .workload = "x" },
        { .device = "x" }, { .by_outcome = true, .outcome = OUTCOME_CRASHED },
    };
    struct err err;

    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        assert_int_equal(runs_list(tx, &filters[i], "", 5, ignore_run, NULL, &err),
                         ERR_OK);
    }
}

/* Explains every statement that was prepared on DB: none walks through all runs.  Returns
 * how many there are. */
static int check_plans(sqlite3 *db)
{
    int count = 0;

    for (sqlite3_stmt *s = NULL; (s = sqlite3_next_stmt(db, s)) != NULL;) {
        char *sql = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sqlite3_sql(s));
        sqlite3_stmt *plan;

        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &plan, NULL), SQLITE_OK);
        while (sqlite3_step(plan) == SQLITE_ROW) {
            char line[256]; /* r and x: the names that run goes by */

            snprintf(line, sizeof line, "%s ", sqlite3_column_text(plan, 3));
            if (strncmp(line, "SCAN r ", 7) == 0 || strncmp(line, "SCAN x ", 7) == 0 ||
                strncmp(line, "SCAN run ", 9) == 0) {
                fail_msg("%s: %s", sqlite3_sql(s), line);
            }
        }
        sqlite3_finalize(plan);
        sqlite3_free(sql);
        count++;
    }
    return count;
}

/* SQLite asks it, while a statement is prepared, about every column that will be read. */
static int deny_runs(void *arg, int action, const char *table, const char *column,
                     const char *database, const char *trigger)
{
    (void)arg;
    (void)column;
    (void)database;
    (void)trigger;
    return action == SQLITE_READ && strncmp(table, "run", 3) == 0 ? SQLITE_DENY
                                                                  : SQLITE_OK;
}

static void test_pages_of_cells_and_jobs_touch_no_run(void **state)
{
    struct fixture *f = *state;
    struct err err;
    struct tx *tx;

    insert_job(f);
    store(f, completed(1, ORDERED));
    assert_int_equal(connection_open_beside(f->path, 1000, &tx, &err), ERR_OK);
    sqlite3_set_authorizer(tx->db, deny_runs, NULL);
    read_cells_and_jobs(tx);
    assert_true(check_plans(tx->db) >= 8);
    assert_int_not_equal(tx_run(tx, &err, "SELECT id FROM run"), ERR_OK);
    tx_free(tx);
}

static void test_the_spread_of_a_cell_walks_an_index(void **state)
{
    struct fixture *f = *state;
    struct cell_spread spread;
    struct err err;
    struct tx *tx;

    assert_int_equal(connection_open_beside(f->path, 1000, &tx, &err), ERR_OK);
    assert_int_equal(cell_spread_read(tx, 1, &spread, &err), ERR_OK);
    cell_spread_release(&spread);
    assert_int_equal(check_plans(tx->db), 2);
    tx_free(tx);
}

static void test_lists_of_runs_walk_an_index(void **state)
{
    struct fixture *f = *state;
    struct err err;
    struct tx *tx;

    assert_int_equal(connection_open_beside(f->path, 1000, &tx, &err), ERR_OK);
    read_runs(tx);
    assert_int_equal(check_plans(tx->db), 6);
    tx_free(tx);
}

/* Neither from a cell to its controls nor back. */
static void test_controls_are_found_without_walking_an_environment(void **state)
{
    static const char *const plans[] = {
        "EXPLAIN QUERY PLAN SELECT control FROM cell_control WHERE cell = 1",
        "EXPLAIN QUERY PLAN SELECT cell FROM cell_control WHERE control = 1",
    };
    struct fixture *f = *state;
    struct err err;
    struct tx *tx;

    assert_int_equal(connection_open_beside(f->path, 1000, &tx, &err), ERR_OK);
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char line[256] = "";
        struct query q;

        query_begin(&q, tx, plans[i]);
        while (query_step(&q)) {
            q.taken = 3;
            query_take_text(&q, line, sizeof line);
        }
        assert_int_equal(query_end(&q, &err), ERR_OK);
        if (!strstr(line, "INDEX cell_case_key (case_key=?)")) {
            fail_msg("%s: ends with %s", plans[i], line);
        }
    }
    tx_free(tx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_pages_of_cells_and_jobs_touch_no_run),
        STORE_TEST(test_the_spread_of_a_cell_walks_an_index),
        STORE_TEST(test_lists_of_runs_walk_an_index),
        STORE_TEST(test_controls_are_found_without_walking_an_environment),
    };

    return cmocka_run_group_tests_name("query_plans", tests, NULL, NULL);
}
