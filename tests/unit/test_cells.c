/* Cells: folding in any order, controls and what depends on them, history, query plans.
 */
#include "tests/unit/store_fixture.h"

#include "daemon/base/buf.h"
#include "db/connection.h"
#include "db/events.h"
#include "db/tx.h"

enum { UNORDERED, ORDERED, ORDERED_B, FREE };

/* Items 0 … 3 of job 1: the control, two of `ordered`, and one that has no control. */
static void insert_job(struct fixture *f)
{
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 100),
                                fixture_item("ordered", "cpu:a", 100),
                                fixture_item("ordered", "cpu:b", 100),
                                fixture_item("free", "cpu:a", 100) };
    struct fixture_job j = fixture_job(1, items, 4);

    snprintf(items[FREE].no_control, sizeof items[FREE].no_control, "nothing can vary");
    fixture_write(f, fixture_insert_job, &j);
}

static struct fixture_run completed(int n, int item)
{
    return (struct fixture_run){
        .n = n, .job = 1, .item = item, .outcome = OUTCOME_COMPLETED, .environment = 1
    };
}

static enum verdict store(struct fixture *f, struct fixture_run r)
{
    fixture_write(f, fixture_whole_run, &r);
    return r.effect.verdict;
}

static struct fixture_run varying(int n)
{
    struct fixture_run r = completed(n, UNORDERED);

    r.distinct = 3;
    return r;
}

static enum verdict verdict_of(struct fixture *f, const char *variant)
{
    return fixture_cell(f, variant).verdict;
}

static void test_green_waits_for_the_control(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    assert_int_equal(store(f, completed(1, ORDERED)), VERDICT_INCONCLUSIVE);
    assert_int_equal(store(f, completed(2, ORDERED)), VERDICT_INCONCLUSIVE);
    assert_int_equal(store(f, completed(3, UNORDERED)), VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(fixture_cell(f, "ordered").reason, "did not vary in 1 run"));
    assert_int_equal(store(f, varying(4)), VERDICT_VARIES);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    fixture_check_cells(f);
}

static void test_green_after_the_control(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    assert_int_equal(store(f, varying(1)), VERDICT_VARIES);
    assert_int_equal(store(f, completed(2, ORDERED)), VERDICT_INCONCLUSIVE);
    assert_int_equal(store(f, completed(3, ORDERED)), VERDICT_REPRODUCIBLE);
    fixture_check_cells(f);
}

static void test_a_control_elsewhere_does_not_count(void **state)
{
    struct fixture *f = *state;
    struct fixture_run elsewhere = varying(1);

    insert_job(f);
    elsewhere.environment = 2;
    store(f, elsewhere);
    store(f, completed(2, ORDERED));
    assert_int_equal(store(f, completed(3, ORDERED)), VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(fixture_cell(f, "ordered").reason, "was not measured"));
}

static void test_no_control_is_needed_where_there_is_none(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    assert_int_equal(store(f, completed(1, FREE)), VERDICT_INCONCLUSIVE);
    assert_int_equal(store(f, completed(2, FREE)), VERDICT_REPRODUCIBLE);
    assert_non_null(strstr(fixture_cell(f, "free").reason, "nothing can vary"));
}

static void test_green_turns_red(void **state)
{
    struct fixture *f = *state;
    struct fixture_run other = completed(4, ORDERED);
    struct fixture_run crash = completed(5, ORDERED);

    insert_job(f);
    store(f, varying(1));
    store(f, completed(2, ORDERED));
    store(f, completed(3, ORDERED));
    crash.outcome = OUTCOME_CRASHED;
    assert_int_equal(store(f, crash), VERDICT_FAILING);
    other.digest = 77;
    assert_int_equal(store(f, other), VERDICT_VARIES);
    assert_int_equal(fixture_cell(f, "ordered").evidence.distinct_digests, 2);
    fixture_check_cells(f);
}

