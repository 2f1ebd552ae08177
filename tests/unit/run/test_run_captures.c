/* Captured tensors, put together from events; whatever is not in order is refused. */
#include "daemon/run/run_captures.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/run/run_event.h"

/* An event: ROLE INDEX, BYTES of uint8 in all, from OFFSET on DATA. */
static enum err_code add(struct run_captures *t, const char *role, int index, int bytes,
                         int offset, const char *data)
{
    json_t *event =
        json_pack("{s:s,s:i,s:i,s:s,s:s,s:i,s:s,s:s,s:[i],s:i,s:i,s:i,s:s}", "event",
                  "tensor", "i", 0, "step", 3, "place", "p", "role", role, "index", index,
                  "name", "x", "dtype", "uint8", "shape", bytes, "bytes_total", bytes,
                  "captured_bytes", bytes, "offset", offset, "data", data);
    struct tensor_event read;
    struct err err;
    enum err_code code = tensor_event_read(event, &read, &err);

    if (code == ERR_OK) {
        code = run_captures_add(t, &read, &err);
    }
    json_decref(event);
    return code;
}

static void test_pieces_make_a_tensor(void **state)
{
    struct run_captures t = { .count = 0 };
    struct err err;

    (void)state;
    assert_int_equal(add(&t, "in", 0, 5, 0, "AQID"), ERR_OK);
    assert_int_equal(run_captures_finish(&t, &err), ERR_PROTOCOL);
    assert_int_equal(add(&t, "in", 0, 5, 3, "BP8="), ERR_OK);
    assert_int_equal(add(&t, "in", 1, 1, 0, "+g=="), ERR_OK);
    assert_int_equal(add(&t, "out", 0, 3, 0, "////"), ERR_OK);
    assert_int_equal(run_captures_finish(&t, &err), ERR_OK);
    assert_int_equal(t.count, 3);
    assert_memory_equal(t.items[0].data, "\x01\x02\x03\x04\xff", 5);
    assert_memory_equal(t.items[1].data, "\xfa", 1);
    assert_true(t.items[2].is_out);
    assert_int_equal(t.items[2].index, 0);
    assert_string_equal(t.items[2].shape, "[3]");
    assert_int_equal(t.bytes, 9);
    run_captures_release(&t);
}

static void test_an_empty_tensor(void **state)
{
    struct run_captures t = { .count = 0 };
    struct err err;

    (void)state;
    assert_int_equal(add(&t, "out", 0, 0, 0, ""), ERR_OK);
    assert_int_equal(run_captures_finish(&t, &err), ERR_OK);
    assert_int_equal(t.items[0].bytes, 0);
    run_captures_release(&t);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *role;
        int index, bytes, offset;
        const char *data;
    } cases[] = {
        { "in", 1, 3, 0, "AQID" },       /* not the first */
        { "in", 0, 3, 3, "" },           /* no beginning */
        { "in", 0, 3, 0, "AQI" },        /* no base64 */
        { "in", 0, 3, 0, "AQ=D" },       /* padding inside */
        { "in", 0, 3, 0, "AQ I" },       /* a blank */
        { "in", 0, 2, 0, "AQID" },       /* more than was said */
        { "in", 0, 3, 0, "AQIDBAUG" },   /* likewise */
        { "in", 0, 3, 0, "" },           /* nothing */
        { "in", 0, 6, 0, "AQI=" },       /* padding before the end */
        { "in", 0, 5 << 20, 0, "AQID" }, /* over the bound */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run_captures t = { .count = 0 };

        assert_int_equal(add(&t, cases[i].role, cases[i].index, cases[i].bytes,
                             cases[i].offset, cases[i].data),
                         ERR_PROTOCOL);
        run_captures_release(&t);
    }
}

static void test_order(void **state)
{
    struct run_captures t = { .count = 0 };

    (void)state;
    assert_int_equal(add(&t, "out", 0, 3, 0, "AQID"), ERR_OK);
    assert_int_equal(add(&t, "out", 0, 3, 0, "AQID"), ERR_PROTOCOL); /* twice */
    assert_int_equal(add(&t, "in", 0, 3, 0, "AQID"), ERR_PROTOCOL);  /* in after out */
    assert_int_equal(add(&t, "out", 2, 3, 0, "AQID"), ERR_PROTOCOL); /* one left out */
    run_captures_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_make_a_tensor),
        cmocka_unit_test(test_an_empty_tensor),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
