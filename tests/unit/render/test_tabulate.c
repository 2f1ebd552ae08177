/* JSON of a list becomes CSV or a table, and JSON of one thing becomes lines of name and
 * value. */
#include "api/render/tabulate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void expect(const char *json, const char *columns, bool csv, const char *text)
{
    struct buf buf = BUF_INIT;

    tabulate(json, columns, csv, &buf);
    assert_string_equal(buf.data, text);
    buf_release(&buf);
}

static const char list[] =
    "{\"items\":[{\"id\":\"a\",\"n\":{\"done\":5},\"x\":null,\"ok\":true},"
    "{\"id\":\"µ,\\\"\\n\",\"n\":{\"done\":12345},\"x\":[1,\"b\"],\"ok\":false}],"
    "\"next\":null}";

static void test_list_as_text(void **state)
{
    (void)state;
    expect(list, "id n.done:runs x ok", false,
           "ID      RUNS  X     OK\n"
           "a          5  -     true\n"
           "µ,\"\\n  12345  1, b  false\n");
}

static void test_list_as_csv(void **state)
{
    (void)state;
    expect(list, "id n.done:runs x ok", true,
           "id,n.done,x,ok\r\n"
           "a,5,,true\r\n"
           "\"µ,\"\"\\n\",12345,\"1, b\",false\r\n");
}

/* Rows stay rows, and columns stay columns. */
static void test_nothing_acts_on_a_terminal(void **state)
{
    static const char hostile[] =
        "{\"name\":\"a\\u001b[2J\\nfake  PASS\\u009b\\u202eb\","
        "\"facts\":{\"k\\r\":\"v\\u007f\"},"
        "\"items\":[{\"id\":\"x\\u001b[31m\\nroot\",\"n\":1,\"o\":{\"\\u009b\":1}},"
        "{\"id\":\"y\",\"n\":22,\"o\":{}}]}";

    (void)state;
    expect(hostile, "id n o", false,
           "name       a\\x1b[2J\\nfake  PASS\\u009b\\u202eb\n"
           "facts.k\\r  v\\x7f\n"
           "\n"
           "ID                N  O\n"
           "x\\x1b[31m\\nroot   1  {\"\\u009b\":1}\n"
           "y                22  {}\n");
    expect(hostile, "id n", true, "id,n\r\nx\\x1b[31m\\nroot,1\r\ny,22\r\n");
}

static void test_empty_list(void **state)
{
    (void)state;
    expect("{\"items\":[],\"next\":null}", "id", false, "ID\n(none)\n");
    expect("{\"items\":[],\"next\":null}", "id", true, "id\r\n");
}

static void test_more_pages_are_named(void **state)
{
    (void)state;
    expect("{\"items\":[{\"id\":1}],\"next\":\"abc\"}", "id", false,
           "ID\n 1\nmore with ?cursor=abc\n");
}

static void test_record(void **state)
{
    (void)state;
    expect(
        "{\"id\":7,\"a\":{\"bc\":\"x\",\"d\":null},\"l\":[{\"e\":1},{\"e\":2.5}],"
        "\"items\":[{\"k\":\"v\"}]}",
        "k", false,
        "id     7\n"
        "a.bc   x\n"
        "a.d    -\n"
        "l.0.e  1\n"
        "l.1.e  2.5\n"
        "\n"
        "K\n"
        "v\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_as_text),
        cmocka_unit_test(test_list_as_csv),
        cmocka_unit_test(test_empty_list),
        cmocka_unit_test(test_more_pages_are_named),
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_nothing_acts_on_a_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