static void test_a_failure_heals_by_runs_started_after_it(void **state)
{
    struct fixture *f = *state;
    struct fixture_run crash = completed(50, FREE);

    insert_job(f);
    store(f, completed(60, FREE));
    store(f, completed(10, FREE));
    crash.outcome = OUTCOME_TIMEOUT;
    store(f, crash); /* arrives last, started between the two */
    assert_int_equal(fixture_cell(f, "free").evidence.completed_since_failure, 1);
    for (int i = 61; i < 61 + VERDICT_HEALING_RUNS - 2; i++) {
        assert_int_equal(store(f, completed(i, FREE)), VERDICT_FAILING);
    }
    assert_int_equal(store(f, completed(99, FREE)), VERDICT_REPRODUCIBLE);
    fixture_check_cells(f);
}

static void test_a_crash_before_start_counts_where_the_device_was_last(void **state)
{
    struct fixture *f = *state;
    struct fixture_run early = { .n = 1, .job = 1, .item = ORDERED };
    struct fixture_run lost = { .n = 3, .job = 1, .item = FREE };

    insert_job(f);
    early.outcome = OUTCOME_CRASHED;
    fixture_write(f, fixture_whole_run, &early);
    assert_int_equal(early.effect.cell, 0); /* no environment is known yet */
    store(f, completed(2, UNORDERED));
    lost.outcome = OUTCOME_LOST;
    fixture_write(f, fixture_whole_run, &lost);
    assert_int_equal(lost.effect.cell, 0);
    early.n = 4;
    fixture_write(f, fixture_whole_run, &early);
    assert_int_equal(early.effect.verdict, VERDICT_FAILING);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_FAILING);
    fixture_check_cells(f);
}

static enum err_code redeclare(struct tx *tx, void *arg, struct err *err)
{
    return fixture_insert_job(tx, arg, err);
}

static void test_a_changed_declaration_is_judged_anew(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("free", "cpu:a", 1);
    struct fixture_job j = fixture_job(2, &item, 1);

    insert_job(f);
    store(f, completed(1, FREE));
    assert_int_equal(store(f, completed(2, FREE)), VERDICT_REPRODUCIBLE);
    fixture_write(f, redeclare, &j); /* now it does need a control */
    assert_int_equal(verdict_of(f, "free"), VERDICT_INCONCLUSIVE);
    fixture_check_cells(f);
}

struct digests {
    int64_t cell;
    int limit;
    struct cell_digest list[16];
    int count;
};

static void collect_digest(void *arg, const struct cell_digest *digest)
{
    struct digests *d = arg;

    d->list[d->count++] = *digest;
}

static enum err_code read_digests(struct tx *tx, void *arg, struct err *err)
{
    struct digests *d = arg;

    return cells_each_digest(tx, d->cell, d->limit, collect_digest, d, err);
}

static void test_what_a_cell_adds_up_to(void **state)
{
    struct fixture *f = *state;
    struct fixture_run b = completed(3, ORDERED_B);
    struct fixture_run c = completed(4, ORDERED);
    struct digests d = { .limit = 16 };
    struct cell cell;

    insert_job(f);
    store(f, completed(2, ORDERED)); /* digest 0, ten iterations */
    b.distinct = 2;                  /* 0 nine times, 1 once */
    store(f, b);
    c.digest = 1; /* 1 ten times: as many runs as 0, fewer iterations */
    store(f, c);
    cell = fixture_cell(f, "ordered");
    assert_int_equal(cell.evidence.runs[OUTCOME_COMPLETED], 3);
    assert_int_equal(cell.evidence.iterations, 30);
    assert_int_equal(cell.evidence.distinct_digests, 2);
    assert_int_equal(cell.evidence.devices, 2);
    assert_int_equal(cell.evidence.last_completed_ms, 4900);
    assert_int_equal(cell.first_ms, 2000);
    assert_int_equal(cell.last_ms, 4900);
    assert_int_equal(cell.min_ns, 1002);
    assert_int_equal(cell.max_ns, 3004);
    assert_int_equal(cell.median_ns_sum, 6009);
    assert_int_equal(cell.times.runs, 3);
    assert_int_equal(cell.times.median_ns, times_middle(times_bucket(2003)));
    assert_string_equal(cell.digest, "00000000000000000000000000000000");
    d.cell = cell.id;
    fixture_read(f, read_digests, &d);
    assert_int_equal(d.count, 2);
    assert_int_equal(d.list[0].runs, 2);
    assert_int_equal(d.list[0].iterations, 19);
    assert_string_equal(d.list[0].weight_sum, "0000000000000000");
    assert_int_equal(d.list[1].iterations, 11);
    /* Run 4 alone surely ended on digest 1; run 3 ended on 0. */
    assert_string_equal(d.list[1].weight_sum, "0000000000000001");
    fixture_check_cells(f);
}

