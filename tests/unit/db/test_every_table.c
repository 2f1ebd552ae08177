/* Of each table: a row that another program takes away is told by fsck, or nobody relies
 * on it.  A new table is in one of the lists here, or this fails. */
#include "tests/unit/db/cells_fixture.h"
#include "tests/unit/db/edit_fixture.h"

#include <sqlite3.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "db/fsck.h"
#include "db/tx.h"

/* How it is told. */
enum told {
    BY_TOTAL,     /* db/integrity/totals.h, and tests/unit/db/test_totals.c for each */
    BY_RUNS,      /* it is compared with what it follows from … */
    BY_OTHERS,    /* … likewise, in a test of its own */
    BY_WITNESS,   /* it is about commits, of which the witness tells, too */
    NOT_RELIED_ON /* and why */
};

static const struct {
    const char *table;
    enum told told;
} all[] = {
    { "accepted_loss", BY_TOTAL },
    { "case_input", BY_RUNS },
    { "case_key", BY_TOTAL },
    { "cell", BY_TOTAL },
    { "cell_algorithm", BY_RUNS },
    { "cell_alike", BY_RUNS },
    { "cell_changes", NOT_RELIED_ON }, /* the cell is summed up once more */
    { "cell_device", BY_RUNS },
    { "cell_device_digest", BY_RUNS },
    { "cell_digest", BY_RUNS },
    { "cell_dissenter", BY_OTHERS }, /* test_cells_recompute.c */
    { "cell_history", BY_TOTAL },
    { "cell_time", BY_RUNS },
    { "cell_verified", NOT_RELIED_ON }, /* likewise */
    { "change", BY_TOTAL },
    { "commits", BY_WITNESS },
    { "device", BY_TOTAL },
    { "device_environment", BY_RUNS },
    { "device_stack_environment", BY_RUNS },
    { "device_state", BY_TOTAL },
    { "environment", BY_TOTAL },
    { "event", BY_TOTAL },
    { "host", BY_TOTAL },
    { "host_facts", BY_TOTAL },
    { "host_lost", NOT_RELIED_ON }, /* what it tells is told once more */
    { "input_decision", BY_TOTAL },
    { "job", BY_TOTAL },
    { "job_item", BY_TOTAL },
    { "judged", NOT_RELIED_ON }, /* all cells are judged again at the next start */
    { "library_list", BY_TOTAL },
    { "localisation", BY_TOTAL },
    { "lost_commits", BY_TOTAL },
    { "peer", BY_TOTAL },
    { "peer_job", BY_TOTAL },
    { "peer_origin", BY_TOTAL },
    { "peer_refusal", BY_TOTAL },
    { "quarantine", BY_TOTAL },
    { "run", BY_RUNS },
    { "run_check", BY_RUNS },
    { "run_digest", BY_RUNS },
    { "run_log", BY_TOTAL },
    { "run_summary", BY_TOTAL },
    { "run_telemetry", BY_TOTAL },
    { "run_tensor", BY_TOTAL },
    { "run_trace", BY_TOTAL },
    { "schedule", BY_TOTAL },
    { "schedule_job", BY_TOTAL },
    { "screening", BY_TOTAL },
    { "screening_job", BY_TOTAL },
    { "table_total", BY_TOTAL }, /* of which there must be all (test_totals.c) */
    { "tensor_blob", BY_TOTAL },
    { "trace", BY_OTHERS }, /* test_traces.c */
    { "webhook", BY_TOTAL },
    { "webhook_cursor", BY_TOTAL },
    { "webhook_delivery", BY_TOTAL },
};

enum { LINE_SIZE = 1024 };

static void take_line(void *arg, const char *line)
{
    snprintf(arg, LINE_SIZE, "%s", line);
}

static bool is_whole(struct fixture *f, char last[LINE_SIZE])
{
    struct fsck_counts counts;
    struct err err = { .message = "" };
    enum err_code code;

    last[0] = '\0';
    code = fsck_database(f->path, take_line, last, &counts, &err);
    if (code != ERR_OK) {
        snprintf(last, LINE_SIZE, "%s", err.message);
    }
    return code == ERR_OK && fsck_is_whole(&counts);
}

static enum err_code compare_lists(struct tx *tx, void *arg, struct err *err)
{
    struct query q;
    int count = 0;

    (void)arg;
    query_begin(&q, tx,
                "SELECT name, EXISTS (SELECT 1 FROM table_total t WHERE t.name = s.name)"
                " FROM sqlite_schema s WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
                " ORDER BY name");
    for (; query_step(&q); count++) {
        const char *table = query_borrow_text(&q);
        bool has_total = query_take_int(&q);

        assert_true(count < COUNT_OF(all));
        assert_string_equal(table, all[count].table);
        if (strcmp(table, "table_total") != 0 &&
            has_total != (all[count].told == BY_TOTAL)) {
            fail_msg("%s %s a total", table, has_total ? "has" : "lacks");
        }
    }
    assert_int_equal(count, COUNT_OF(all));
    return query_end(&q, err);
}

static void test_all_are_listed(void **state)
{
    fixture_read(*state, compare_lists, NULL);
}

static void store_some(struct fixture *f)
{
    struct fixture_run other = completed(4, ORDERED_B);

    other.digest = 3;
    insert_job(f);
    vary(f, 1);
    store(f, completed(2, ORDERED));
    store(f, completed(3, ORDERED));
    store(f, other);
    fixture_close(f);
}

static void test_what_follows_from_runs(void **state)
{
    struct fixture *f = *state;
    char last[LINE_SIZE];

    for (int i = 0; i < COUNT_OF(all); i++) {
        char *sql = xasprintf("DELETE FROM %s", all[i].table);

        if (all[i].told == BY_RUNS) {
            store_some(f);
            if (!is_whole(f, last)) {
                fail_msg("%s", last);
            }
            edit(f, sql);
            if (is_whole(f, last)) {
                fail_msg("not seen: %s", sql);
            }
            fixture_remove(f);
            fixture_open(f);
        }
        free(sql);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_all_are_listed),
        STORE_TEST(test_what_follows_from_runs),
    };

    return cmocka_run_group_tests_name("every table", tests, NULL, NULL);
}
