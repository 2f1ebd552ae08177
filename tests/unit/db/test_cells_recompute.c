/* Cells follow from the set of stored runs: in any order, and when recomputed. */
#include "tests/unit/db/cells_fixture.h"
#include "tests/unit/db/orders_fixture.h"

#include "daemon/base/mem.h"

#include "daemon/base/buf.h"
#include "db/cells_rows.h"
#include "db/connection.h"
#include "db/tx.h"
#include "db/upkeep/recompute.h"

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
    buf_printf(out, "  %ld %d %ld %ld %ld %ld\n", (long)c->vouched_ms, e->varied,
               (long)e->disturbed, (long)e->contended, (long)e->claimed, (long)e->warned);
    buf_printf(out, "  %ld %ld %ld %ld\n", (long)c->digest_counts.runs,
               (long)c->digest_counts.iterations, (long)c->digest_counts.first_runs,
               (long)c->digest_counts.only_runs);
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
enum { MIXED_RUNS = 64, ORDERS_FEW = 15, ORDERS = 50 };

static struct fixture_run mixed_run(int n)
{
    static const enum outcome outcomes[] = {
        OUTCOME_COMPLETED,     OUTCOME_COMPLETED, OUTCOME_COMPLETED, OUTCOME_COMPLETED,
        OUTCOME_COMPLETED,     OUTCOME_CRASHED,   OUTCOME_LOST,      OUTCOME_TIMEOUT,
        OUTCOME_OUT_OF_MEMORY, OUTCOME_CANCELLED, OUTCOME_INFRA,     OUTCOME_INVALID,
        OUTCOME_UNSUPPORTED
    };
    uint32_t state = (uint32_t)n * 7919;
    struct fixture_run r = completed(n, (int)(next_random(&state) % ITEMS));