static const char contention[] = "{\"contention\":4,\"memory_poison\":\"0badcafe\"}";
static const char poison[] = "{\"memory_poison\":\"0badcafe\"}";

static void test_circumstances_are_counted_and_their_times_are_not(void **state)
{
    struct fixture *f = *state;
    struct fixture_run first = completed(1, ORDERED);
    struct fixture_run second = completed(9, ORDERED);
    struct cell cell;

    insert_job(f);
    first.circumstances = contention;
    second.circumstances = poison;
    store(f, first);
    cell = fixture_cell(f, "ordered");
    assert_int_equal(cell.min_ns + cell.max_ns + cell.median_ns_sum, 0);
    store(f, completed(2, ORDERED));
    store(f, second);
    store(f, varying(4));
    cell = fixture_cell(f, "ordered");
    assert_int_equal(cell.evidence.runs[OUTCOME_COMPLETED], 3);
    assert_int_equal(cell.evidence.iterations, 30);
    assert_int_equal(cell.evidence.disturbed, 2);
    assert_int_equal(cell.evidence.contended, 1);
    assert_int_equal(cell.min_ns, 1002);
    assert_int_equal(cell.max_ns, 3002);
    assert_int_equal(cell.median_ns_sum, 2002);
    assert_int_equal(cell.times.runs, 1);
    assert_int_equal(cell.verdict, VERDICT_REPRODUCIBLE);
    assert_non_null(strstr(cell.reason, "on 1 device, 1 of the runs under contention;"));
    fixture_check_cells(f);
}

struct pair {
    const char *variant;
    struct cell control;
    enum err_code code;
};

static enum err_code read_control(struct tx *tx, void *arg, struct err *err)
{
    struct pair *p = arg;
    struct fixture_cell c = { .variant = p->variant };

    assert_int_equal(fixture_find_cell(tx, &c, err), ERR_OK);
    assert_true(c.found);
    p->code = cells_get_control(tx, &c.cell, &p->control, err);
    return ERR_OK;
}

static void test_the_control_of_a_cost(void **state)
{
    struct fixture *f = *state;
    struct pair p = { .variant = "ordered" };
    struct fixture_run loaded = varying(5);

    insert_job(f);
    loaded.circumstances = contention;
    store(f, completed(1, ORDERED));
    store(f, varying(2));
    store(f, varying(3));
    store(f, loaded);
    fixture_read(f, read_control, &p);
    assert_int_equal(p.code,
                     ERR_NOT_FOUND); /* two runs are not enough, nor a loaded one */
    store(f, varying(4));
    fixture_read(f, read_control, &p);
    assert_int_equal(p.code, ERR_OK);
    assert_string_equal(p.control.key.variant, "unordered");
    assert_int_equal(p.control.times.runs, 3);
    p.variant = "unordered";
    fixture_read(f, read_control, &p);
    assert_int_equal(p.code, ERR_NOT_FOUND);
}

static void test_of_equally_frequent_digests_the_smallest_is_shown(void **state)
{
    struct fixture *f = *state;
    struct fixture_run high = completed(1, ORDERED);
    struct fixture_run low = completed(2, ORDERED);

    insert_job(f);
    high.digest = 9;
    low.digest = 8;
    store(f, high);
    store(f, low);
    assert_string_equal(fixture_cell(f, "ordered").digest,
                        "00000000000000000000000000000008");
    high.n = 3;
    store(f, high);
    assert_string_equal(fixture_cell(f, "ordered").digest,
                        "00000000000000000000000000000009");
    low.n = 4;
    store(f, low);
    assert_string_equal(fixture_cell(f, "ordered").digest,
                        "00000000000000000000000000000008");
    fixture_check_cells(f);
}

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
    enum verdict ordered;
    int64_t runs;
    int count;
};

static void look_back(void *arg, const struct cell *cell)
{
    struct past *p = arg;

    p->count++;
    if (strcmp(cell->key.variant, "ordered") == 0) {
        p->ordered = cell->verdict;
        p->runs = cell->evidence.runs[OUTCOME_COMPLETED];
    }
}

