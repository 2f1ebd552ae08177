/* The environment of each backend whose cells the matrix shows: that of the first GPU,
 * and of the first stack of a device; and what is read of it. */
#include "db/matrix.h"

#include "tests/unit/db/cells_fixture.h"

static const struct device_stack devices[] = {
    { .id = "cpu:a", .backend = "cpu", .stack = "cpu", .is_default = true },
    { .id = "cpu:a", .backend = "cpu", .stack = "onednn" },
    { .id = "GPU-1", .backend = "cuda", .stack = "cudnn9", .is_default = true },
    { .id = "GPU-1", .backend = "cuda", .stack = "cudnn8" },
    { .id = "GPU-2", .backend = "cuda", .stack = "cudnn9", .is_default = true },
};

static void expect(int first, int count, const char *wanted, const char *device,
                   const char *stack)
{
    struct matrix_default subject;

    matrix_default_find(devices + first, count, wanted, &subject);
    assert_string_equal(subject.device, device);
    assert_string_equal(subject.stack, stack);
}

static void test_the_first_gpu_stands_for_all(void **state)
{
    (void)state;
    expect(0, 5, "", "GPU-1", "cudnn9");
    expect(2, 3, "", "GPU-1", "cudnn9");
    expect(0, 2, "", "cpu:a", "cpu");
    expect(0, 0, "", "", "");
}

static void test_a_device_with_its_first_stack(void **state)
{
    (void)state;
    expect(0, 5, "cpu:a", "cpu:a", "cpu");
    expect(0, 5, "GPU-2", "GPU-2", "cudnn9");
    expect(0, 5, "GPU-3", "", "");
}

static const struct profile_table no_table;

struct reading {
    const char *environment;
    int64_t as_of_ms; /* 0: now */
    struct matrix matrix;
    enum err_code code;
};

static enum err_code read_matrix(struct tx *tx, void *arg, struct err *err)
{
    struct reading *r = arg;

    matrix_init(&r->matrix, &no_table, NULL, r->as_of_ms ? r->as_of_ms : 9000,
                r->as_of_ms != 0, 0);
    r->code = matrix_read(tx, r->environment, &r->matrix, err);
    return ERR_OK;
}

static void expect_cells(struct fixture *f, const char *environment, int64_t as_of_ms,
                         int count)
{
    struct reading r = { .environment = environment, .as_of_ms = as_of_ms };

    fixture_read(f, read_matrix, &r);
    assert_int_equal(r.code, ERR_OK);
    assert_true(r.matrix.has_environment);
    assert_string_equal(r.matrix.environment_json, "{\"backend\":\"cpu\"}");
    assert_non_null(r.matrix.facts); /* it is settled */
    assert_int_equal(r.matrix.variant_count, count);
    matrix_release(&r.matrix);
}

static void test_a_matrix_is_of_one_environment_and_time(void **state)
{
    struct fixture *f = *state;
    struct fixture_run elsewhere = completed(3, ORDERED);
    struct reading none = { .environment = "0000000000000000000000000000000f" };

    insert_job(f);
    elsewhere.environment = 2;
    store(f, completed(1, ORDERED));
    store(f, varying(2));
    store(f, elsewhere);
    expect_cells(f, "00000000000000000000000000000001", 0, 2);
    expect_cells(f, "00000000000000000000000000000001", 2000, 1); /* run 1 alone ended */
    expect_cells(f, "00000000000000000000000000000001", 1000, 0);
    expect_cells(f, "00000000000000000000000000000002", 0, 1);
    expect_cells(f, "", 0, 1); /* of what ran last */
    fixture_read(f, read_matrix, &none);
    assert_int_equal(none.code, ERR_NOT_FOUND);
    assert_false(none.matrix.has_environment);
    assert_int_equal(none.matrix.variant_count, 0);
    matrix_release(&none.matrix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_gpu_stands_for_all),
        cmocka_unit_test(test_a_device_with_its_first_stack),
        STORE_TEST(test_a_matrix_is_of_one_environment_and_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
