/* A cell whose runs used several algorithms says so, green or not. */
#include "tests/unit/db/cells_fixture.h"

#include "daemon/base/mem.h"
#include "db/cells_judge.h"

struct list {
    int64_t cell;
    int limit, count;
    struct cell_algorithm all[4];
};

static void take(void *arg, const struct cell_algorithm *algorithm)
{
    struct list *list = arg;

    list->all[list->count++] = *algorithm;
}

static enum err_code read_list(struct tx *tx, void *arg, struct err *err)
{
    struct list *list = arg;

    return cells_each_algorithm(tx, list->cell, list->limit, take, list, err);
}

static struct list algorithms_of(struct fixture *f, const char *variant, int limit)
{
    struct list list = { .cell = fixture_cell(f, variant).id, .limit = limit };

    fixture_read(f, read_list, &list);
    return list;
}

static void store_with(struct fixture *f, int n, const char *algorithm)
{
    struct fixture_run r = completed(n, ORDERED);

    r.algorithm = algorithm;
    store(f, r);
}

static void test_a_green_cell_says_that_it_has_two(void **state)
{
    struct fixture *f = *state;
    struct list list;

    insert_job(f);
    vary(f, 1);
    store_with(f, 2, "tree");
    store_with(f, 3, "tree");
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    assert_null(strstr(fixture_cell(f, "ordered").reason, "algorithm"));
    store_with(f, 4, "chain");
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    assert_non_null(strstr(fixture_cell(f, "ordered").reason,
                           "on 1 device, with 2 algorithms; per-run"));
    list = algorithms_of(f, "ordered", 4);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.all[0].algorithm, "tree");
    assert_int_equal(list.all[0].runs, 2);
    assert_string_equal(list.all[1].algorithm, "chain");
    assert_int_equal(list.all[1].runs, 1);
    assert_int_equal(algorithms_of(f, "ordered", 1).count, 1);
    fixture_check_cells(f);
}

/* Whoever says none has used some, but nobody knows which. */
static void test_none_is_not_counted(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    vary(f, 1);
    store_with(f, 2, "");
    store_with(f, 3, "tree");
    assert_int_equal(algorithms_of(f, "ordered", 4).count, 1);
    assert_null(strstr(fixture_cell(f, "ordered").reason, "algorithm"));
    fixture_check_cells(f);
}

static enum err_code rebuild(struct tx *tx, void *arg, struct err *err)
{
    return cells_rebuild(tx, *(int64_t *)arg, 5000, err);
}

static void test_rebuilding_counts_them_again(void **state)
{
    struct fixture *f = *state;
    int64_t cell;

    insert_job(f);
    vary(f, 1);
    store_with(f, 2, "tree");
    store_with(f, 3, "chain");
    cell = fixture_cell(f, "ordered").id;
    fixture_write(f, rebuild, &cell);
    assert_int_equal(algorithms_of(f, "ordered", 4).count, 2);
    assert_int_equal(algorithms_of(f, "ordered", 4).all[0].runs, 1);
    fixture_check_cells(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_green_cell_says_that_it_has_two),
        STORE_TEST(test_none_is_not_counted),
        STORE_TEST(test_rebuilding_counts_them_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
