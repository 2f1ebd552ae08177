/* What documents say of an operation: of the very source, in the era of the version. */
#include "daemon/operations/documented.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char text[] =
    "{\"table\":\"t\",\"title\":\"t\",\"source\":\"s\",\"recipes\":[{\"name\":\"R\","
    "\"title\":\"r\"}],\"columns\":["
    "{\"id\":\"old\",\"title\":\"Old\",\"recipes\":[\"R\"],\"versions\":"
    "{\"framework\":\"Frame\",\"from\":\"1.13\",\"to\":\"2.0\"}},"
    "{\"id\":\"none\",\"title\":\"None\",\"recipes\":[\"R\"]},"
    "{\"id\":\"new\",\"title\":\"New\",\"recipes\":[\"R\"],\"versions\":"
    "{\"framework\":\"Frame\",\"from\":\"2.2\"}}],\"rows\":["
    "{\"workload\":\"w\",\"title\":\"w\",\"subject\":\"framework\",\"framework\":"
    "\"Frame\",\"operations\":[\"frame_a\",\"frame_b\"],\"cells\":{\"old\":{\"model\":"
    "{\"none\":\"x\",\"R\":\"y\"},\"documented\":\"R\"}}},"
    "{\"id\":\"p\",\"title\":\"p\",\"subject\":\"framework\",\"framework\":\"Frame\","
    "\"cells\":{\"old\":{\"documented\":\"NS\"}}},"
    "{\"id\":\"q\",\"title\":\"q\",\"subject\":\"framework\",\"framework\":\"Frame\","
    "\"operations\":[\"frame_b\"],\"backend\":\"cpu\",\"cells\":"
    "{\"new\":{\"documented\":\"NS!\"}}}]}";

static struct profile_table *table;

static int setup(void **state)
{
    struct err err;

    (void)state;
    return profile_parse("t.json", text, strlen(text), &table, &err) == ERR_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    profile_free(table);
    return 0;
}

static void test_the_column_of_a_version(void **state)
{
    static const struct {
        const char *version;
        int column;
    } of[] = { { "1.12", -1 },    { "1.13", 0 }, { "1.13.1", 0 },   { "1.14", 0 },
               { "2.0.4", 0 },    { "2.1", -1 }, { "2", 0 },        { "2.2.0+cu121", 2 },
               { "2.15.0a0", 2 }, { "10.0", 2 }, { "nightly", -1 }, { "", -1 },
               { "1.13-rc1", 0 }, { NULL, -1 } };

    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        assert_int_equal(documented_column(table, "Frame", of[i].version), of[i].column);
        assert_int_equal(documented_column(table, "Other", of[i].version), -1);
    }
}

static void test_rows_of_an_operation(void **state)
{
    struct documented d;
    int at = 0;

    (void)state;
    assert_true(documented_next(table, "frame_b", "Frame", "2.0", "cuda", &at, &d));
    assert_string_equal(d.row->id, "w");
    assert_true(d.applies);
    assert_string_equal(documented_code(&d), "R");
    assert_true(documented_next(table, "frame_b", "Frame", "2.0", "cuda", &at, &d));
    assert_string_equal(d.row->id, "q");
    assert_false(d.applies);          /* it speaks of CPUs */
    assert_null(documented_code(&d)); /* not of that era */
    assert_false(documented_next(table, "frame_b", "Frame", "2.0", "cuda", &at, &d));
    at = 0;
    assert_false(documented_next(table, "frame_c", "Frame", "2.0", "cuda", &at, &d));
}

/* Of a row that a model stands for, too, there is one. */
static void test_where_it_ran(void **state)
{
    struct documented d;
    int at = 0;

    (void)state;
    assert_true(documented_next(table, "frame_a", "Frame", "1.0", "cpu", &at, &d));
    assert_false(d.applies);
    assert_int_equal(d.column, -1);
    assert_null(documented_code(&d));
    assert_false(documented_next(table, "frame_a", "Frame", "1.0", "cpu", &at, &d));
    at = 1;
    assert_true(documented_next(table, "frame_b", "Frame", "2.2", "cpu", &at, &d));
    assert_true(d.applies);
    assert_string_equal(documented_code(&d), "NS!");
    at = 0;
    assert_true(documented_next(table, "frame_a", "Frame", "1.0", NULL, &at, &d));
    assert_false(d.applies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_column_of_a_version),
        cmocka_unit_test(test_rows_of_an_operation),
        cmocka_unit_test(test_where_it_ran),
    };

    return cmocka_run_group_tests_name("documented", tests, setup, teardown);
}
