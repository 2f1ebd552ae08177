/* Cells as readers ask for them: one, those that break their library's promise, what they
 * were asked for, and page by page. */
#include "db/cells_judge.h"
#include "db/tx.h"
#include "tests/unit/db/cells_fixture.h"

struct list {
    const char *environment;
    int64_t id, before; /* of a cell; what is older than that */
    int limit;
    int64_t cells[ITEMS];
    struct cell first;
    struct cell_conditions conditions[ITEMS];
    struct cell_change changes[ITEMS];
    char digests[ITEMS][DIGEST_TEXT_SIZE];
    int count;
};

static void take_cell(void *arg, const struct cell *cell)
{
    struct list *l = arg;

    if (l->count == 0) {
        l->first = *cell;
    }
    l->cells[l->count++] = cell->id;
}

static enum err_code read_environment(struct tx *tx, void *arg, struct err *err)
{
    struct list *l = arg;

    return cells_each(tx, l->environment, l->before, take_cell, l, err);
}

static void expect_in(struct fixture *f, const char *environment, int64_t as_of_ms,
                      int count, const int64_t *cells)
{
    struct list l = { .environment = environment, .before = as_of_ms };

    fixture_read(f, read_environment, &l);
    assert_int_equal(l.count, count);
    assert_memory_equal(l.cells, cells, count * sizeof *cells);
}

/* By variant, whatever came first; those of another environment are not among them. */
static void test_cells_of_an_environment(void **state)
{
    struct fixture *f = *state;
    struct fixture_run runs[] = { varying(1), completed(2, ORDERED), completed(3, FREE),
                                  completed(4, ORDERED) };
    int64_t here[3], there;

    insert_job(f);
    runs[3].environment = 2;
    for (int i = 0; i < 4; i++) {
        fixture_write(f, fixture_whole_run, &runs[i]);
    }
    for (int i = 0; i < 3; i++) {
        here[i] = runs[2 - i].effect.cell;
    }
    there = runs[3].effect.cell;
    for (int64_t as_of_ms = 0; as_of_ms <= 9000; as_of_ms += 9000) {
        expect_in(f, "00000000000000000000000000000001", as_of_ms, 3, here);
        expect_in(f, "00000000000000000000000000000002", as_of_ms, 1, &there);
        expect_in(f, "00000000000000000000000000000003", as_of_ms, 0, &there);
    }
}

static enum err_code read_broken(struct tx *tx, void *arg, struct err *err)
{
    struct list *l = arg;

    return cells_each_broken_claim(tx, l->before, l->limit, take_cell, l, err);
}

static enum err_code pretend(struct tx *tx, void *arg, struct err *err)
{
    return tx_run(tx, err, *(const char **)arg);
}

static void run_sql(struct fixture *f, const char *sql)
{
    fixture_write(f, pretend, &sql);
}

static void expect_broken(struct fixture *f, int64_t before, int limit, int count,
                          int64_t first)
{
    struct list l = { .before = before, .limit = limit };

    fixture_read(f, read_broken, &l);
    assert_int_equal(l.count, count);
    if (count > 0) {
        assert_int_equal(l.cells[0], first);
    }
}

/* Only a promise of every run is broken by two digests. */
static void test_broken_claims(void **state)
{
    struct fixture *f = *state;
    struct fixture_run elsewhere = varying(3);
    int64_t here, there;

    insert_job(f);
    elsewhere.environment = 2;
    store(f, varying(1));
    store(f, varying(2));
    fixture_write(f, fixture_whole_run, &elsewhere);
    store(f, completed(4, ORDERED));
    here = fixture_cell(f, "unordered").id;
    there = elsewhere.effect.cell;
    expect_broken(f, 0, 9, 0, 0);
    run_sql(f, "UPDATE cell SET claimed = 1");
    expect_broken(f, 0, 9, 1, there);
    run_sql(f, "UPDATE cell SET claimed = completed");
    expect_broken(f, 0, 9, 2, there);
    expect_broken(f, 0, 1, 1, there);
    expect_broken(f, there, 9, 1, here);
    expect_broken(f, here, 9, 0, 0);
    run_sql(f,
            "UPDATE cell SET checks_failed = 1"); /* then the numbers are what is wrong */
    expect_broken(f, 0, 9, 0, 0);
}

static void take_conditions(void *arg, const struct cell_conditions *conditions)
{
    struct list *l = arg;

    l->conditions[l->count++] = *conditions;
}

static enum err_code read_conditions(struct tx *tx, void *arg, struct err *err)
{
    struct list *l = arg;

    return cells_each_conditions(tx, l->id, l->limit, take_conditions, l, err);
}

static void test_conditions_of_a_cell(void **state)
{
    struct fixture *f = *state;
    struct list l = { .limit = 9 };

    insert_job(f);
    store(f, completed(1, UNORDERED_LOADED));
    store(f, completed(2, UNORDERED_LOADED));
    store(f, varying(3));
    store(f, completed(4, ORDERED));
    l.id = fixture_cell(f, "unordered").id;
    fixture_read(f, read_conditions, &l);
    assert_int_equal(l.count, 2);
    assert_string_equal(l.conditions[0].options, "");
    assert_int_equal(l.conditions[0].runs, 1);
    assert_true(l.conditions[0].varied);
    assert_non_null(strstr(l.conditions[1].options, "contention"));
    assert_int_equal(l.conditions[1].runs, 2);
    assert_false(l.conditions[1].varied);
    l.limit = 1;
    l.count = 0;
    fixture_read(f, read_conditions, &l);
    assert_int_equal(l.count, 1);
    assert_string_equal(l.conditions[0].options, "");
}