static enum err_code read_past(struct tx *tx, void *arg, struct err *err)
{
    struct past *p = arg;

    return cells_each(tx, "00000000000000000000000000000001", p->at, look_back, p, err);
}

static void check_past(struct fixture *f, int64_t at, int count, enum verdict ordered)
{
    struct past p = { .at = at, .ordered = VERDICT_UNMEASURED };

    fixture_read(f, read_past, &p);
    assert_int_equal(p.count, count);
    assert_int_equal(p.ordered, ordered);
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
    check_past(f, 1899, 0, VERDICT_UNMEASURED);
    check_past(f, 1900, 1, VERDICT_INCONCLUSIVE);
    check_past(f, 3899, 1, VERDICT_INCONCLUSIVE);
    check_past(f, 3900, 2, VERDICT_REPRODUCIBLE);
    check_past(f, 0, 2, VERDICT_REPRODUCIBLE);
    c.cell = fixture_cell(f, "ordered").id;
    fixture_read(f, read_changes, &c);
    assert_int_equal(c.count, 2);
    assert_int_equal(c.list[0].verdict, VERDICT_REPRODUCIBLE);
    assert_int_equal(c.list[0].runs, 2);
    fixture_id('R', 3, run); /* the control's */
    assert_string_equal(c.list[0].run, run);
    assert_int_equal(c.list[1].verdict, VERDICT_INCONCLUSIVE);
    c.before = c.list[1].at_ms;
    c.count = 0;
    fixture_read(f, read_changes, &c);
    assert_int_equal(c.count, 0);
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

/* Everything that is not history: what must not depend on the order of arrival. */
static void print_cell(void *arg, const struct cell *c)
{
    struct buf *out = arg;
    const struct evidence *e = &c->evidence;

    buf_printf(out, "%s %s %s|", c->environment, c->key.workload, c->key.variant);
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        buf_printf(out, "%ld ", (long)e->runs[i]);
    }
    buf_printf(out, "|%ld %ld %ld %ld %ld|%s: %s|%ld %ld %ld %ld %ld %s\n",
               (long)e->iterations, (long)e->distinct_digests, (long)e->devices,
               (long)e->completed_since_failure, (long)e->last_completed_ms,
               verdict_name(c->verdict), c->reason, (long)c->first_ms, (long)c->last_ms,
               (long)c->min_ns, (long)c->max_ns, (long)c->median_ns_sum, c->digest);
    buf_printf(out, "  %ld %ld %ld\n", (long)e->disturbed, (long)e->contended,
               (long)e->claimed);
    buf_printf(out, "  %ld: %ld %ld %ld\n", (long)c->times.runs, (long)c->times.lower_ns,
               (long)c->times.median_ns, (long)c->times.upper_ns);
}

static void print_digest(void *arg, const struct cell_digest *d)
{
    buf_printf(arg, "  %s %ld %ld %s %s\n", d->digest, (long)d->runs, (long)d->iterations,
               d->weight_sum, d->loss);
}

struct ids {
    int64_t list[32];
    int count;
};

static void collect_id(void *arg, const struct cell *cell)
{
    struct ids *ids = arg;

    ids->list[ids->count++] = cell->id;
}

static enum err_code print_all(struct tx *tx, void *arg, struct err *err)
{
    for (int e = 1; e <= 3; e++) {
        struct ids ids = { .count = 0 };
        char environment[DIGEST_TEXT_SIZE];

        snprintf(environment, sizeof environment, "%032x", e);
        if (cells_each(tx, environment, 0, print_cell, arg, err) != ERR_OK ||
            cells_each(tx, environment, 0, collect_id, &ids, err) != ERR_OK) {
            return err->code;
        }
        for (int i = 0; i < ids.count; i++) {
            if (cells_each_digest(tx, ids.list[i], 100, print_digest, arg, err) !=
                ERR_OK) {
                return err->code;
            }
        }
    }
    return ERR_OK;
}

/* A small generator, so that a failure can be repeated. */
static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

enum { MIXED_RUNS = 64, ORDERS = 50 };

