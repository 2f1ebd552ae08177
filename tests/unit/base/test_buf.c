/* A buffer holds what was added, whatever room it had. */
#include "daemon/base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/hash.h"

enum { LONGEST = 600 }; /* more than two of the first rooms */

static void fill(struct buf *buf, int length)
{
    for (int i = 0; i < length; i++) {
        buf_putc(buf, (char)('a' + i % 26));
    }
}

static void test_printing_at_each_length(void **state)
{
    char text[2 * LONGEST];

    (void)state;
    for (int length = 0; length <= LONGEST; length++) {
        struct buf buf = BUF_INIT, other = BUF_INIT;

        fill(&other, length);
        fill(&buf, LONGEST - length);
        buf_printf(&buf, "%s%d", other.data ? other.data : "", length);
        snprintf(text, sizeof text, "%.*s%s%d", LONGEST - length, buf.data,
                 other.data ? other.data : "", length);
        assert_string_equal(buf.data, text);
        assert_int_equal(buf.length, strlen(text));
        assert_true(buf.capacity > buf.length);
        buf_release(&buf);
        buf_release(&other);
    }
}

static void test_printing_nothing(void **state)
{
    struct buf buf = BUF_INIT;
    char *data;

    (void)state;
    buf_printf(&buf, "%s", "");
    assert_int_equal(buf.length, 0);
    buf_puts(&buf, "a");
    buf_printf(&buf, "%s", "");
    assert_string_equal(buf.data, "a");
    data = buf_detach(&buf, NULL);
    assert_string_equal(data, "a");
    assert_null(buf.data);
    free(data);
}

/* Any word that differs, and any length, gives another. */
static void test_hash_of_long_texts(void **state)
{
    char text[64] = { 0 };
    uint64_t seen[sizeof text * 2];
    int count = 0;

    (void)state;
    for (size_t i = 0; i < sizeof text; i++) {
        seen[count++] = hash_long(text, i);
        text[i] = 1;
        seen[count++] = hash_long(text, sizeof text);
        text[i] = 0;
    }
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) {
            assert_true(seen[i] != seen[j]);
        }
    }
    /* what the last byte of a word does to the hash is not undone by a byte or two */
    assert_true(hash_long("n000000300000000", 16) != hash_long("n0000000000x200y", 16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_printing_at_each_length),
        cmocka_unit_test(test_printing_nothing),
        cmocka_unit_test(test_hash_of_long_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