static void take_digest(void *arg, const struct cell_digest *digest)
{
    struct list *l = arg;

    snprintf(l->digests[l->count++], DIGEST_TEXT_SIZE, "%s", digest->digest);
}

static enum err_code read_digests(struct tx *tx, void *arg, struct err *err)
{
    struct list *l = arg;

    return cells_each_digest(tx, l->id, l->limit, take_digest, l, err);
}

/* Most runs first, then most iterations, then by text; and no other cell's. */
static void test_digests_in_order(void **state)
{
    static const int digests[] = { 9, 8, 9 };
    static const char last[] = "98567";
    struct fixture *f = *state;
    struct fixture_run mixed = completed(4, ORDERED);
    struct list l = { .limit = 9 };

    insert_job(f);
    for (int i = 0; i < 3; i++) {
        struct fixture_run r = completed(i + 1, ORDERED);

        r.digest = digests[i];
        store(f, r);
    }
    mixed.digest = 5; /* eight times, and 6 and 7 once each */
    mixed.distinct = 3;
    store(f, mixed);
    store(f, varying(5));
    l.id = fixture_cell(f, "ordered").id;
    fixture_read(f, read_digests, &l);
    assert_int_equal(l.count, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(l.digests[i][DIGEST_TEXT_SIZE - 2], last[i]);
    }
    l.limit = 2;
    l.count = 0;
    fixture_read(f, read_digests, &l);
    assert_int_equal(l.count, 2);
}

static void take_change(void *arg, const struct cell_change *change)
{
    struct list *l = arg;

    l->changes[l->count++] = *change;
}

static enum err_code read_changes(struct tx *tx, void *arg, struct err *err)
{
    struct list *l = arg;

    return cells_each_change(tx, l->id, l->before, l->limit, take_change, l, err);
}

static void test_changes_are_read_in_pages(void **state)
{
    struct fixture *f = *state;
    struct list l = { .limit = 2 };
    int64_t last;

    insert_job(f);
    for (int i = 1; i <= 3; i++) {
        struct fixture_run r = completed(i, ORDERED);

        r.digest = i;
        store(f, r);
    }
    l.id = fixture_cell(f, "ordered").id;
    fixture_read(f, read_changes, &l);
    assert_int_equal(l.count, 2);
    assert_int_equal(l.changes[0].distinct_digests, 3);
    assert_int_equal(l.changes[0].iterations, 3 * FIXTURE_ITERATIONS);
    assert_int_equal(l.changes[1].distinct_digests, 2);
    last = l.changes[1].at_ms;
    l = (struct list){ .id = l.id, .limit = 9, .before = last };
    fixture_read(f, read_changes, &l);
    assert_int_equal(l.count, 1);
    assert_int_equal(l.changes[0].verdict, VERDICT_INCONCLUSIVE);
    assert_int_equal(l.changes[0].runs, 1);
}

static enum err_code get_one(struct tx *tx, void *arg, struct err *err)
{
    struct list *l = arg;

    return cells_get(tx, l->id, &l->first, err);
}

static enum err_code fold_nowhere(struct tx *tx, void *arg, struct err *err)
{
    struct run_record run = { .outcome = OUTCOME_COMPLETED, .cell = 99 };
    struct cell_effect effect;

    (void)arg;
    return cells_fold(tx, &run, NULL, 0, &effect, err);
}

static void test_one_cell(void **state)
{
    struct fixture *f = *state;
    struct list l = { .id = 99 };
    struct err err;

    insert_job(f);
    store(f, varying(1));
    store(f, completed(2, ORDERED));
    assert_int_equal(store_read_sync(f->store, get_one, &l, &err), ERR_NOT_FOUND);
    assert_int_equal(store_write_sync(f->store, fold_nowhere, NULL, &err), ERR_NOT_FOUND);
    l.id = fixture_cell(f, "ordered").id;
    fixture_read(f, get_one, &l);
    assert_int_equal(l.first.id, l.id);
    assert_string_equal(l.first.key.variant, "ordered");
    assert_int_equal(l.first.times.runs, 1);
    assert_int_equal(l.first.changed_ms, 2900);
}

static enum err_code add_times(struct tx *tx, void *arg, struct err *err)
{
    for (int64_t ns = 0; ns <= 1; ns++) {
        if (cells_times_add(tx, *(int64_t *)arg, ns, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

/* A nanosecond is a time; 0 says that there is none. */
static void test_the_shortest_time_counts(void **state)
{
    struct fixture *f = *state;
    int64_t cell;

    insert_job(f);
    store(f, completed(1, ORDERED));
    cell = fixture_cell(f, "ordered").id;
    fixture_write(f, add_times, &cell);
    assert_int_equal(fixture_cell(f, "ordered").times.runs, 2);
}

/* A damaged file is read, and fsck says what is wrong with it. */
static void test_times_of_a_damaged_file(void **state)
{
    struct fixture *f = *state;
    int64_t counts[2];

    insert_job(f);
    store(f, completed(1, ORDERED));
    run_sql(f, "UPDATE cell_time SET bucket = 1000000");
    assert_int_equal(fixture_cell(f, "ordered").times.median_ns,
                     times_middle(TIMES_BUCKETS - 1));
    fixture_read(f, fixture_recompute, counts);
    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_cells_of_an_environment),
        STORE_TEST(test_broken_claims),
        STORE_TEST(test_conditions_of_a_cell),
        STORE_TEST(test_digests_in_order),
        STORE_TEST(test_changes_are_read_in_pages),
        STORE_TEST(test_one_cell),
        STORE_TEST(test_the_shortest_time_counts),
        STORE_TEST(test_times_of_a_damaged_file),
    };

    return cmocka_run_group_tests_name("cells_lists", tests, NULL, NULL);
}
