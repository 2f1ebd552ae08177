/* The log is one line an event, whatever the text brings along. */
#include "daemon/base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/buf.h"

static void keep(void *arg, const char *line)
{
    buf_puts(arg, line);
    buf_puts(arg, "\n");
}

static void test_an_event_is_a_line_that_acts_on_no_terminal(void **state)
{
    struct buf lines = BUF_INIT;

    (void)state;
    setenv("JOURNAL_STREAM", "1:2", 1);
    log_set_sink(keep, &lines);
    log_warning("host %s: %s", "a\x1b]0;x\x07",
                "gone\n2026-11-24T00:00:00.000Z info all is well\r\xc2\x9b");
    log_info("\xe2\x80\xae %s", "plain \xc2\xb5\t");
    log_set_sink(NULL, NULL);
    assert_string_equal(lines.data,
                        "warning host a\\x1b]0;x\\x07: "
                        "gone\\n2026-11-24T00:00:00.000Z info all is well\\r\\u009b\n"
                        "info \\u202e plain \xc2\xb5\t\n");
    buf_release(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_event_is_a_line_that_acts_on_no_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