static struct fixture_run mixed_run(int n)
{
    static const enum outcome outcomes[] = {
        OUTCOME_COMPLETED,     OUTCOME_COMPLETED, OUTCOME_COMPLETED, OUTCOME_COMPLETED,
        OUTCOME_COMPLETED,     OUTCOME_CRASHED,   OUTCOME_LOST,      OUTCOME_TIMEOUT,
        OUTCOME_OUT_OF_MEMORY, OUTCOME_CANCELLED, OUTCOME_INFRA,     OUTCOME_INVALID,
        OUTCOME_UNSUPPORTED
    };
    uint32_t state = (uint32_t)n * 7919;
    struct fixture_run r = completed(n, (int)(next_random(&state) % 4));

    if (n % 2) { /* half of them in the mix, half just complete, so that some heal */
        r.outcome = outcomes[next_random(&state) % 13];
    }
    if (r.item == UNORDERED) {
        r.distinct = 1 + (int)(next_random(&state) % 3);
        r.digest = (int)(next_random(&state) % 3);
    }
    r.environment = r.item == ORDERED_B ? 2 : 1;
    r.circumstances = n % 5 == 0 ? contention : n % 7 == 0 ? poison : NULL;
    if (outcome_is_failure(r.outcome) && n % 3 == 0) {
        r.environment = 0; /* died before it said */
    }
    return r;
}

static char *cells_of_order(uint32_t seed)
{
    struct fixture *f;
    void *state;
    struct buf out = BUF_INIT;
    int order[MIXED_RUNS];
    uint32_t random = seed;

    fixture_setup(&state);
    f = state;
    insert_job(f);
    for (int item = 0; item < 4; item++) { /* every device has said its environment */
        struct fixture_run r = completed(1000 + item, item);

        r.environment = item == ORDERED_B ? 2 : 1;
        fixture_write(f, fixture_whole_run, &r);
    }
    for (int i = 0; i < MIXED_RUNS; i++) {
        int j = (int)(next_random(&random) % (uint32_t)(i + 1));

        order[i] = order[j];
        order[j] = i + 1;
    }
    for (int i = 0; i < MIXED_RUNS; i++) {
        struct fixture_run r = mixed_run(order[i]);

        fixture_write(f, fixture_whole_run, &r);
    }
    fixture_check_cells(f);
    fixture_read(f, print_all, &out);
    fixture_free(f);
    return buf_detach(&out, NULL);
}

static void test_any_order_gives_the_same_cells(void **state)
{
    char *first = cells_of_order(1);

    (void)state;
    for (uint32_t seed = 2; seed <= ORDERS; seed++) {
        char *other = cells_of_order(seed);

        assert_string_equal(first, other);
        free(other);
    }
    assert_non_null(strstr(first, "varies"));
    assert_non_null(strstr(first, "failing"));
    free(first);
}

/* Damage that recomputing must see, one after the other. */
static enum err_code damage(struct tx *tx, void *arg, struct err *err)
{
    int rc = sqlite3_exec(tx->db, arg, NULL, NULL, NULL);

    return rc == SQLITE_OK ? ERR_OK : tx_error(tx->db, rc, err);
}

static void test_recomputing_sees_what_is_wrong(void **state)
{
    static const char *const damages[] = {
        "UPDATE cell SET completed = completed + 1 WHERE id = 1",
        "UPDATE cell SET iterations = iterations + 1 WHERE id = 1",
        "UPDATE cell SET min_ns = 1 WHERE id = 1",
        "UPDATE cell SET disturbed = 1 WHERE id = 1",
        "UPDATE cell SET contended = 1 WHERE id = 1",
        "UPDATE cell SET claimed = 7 WHERE id = 1",
        "UPDATE run SET circumstances = '{}' WHERE cell = 1",
        "UPDATE cell SET verdict = 'inconclusive' WHERE verdict = 'reproducible'",
        "UPDATE cell SET reason = 'because' WHERE id = 2",
        "UPDATE cell_digest SET runs = runs + 1 WHERE cell = 1",
        "UPDATE cell_time SET runs = runs + 1 WHERE cell = 1",
        "UPDATE cell_time SET bucket = 1000000 WHERE cell = 1",
        "DELETE FROM cell_time WHERE cell = 1",
        "DELETE FROM cell_digest WHERE cell = 1",
        "INSERT INTO cell_device (cell, device) VALUES (1, 'cpu:x')",
        "UPDATE cell SET digest = '11111111111111111111111111111111' WHERE id = 1",
        "UPDATE run SET digest = '11111111111111111111111111111111' WHERE cell = 1",
    };
    struct fixture *f = *state;

    insert_job(f);
    store(f, completed(1, ORDERED));
    store(f, completed(2, ORDERED));
    store(f, varying(3));
    fixture_check_cells(f);
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        int64_t counts[2];
        struct err err;

        fixture_write(f, damage, (void *)(uintptr_t)damages[i]);
        assert_int_equal(store_read_sync(f->store, fixture_recompute, counts, &err),
                         ERR_OK);
        if (counts[1] < 1) {
            fail_msg("not seen: %s", damages[i]);
        }
        fixture_free(f);
        fixture_setup(state);
        f = *state;
        insert_job(f);
        store(f, completed(1, ORDERED));
        store(f, completed(2, ORDERED));
        store(f, varying(3));
    }
}

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

