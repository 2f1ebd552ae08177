/* The changes of a cell, as history, as the matrix of then, and as events. */
#include "tests/unit/db/cells_fixture.h"

#include "daemon/base/buf.h"
#include "db/events.h"
#include "db/tx.h"

struct changes {
    int64_t cell, before;
    int limit;
    struct cell_change list[16];
    int count;
};

static void collect_change(void *arg, const struct cell_change *change)
{
    struct changes *c = arg;

    c->list[c->count++] = *change;
}

static enum err_code read_changes(struct tx *tx, void *arg, struct err *err)
{
    struct changes *c = arg;

    return cells_each_change(tx, c->cell, c->before, c->limit, collect_change, c, err);
}

struct past {
    int64_t at;
    struct cell ordered, control;
    int count;
};

static void look_back(void *arg, const struct cell *cell)
{
    struct past *p = arg;

    p->count++;
    if (strcmp(cell->key.variant, "ordered") == 0) {
        p->ordered = *cell;
    } else {
        p->control = *cell;
    }
}

static enum err_code read_past(struct tx *tx, void *arg, struct err *err)
{
    struct past *p = arg;

    return cells_each(tx, "00000000000000000000000000000001", p->at, look_back, p, err);
}

static void check_past(struct fixture *f, int64_t at, int count, enum verdict ordered)
{
    struct past p = { .at = at, .ordered.verdict = VERDICT_UNMEASURED };

    fixture_read(f, read_past, &p);
    assert_int_equal(p.count, count);
    assert_int_equal(p.ordered.verdict, ordered);
}

/* What was known then, each cell of its own runs. */
static void check_evidence_then(struct fixture *f, int64_t at)
{
    struct cell now = fixture_cell(f, "ordered");
    struct past p = { .at = at };

    fixture_read(f, read_past, &p);
    assert_string_equal(p.ordered.reason, now.reason);
    assert_int_equal(p.ordered.evidence.runs[OUTCOME_COMPLETED], 2);
    assert_int_equal(p.ordered.evidence.iterations, now.evidence.iterations);
    assert_int_equal(p.ordered.evidence.distinct_digests, 1);
    assert_false(p.ordered.evidence.varied);
    assert_true(p.ordered.evidence.checks.has_reference);
    assert_int_equal(p.ordered.evidence.checks.passed, now.evidence.checks.passed);
    assert_int_equal(p.ordered.evidence.checks.failed, 0);
    assert_int_equal(p.ordered.vouched_ms, now.vouched_ms);
    assert_true(p.control.evidence.varied);
    assert_true(p.control.evidence.distinct_digests > 1);
    assert_true(p.control.is_control);
}

static void test_the_matrix_as_of_then(void **state)
{
    struct fixture *f = *state;
    struct changes c = { .limit = 2 };
    char run[ID_SIZE];

    insert_job(f);
    store(f, completed(1, ORDERED));
    store(f, completed(2, ORDERED)); /* changes nothing: still inconclusive */
    store(f, varying(3));
    store(f, varying(4)); /* compares another of its digests */
    check_past(f, 1899, 0, VERDICT_UNMEASURED);
    check_past(f, 1900, 1, VERDICT_INCONCLUSIVE);
    check_past(f, 3899, 1, VERDICT_INCONCLUSIVE);
    check_past(f, 3900, 2, VERDICT_INCONCLUSIVE);
    check_past(f, 4900, 2, VERDICT_REPRODUCIBLE);
    check_past(f, 0, 2, VERDICT_REPRODUCIBLE);
    check_evidence_then(f, 4900);
    c.cell = fixture_cell(f, "ordered").id;
    fixture_read(f, read_changes, &c);
    assert_int_equal(c.count, 2);
    assert_int_equal(c.list[0].verdict, VERDICT_REPRODUCIBLE);
    assert_int_equal(c.list[0].runs, 2);
    fixture_id('R', 4, run); /* the control's */
    assert_string_equal(c.list[0].run, run);
    assert_int_equal(c.list[1].verdict, VERDICT_INCONCLUSIVE);
    c.before = c.list[1].at_ms;
    c.count = 0;
    fixture_read(f, read_changes, &c);
    assert_int_equal(c.count, 0);
}

static enum err_code execute(struct tx *tx, void *arg, struct err *err)
{
    return tx_run(tx, err, *(const char **)arg);
}

/* What happened to another cell later, or at the same time, is its own. */
static void test_each_cell_has_its_own_history(void **state)
{
    static const char *at_once = "UPDATE cell_history SET at_ms = 5000";
    struct fixture *f = *state;
    struct changes c = { .limit = 2 };

    insert_job(f);
    store(f, varying(9));
    store(f, completed(3, ORDERED));
    c.cell = fixture_cell(f, "ordered").id;
    fixture_read(f, read_changes, &c);
    assert_int_equal(c.count, 1);
    assert_int_equal(c.list[0].at_ms, 3900);
    fixture_write(f, execute, &at_once);
    check_past(f, 5000, 2, VERDICT_INCONCLUSIVE);
}

static void test_changes_in_one_millisecond_stay_apart(void **state)
{
    struct fixture *f = *state;
    struct changes c = { .limit = 16 };

    insert_job(f);
    for (int i = 1; i <= 3; i++) {
        struct fixture_run r = completed(5, ORDERED);

        r.n = i;
        r.digest = i;
        fixture_write(f, fixture_begin, &r);
    }
    for (int i = 3; i >= 1; i--) { /* each ends earlier than the one before it */
        struct fixture_run r = completed(i, ORDERED);

        r.digest = i;
        fixture_write(f, fixture_finish, &r);
    }
    c.cell = fixture_cell(f, "ordered").id;
    fixture_read(f, read_changes, &c);
    assert_int_equal(c.count, 3);
    assert_int_equal(c.list[0].at_ms, c.list[2].at_ms + 2);
    assert_int_equal(c.list[0].distinct_digests, 3);
}

struct events {
    struct buf kinds;
    char last_cell[512];
};

static void collect_event(void *arg, const struct event *event)
{
    struct events *e = arg;

    buf_printf(&e->kinds, "%s ", event->kind);
    if (strcmp(event->kind, "cell") == 0) {
        snprintf(e->last_cell, sizeof e->last_cell, "%s", event->data);
    }
}

static enum err_code read_events(struct tx *tx, void *arg, struct err *err)
{
    return events_each(tx, 0, 100, collect_event, arg, err);
}

static void test_changes_are_events(void **state)
{
    struct fixture *f = *state;
    struct events e = { .kinds = BUF_INIT };

    insert_job(f);
    store(f, completed(1, ORDERED));
    store(f, completed(2, ORDERED));
    fixture_read(f, read_events, &e);
    /* Queued; running; run 1, its cell, progress; run 2, no change, progress. */
    assert_string_equal(e.kinds.data, "job job run cell job run job ");
    assert_non_null(strstr(e.last_cell, "\"variant\":\"ordered\",\"size\":\"small\""));
    assert_non_null(strstr(e.last_cell, "\"verdict\":\"inconclusive\",\"reason\":\"1 "));
    buf_release(&e.kinds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_the_matrix_as_of_then),
        STORE_TEST(test_each_cell_has_its_own_history),
        STORE_TEST(test_changes_in_one_millisecond_stay_apart),
        STORE_TEST(test_changes_are_events),
    };

    return cmocka_run_group_tests_name("cells_history", tests, NULL, NULL);
}