    if (n % 2) { /* half of them in the mix, half just complete, so that some heal */
        r.outcome = outcomes[next_random(&state) % 13];
    }
    if (strcmp(asked[r.item].variant, "unordered") == 0) {
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
    for (int item = 0; item < ITEMS; item++) { /* every device has said its environment */
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
    uint32_t orders = (uint32_t)how_many(ORDERS_FEW, ORDERS);
    char *first = cells_of_order(1);

    (void)state;
    for (uint32_t seed = 2; seed <= orders; seed++) {
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

/* Of every count of a cell. */
#define MISCOUNT(column, member, what)                                                   \
    "UPDATE cell SET " #column " = " #column " + 1 WHERE id = 2",

static void test_recomputing_sees_what_is_wrong(void **state)
{
    static const char *const damages[] = {
        CELL_INTEGERS(MISCOUNT) "UPDATE cell SET min_ns = 1 WHERE id = 1",
        "UPDATE cell SET disturbed = 1 WHERE id = 1",
        "UPDATE cell SET contended = 1 WHERE id = 1",
        "UPDATE cell SET claimed = 7 WHERE id = 1",
        "UPDATE cell SET warned = 7 WHERE id = 1",
        "UPDATE run SET circumstances = '{}' WHERE cell = 1",
        "UPDATE cell SET verdict = 'inconclusive' WHERE verdict = 'reproducible'",
        "UPDATE cell SET reason = 'because' WHERE id = 2",
        "UPDATE cell_digest SET runs = runs + 1 WHERE cell = 1",
        "UPDATE cell_time SET runs = runs + 1 WHERE cell = 1",
        "UPDATE cell_time SET bucket = 1000000 WHERE cell = 1",
        "DELETE FROM cell_time WHERE cell = 1",
        "UPDATE cell_algorithm SET runs = runs + 1 WHERE cell = 1",
        "UPDATE cell_algorithm SET algorithm = 'another' WHERE cell = 1",
        "DELETE FROM cell_algorithm WHERE cell = 1",
        "UPDATE cell_digest SET first_runs = first_runs + 1 WHERE cell = 1",
        "UPDATE cell_digest SET only_runs = only_runs - 1 WHERE cell = 1",
        "DELETE FROM cell_digest WHERE cell = 1",
        ("INSERT INTO cell_digest (cell, digest, runs, iterations)"
         " VALUES (1, '11111111111111111111111111111111', 1, 1)"),
        ("INSERT INTO cell_device (cell, device, options, runs, last_ms)"
         " VALUES (1, 'cpu:x', '', 1, 1)"),
        "UPDATE cell_device SET iterations = 1 WHERE cell = 1",
        "UPDATE cell_device SET first_ms = 1 WHERE cell = 1",
        "UPDATE cell_device SET first_run = 'x' WHERE cell = 1",
        "UPDATE cell_device SET last_run = 'x' WHERE cell = 1",
        "UPDATE cell_device SET mode = NULL WHERE cell = 1",
        "UPDATE cell_device SET mode_runs = 99 WHERE cell = 1",
        "UPDATE cell_device_digest SET only_runs = 99 WHERE cell = 1",
        "DELETE FROM cell_device_digest WHERE cell = 1",
        "INSERT INTO cell_dissenter VALUES (1, 'cpu:a', 1)",
        "UPDATE cell SET agreement = 'both' WHERE id = 1",
        "UPDATE cell_device SET runs = 3 WHERE cell = 1",
        "UPDATE cell_device SET varied_ms = varied_ms + 1 WHERE cell = 2",
        "UPDATE cell_alike SET varied_ms = varied_ms + 1 WHERE cell = 2",
        "UPDATE cell SET vouched_ms = 3600000 WHERE id = 1",
        "UPDATE cell_device SET digest = NULL WHERE cell = 1",
        "UPDATE cell_device SET options = '{}' WHERE cell = 1",
        "UPDATE cell_alike SET runs = 3 WHERE cell = 1",
        "UPDATE cell_alike SET varied = 1 - varied WHERE cell = 1",
        "DELETE FROM cell_alike WHERE cell = 1",
        "UPDATE job_item SET options = '{\"contention\":1}' WHERE seq = 1",
        "UPDATE cell SET digest = '11111111111111111111111111111111' WHERE id = 1",
        "UPDATE run SET digest = '11111111111111111111111111111111' WHERE cell = 1",
    };
    struct fixture *f = *state;

    insert_job(f);
    store(f, completed(1, ORDERED));
    store(f, completed(2, ORDERED));
    vary(f, 3);
    fixture_check_cells(f);
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        int64_t counts[2];
        struct err err;

        fixture_write(f, damage, (void *)(uintptr_t)damages[i]);
        /* Else the checksum alone would tell of it. */
        fixture_write(f, damage, (void *)(uintptr_t)FIXTURE_SEAL_CELLS);
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
        vary(f, 3);
    }
}

static void keep_line(void *arg, int64_t cell, const char *what)
{
    buf_printf(arg, "%d: %s|", (int)cell, what);
}

struct opinion {
    struct buf lines;
    int64_t compared, differing;
};

static enum err_code hear(struct tx *tx, void *arg, struct err *err)
{
    struct opinion *o = arg;

    return cells_recompute(tx, keep_line, &o->lines, &o->compared, &o->differing, err);
}

static void test_each_difference_is_told(void **state)
{
    struct opinion o = { .lines = BUF_INIT };
    struct fixture *f = *state;
    struct fixture_run crash = completed(2, FREE);

    insert_job(f);
    crash.outcome = OUTCOME_CRASHED;
    store(f, completed(1, ORDERED));
    store(f, crash); /* a cell without any digest */
    fixture_write(f, damage,
                  (void *)(uintptr_t) "UPDATE cell SET iterations = 11 WHERE id = 1");
    fixture_write(f, damage,
                  (void *)(uintptr_t) "UPDATE cell SET digest ="
                                      " '11111111111111111111111111111111' WHERE id = 2");
    fixture_read(f, hear, &o);
    assert_int_equal(o.differing, 2);
    assert_string_equal(o.lines.data,
                        "1: iterations: stored 11, the runs give 10|"
                        "2: digest: stored \"11111111111111111111111111111111\", the "
                        "runs give \"\"|");
    buf_release(&o.lines);
}

/* Each run has the subject of its own item. */
static void test_one_job_can_have_several_subjects(void **state)
{
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("ordered", "cpu:a", 9),
                                fixture_item("algo_1", "cpu:a", 9) };
    struct fixture_job j = fixture_job(1, items, 2);

    items[1].subject = SUBJECT_LIBRARY;
    copy_text(items[1].subject_name, sizeof items[1].subject_name, "cuDNN");
    fixture_write(f, fixture_insert_job, &j);
    store(f, completed(1, 0));
    store(f, completed(2, 1));
    fixture_check_cells(f);
}

static enum err_code few_at_once(struct tx *tx, void *arg, struct err *err)
{
    struct recomputed *counts = arg;
    const struct recompute_how how = { .trusted_since_ms = INT64_MAX,
                                       .differs = fixture_print_difference,
                                       .runs_at_once = 1 };
    const int64_t ids[] = { 1, 2, 999 };

    return recompute_cells(tx, &how, ids, 3, counts, err);
}

/* However few runs are looked at together; and a cell that is gone by then is none. */
static void test_some_at_once(void **state)
{
    struct fixture *f = *state;
    struct recomputed counts = { 0 };

    insert_job(f);
    store(f, completed(1, ORDERED));
    store(f, completed(2, ORDERED));
    vary(f, 3);
    fixture_read(f, few_at_once, &counts);
    assert_int_equal(counts.compared, 2);
    assert_int_equal(counts.differing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_some_at_once),
        cmocka_unit_test(test_any_order_gives_the_same_cells),
        STORE_TEST(test_recomputing_sees_what_is_wrong),
        STORE_TEST(test_each_difference_is_told),
        STORE_TEST(test_one_job_can_have_several_subjects),
    };

    return cmocka_run_group_tests_name("cells_recompute", tests, NULL, NULL);
}
