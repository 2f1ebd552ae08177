/* A cell in which nothing varied is shown what varied beside it, of its own framework,
 * kind, settings, environment and conditions only.  Each part of it alone makes it
 * nobody's witness. */
#include "tests/unit/db/store_fixture.h"

#include "daemon/base/buf.h"
#include "db/views/cell_witness.h"

enum { OWN_CONTROL, OWN, OTHER, ANOTHER, ITEMS };

static const char contention[] = "{\"contention\":4}";

enum difference {
    NO_DIFFERENCE,
    MODEL, /* of the other operation */
    FRAMEWORK,
    KIND,
    SETTINGS,
    NO_CONTROL,
    ENVIRONMENT,
    CONDITIONS,
    STEADY,
    WRONG,
    SIZE,
    DTYPE,
    OWN_MODEL, /* of the cell, from here on */
    OWN_ONE_RUN,
    OWN_VARIES,
    OWN_CONTROL_VARIES,
    OWN_CONTROL_UNMEASURED,
    OWN_CONTROL_BY_DEVICE, /* differs between two, each of which agrees with itself */
    SAME_OPERATION,        /* of another size */
    DIFFERENCES
};

static void framework(struct job_item *item, const char *name)
{
    item->subject = SUBJECT_FRAMEWORK;
    snprintf(item->subject_name, sizeof item->subject_name, "%s", name);
}

static void name(struct job_item *item, const char *workload)
{
    snprintf(item->key.workload, sizeof item->key.workload, "%s", workload);
}

static void insert_job(struct fixture *f, enum difference d)
{
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 9),
                                fixture_item("ordered", "cpu:a", 9),
                                fixture_item("unordered", "cpu:a", 9),
                                fixture_item("unordered", "cpu:a", 9) };
    struct fixture_job j = fixture_job(1, items, ITEMS);

    for (int i = 0; i < ITEMS; i++) {
        snprintf(items[i].stack, sizeof items[i].stack, "external");
        if (!(i < OTHER && d == OWN_MODEL) && !(i == OTHER && d == MODEL)) {
            framework(&items[i], i == OTHER && d == FRAMEWORK ? "JAX" : "PyTorch");
        }
    }
    if (d == SAME_OPERATION) {
        snprintf(items[OTHER].key.size, sizeof items[OTHER].key.size, "other");
    } else {
        name(&items[OTHER], "index_put");
    }
    if (d == OWN_CONTROL_BY_DEVICE) {
        snprintf(items[ANOTHER].device, sizeof items[ANOTHER].device, "cpu:b");
    } else {
        name(&items[ANOTHER], "zeta");
    }
    if (d == SIZE) {
        snprintf(items[OTHER].key.size, sizeof items[OTHER].key.size, "other");
    }
    if (d == DTYPE) {
        snprintf(items[OTHER].key.dtype, sizeof items[OTHER].key.dtype, "other");
    }
    snprintf(items[OTHER].kind, sizeof items[OTHER].kind, "%s",
             d == KIND ? "entropy" : "");
    if (d == SETTINGS) {
        snprintf(items[OTHER].key.variant, sizeof items[OTHER].key.variant, "other");
    }
    if (d == NO_CONTROL) {
        items[OTHER].is_control = false;
        snprintf(items[OTHER].no_control, sizeof items[OTHER].no_control, "none");
    }
    if (d == CONDITIONS) {
        run_options_read(contention, &items[OTHER].options);
    }
    fixture_write(f, fixture_insert_job, &j);
}

static void store(struct fixture *f, struct fixture_run r)
{
    r.job = 1;
    r.outcome = OUTCOME_COMPLETED;
    r.environment = r.environment ? r.environment : 1;
    fixture_write(f, fixture_whole_run, &r);
}

static void challenge(struct fixture *f, int n, int item, int environment)
{
    store(f, (struct fixture_run){ .n = n,
                                   .item = item,
                                   .environment = environment,
                                   .seed = 7000,
                                   .input = 40 + n,
                                   .digest = 60 + 4 * n });
}

static void run_twice(struct fixture *f, struct fixture_run r)
{
    store(f, r);
    r.n += 900;
    store(f, r);
}

