/* A run as JSON: what is not known yet is null. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/render/nouns_json.h"

static void shows(const struct run_record *run, const char *expected)
{
    struct json_out out = JSON_OUT_INIT;

    out_open(&out, NULL, '{');
    run_json(&out, run);
    out_close(&out, '}');
    buf_putc(&out.buf, '\0');
    if (!strstr(out.buf.data, expected)) {
        print_error("'%s' is not in %s\n", expected, out.buf.data);
        fail();
    }
    buf_release(&out.buf);
}

static void test_a_process_that_did_not_start(void **state)
{
    struct run_record run = { .id = "01ARZ3NDEKTSV4RRFFQ69G5FAV" };

    (void)state;
    shows(&run, "\"process\":{\"pid\":null,\"boot_id\":null,");
    run.pid = 42;
    shows(&run, "\"process\":{\"pid\":42,\"boot_id\":null,");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_process_that_did_not_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