static void ignore_run(void *arg, const struct run *run)
{
    (void)arg;
    (void)run;
}

/* Uses every function that a page of cells or jobs is read with. */
static void read_cells_and_jobs(struct tx *tx)
{
    struct digests d = { .count = 0 };
    struct changes c = { .count = 0 };
    struct cell cell;
    struct job job;
    struct err err;

    assert_int_equal(cells_each(tx, "x", 0, ignore_cell, NULL, &err), ERR_OK);
    assert_int_equal(cells_each(tx, "x", 5, ignore_cell, NULL, &err), ERR_OK);
    assert_int_equal(cells_get(tx, 1, &cell, &err), ERR_OK);
    assert_int_equal(cells_get_control(tx, &cell, &cell, &err), ERR_NOT_FOUND);
    assert_int_equal(cells_each_digest(tx, 1, 0, collect_digest, &d, &err), ERR_OK);
    assert_int_equal(cells_each_change(tx, 1, 0, 0, collect_change, &c, &err), ERR_OK);
    assert_int_equal(jobs_list(tx, "", 5, ignore_job, NULL, &err), ERR_OK);
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
    assert_int_equal(connection_open_reader(f->path, 1000, &tx, &err), ERR_OK);
    sqlite3_set_authorizer(tx->db, deny_runs, NULL);
    read_cells_and_jobs(tx);
    assert_true(check_plans(tx->db) >= 8);
    assert_int_not_equal(tx_execute(tx, "SELECT id FROM run", &err), ERR_OK);
    tx_free(tx);
}

static void test_lists_of_runs_walk_an_index(void **state)
{
    struct fixture *f = *state;
    struct err err;
    struct tx *tx;

    assert_int_equal(connection_open_reader(f->path, 1000, &tx, &err), ERR_OK);
    read_runs(tx);
    assert_int_equal(check_plans(tx->db), 6);
    tx_free(tx);
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_green_waits_for_the_control),
        STORE_TEST(test_green_after_the_control),
        STORE_TEST(test_a_control_elsewhere_does_not_count),
        STORE_TEST(test_no_control_is_needed_where_there_is_none),
        STORE_TEST(test_green_turns_red),
        STORE_TEST(test_a_failure_heals_by_runs_started_after_it),
        STORE_TEST(test_a_crash_before_start_counts_where_the_device_was_last),
        STORE_TEST(test_a_changed_declaration_is_judged_anew),
        STORE_TEST(test_what_a_cell_adds_up_to),
        STORE_TEST(test_circumstances_are_counted_and_their_times_are_not),
        STORE_TEST(test_the_control_of_a_cost),
        STORE_TEST(test_of_equally_frequent_digests_the_smallest_is_shown),
        STORE_TEST(test_the_matrix_as_of_then),
        STORE_TEST(test_changes_in_one_millisecond_stay_apart),
        STORE_TEST(test_changes_are_events),
        cmocka_unit_test(test_any_order_gives_the_same_cells),
        STORE_TEST(test_recomputing_sees_what_is_wrong),
        STORE_TEST(test_pages_of_cells_and_jobs_touch_no_run),
        STORE_TEST(test_lists_of_runs_walk_an_index),
    };

    return cmocka_run_group_tests_name("cells", tests, NULL, NULL);
}