static void arrange(struct fixture *f, enum difference d)
{
    insert_job(f, d);
    run_twice(
        f, (struct fixture_run){ .n = 1,
                                 .item = OTHER,
                                 .distinct = d == STEADY ? 1 : 3,
                                 .environment = d == ENVIRONMENT ? 2 : 1,
                                 .circumstances = d == CONDITIONS ? contention : NULL });
    if (d != WRONG) {
        challenge(f, 2, OTHER, d == ENVIRONMENT ? 2 : 1);
    }
    if (d != OWN_CONTROL_UNMEASURED) {
        run_twice(f, (struct fixture_run){ .n = 10,
                                           .item = OWN_CONTROL,
                                           .distinct = d == OWN_CONTROL_VARIES ? 3 : 1 });
    }
    if (d == OWN_CONTROL_BY_DEVICE) {
        run_twice(f, (struct fixture_run){ .n = 15, .item = ANOTHER, .digest = 7 });
    }
    store(f, (struct fixture_run){
                 .n = 20, .item = OWN, .distinct = d == OWN_VARIES ? 3 : 1 });
    if (d != OWN_ONE_RUN) {
        store(f, (struct fixture_run){ .n = 21, .item = OWN });
    }
}

struct question {
    struct cell cell;
    bool found;
    struct cell_witness witness;
};

static enum err_code ask(struct tx *tx, void *arg, struct err *err)
{
    struct question *q = arg;

    return cell_witness_of(tx, &q->cell, &q->found, &q->witness, err);
}

static void take_own(void *arg, const struct cell *cell)
{
    struct question *q = arg;

    if (strcmp(cell->key.workload, "conv_wgrad") == 0 &&
        strcmp(cell->key.variant, q->cell.key.variant) == 0) {
        q->cell = *cell;
    }
}

static enum err_code read_own(struct tx *tx, void *arg, struct err *err)
{
    return cells_each(tx, "00000000000000000000000000000001", 0, take_own, arg, err);
}

/* The witness of conv_wgrad's VARIANT; "" if there is none. */
static const char *witness_name(struct fixture *f, const char *variant)
{
    static struct question q;

    q = (struct question){ 0 };
    snprintf(q.cell.key.variant, sizeof q.cell.key.variant, "%s", variant);
    fixture_read(f, read_own, &q);
    assert_true(q.cell.id > 0);
    fixture_read(f, ask, &q);
    return q.found ? q.witness.cell.key.workload : "";
}

static void test_each_part_alone_makes_it_nobodys_witness(void **state)
{
    for (int d = 0; d < DIFFERENCES; d++) {
        const char *expected = d == NO_DIFFERENCE ? "index_put" : "";

        if (d > 0) {
            fixture_teardown(state);
            fixture_setup(state);
        }
        arrange(*state, d);
        assert_string_equal(witness_name(*state, "ordered"), expected);
    }
}

static void test_a_control_has_one_too_and_is_not_its_own(void **state)
{
    arrange(*state, NO_DIFFERENCE);
    assert_string_equal(witness_name(*state, "unordered"), "index_put");
    fixture_teardown(state);
    fixture_setup(state);
    arrange(*state, OWN_CONTROL_VARIES);
    assert_string_equal(witness_name(*state, "unordered"), "");
}

static void test_the_one_that_varies_most_stands_for_all(void **state)
{
    struct fixture *f = *state;

    arrange(f, NO_DIFFERENCE);
    run_twice(f, (struct fixture_run){ .n = 30, .item = ANOTHER, .distinct = 3 });
    challenge(f, 31, ANOTHER, 1);
    assert_string_equal(witness_name(f, "ordered"), "index_put"); /* by name */
    store(f, (struct fixture_run){ .n = 40, .item = OTHER, .distinct = 3 });
    assert_string_equal(witness_name(f, "ordered"), "zeta");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_each_part_alone_makes_it_nobodys_witness),
        STORE_TEST(test_a_control_has_one_too_and_is_not_its_own),
        STORE_TEST(test_the_one_that_varies_most_stands_for_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
