/* Objects are read by declaration: what is right is taken, and of everything else it is
 * said where it stands and what it must be. */
#include "daemon/base/json_in.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/base/buf.h"

struct thing {
    const char *name, *colour, *digest;
    int count;
    int64_t big;
    double ms;
    bool fast;
    const json_t *list, *object, *anything;
};

static void check_even(struct in_reader *reader, const json_t *value)
{
    if (json_integer_value(value) % 2) {
        in_refuse(reader, NULL, "must be even, not %lld",
                  (long long)json_integer_value(value));
    }
}

static void check_places(struct in_reader *reader, const json_t *value)
{
    if (json_object_get(value, "a/b")) {
        in_refuse(reader, "a/b", "is not wanted");
    }
}

#define AT(field) IN_AT(struct thing, field)
static const char *const colours[] = { "red", "green", "blue", NULL };
static const struct in_member part_members[] = {
    { "name", IN_TEXT, .least = 1 },
};
static const struct in_shape part_shape = IN_SHAPE(part_members, "a part has no member");
static const struct in_member part = { NULL, IN_OBJECT, .shape = &part_shape };
static const struct in_member even = { NULL, IN_INT, .check = check_even };
static const struct in_member members[] = {
    { "name", IN_TEXT, AT(name), .least = 1, .most = 8 },
    { "colour", IN_TEXT, AT(colour), .flags = IN_OPTIONAL | IN_NULLABLE,
      .names = colours },
    { "digest", IN_HEX, AT(digest), .flags = IN_OPTIONAL, .most = 4 },
    { "count", IN_INT, AT(count), .flags = IN_OPTIONAL },
    { "big", IN_INT, AT(big), .flags = IN_OPTIONAL, .least = 1, .most = INT64_MAX },
    { "ms", IN_REAL, AT(ms), .flags = IN_OPTIONAL, .most = 100 },
    { "fast", IN_BOOL, AT(fast), .fallback = "true" },
    { "list", IN_ARRAY, AT(list), .flags = IN_OPTIONAL, .most = 2, .item = &part },
    { "object", IN_OBJECT, AT(object), .flags = IN_OPTIONAL | IN_NULLABLE, .item = &even,
      .check = check_places },
    { "anything", IN_JSON, AT(anything), .flags = IN_OPTIONAL },
    { "glob", IN_TEXT, .flags = IN_OPTIONAL, .least = 1, .wanted = "must be a glob" },
};
static const struct in_shape shape = IN_SHAPE(members, "a thing has no member");

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);

    if (!json) {
        fail_msg("not JSON: %s", text);
    }
    return json;
}

/* All faults of what is read, one a line. */
static void list_fault(void *arg, const struct in_fault *fault)
{
    buf_printf(arg, "%s: %s%s\n", fault->pointer, fault->reason,
               fault->unknown ? " (unknown)" : "");
}

static void expect(const char *json, const char *faults)
{
    struct thing thing = { 0 };
    struct buf told = BUF_INIT;
    json_t *object = parse(json);
    char *text;

    assert_int_equal(in_read(&shape, object, &thing, list_fault, &told), *faults == 0);
    text = buf_detach(&told, NULL);
    assert_string_equal(text, faults);
    free(text);
    json_decref(object);
}

static void test_values_are_taken(void **state)
{
    struct thing t = { .count = 7, .big = 9, .colour = "none" };
    json_t *object = parse(
        "{\"name\":\"n\",\"colour\":null,\"digest\":\"00ff\","
        "\"big\":1099511627776,\"ms\":1,\"fast\":true,"
        "\"list\":[{\"name\":\"a\"}],\"object\":null,"
        "\"anything\":null}");
    struct err err;

    (void)state;
    assert_int_equal(in_read_wire(&shape, object, &t, &err), ERR_OK);
    assert_string_equal(t.name, "n");
    assert_null(t.colour);
    assert_string_equal(t.digest, "00ff");
    assert_int_equal(t.count, 7); /* absent: as it was */
    assert_true(t.big == INT64_C(1099511627776));
    assert_true(t.ms == 1.0);
    assert_true(t.fast);
    assert_int_equal(json_array_size(t.list), 1);
    assert_null(t.object);
    assert_true(json_is_null(t.anything));
    json_decref(object);
}

static void test_every_fault_is_told(void **state)
{
    (void)state;
    expect("{\"name\":\"n\"}", "");
    expect("[]", ": must be an object\n");
    expect("{}", "/name: is missing\n");
    expect("{\"name\":\"\"}", "/name: must be a text of 1 to 8 bytes\n");
    expect("{\"name\":\"123456789\"}", "/name: must be a text of 1 to 8 bytes\n");
    expect("{\"name\":null}", "/name: must be a text of 1 to 8 bytes\n");
    expect("{\"name\":\"n\",\"colour\":\"gren\"}",
           "/colour: must be red, green or blue, or null; did you mean 'green'?\n");
    expect("{\"name\":\"n\",\"colour\":7}",
           "/colour: must be red, green or blue, or null\n");
    expect("{\"name\":\"n\",\"digest\":\"00FF\"}",
           "/digest: must be 4 hex digits in lower case\n");
    expect("{\"name\":\"n\",\"digest\":\"00f\"}",
           "/digest: must be 4 hex digits in lower case\n");
    expect("{\"name\":\"n\",\"count\":2147483648}", "/count: must be a whole number\n");
    expect("{\"name\":\"n\",\"count\":1.5,\"big\":0,\"ms\":101,\"fast\":1}",
           "/count: must be a whole number\n"
           "/big: must be a whole number from 1\n"
           "/ms: must be a number from 0 to 100\n"
           "/fast: must be true or false\n");
    expect("{\"name\":\"n\",\"list\":[1,2,3]}", "/list: must be an array of at most 2\n");
    expect("{\"name\":\"n\",\"glob\":\"\"}", "/glob: must be a glob\n");
}

static void test_what_is_inside_is_read(void **state)
{
    (void)state;
    expect("{\"name\":\"n\",\"list\":[{\"name\":\"a\"},{\"nme\":\"b\"}]}",
           "/list/1/nme: a part has no member 'nme'; did you mean 'name'? (unknown)\n"
           "/list/1/name: is missing\n");
    expect("{\"name\":\"n\",\"list\":[{\"name\":\"\"},null]}",
           "/list/0/name: must be a text that is not empty\n"
           "/list/1: must be an object\n");
    expect("{\"name\":\"n\",\"object\":{\"a/b\":2,\"c~\":3}}",
           "/object/c~0: must be even, not 3\n"
           "/object/a~1b: is not wanted\n");
}

static void test_unknown_members_are_refused_or_ignored(void **state)
{
    static const struct in_shape open_shape = IN_SHAPE(part_members, NULL);
    json_t *object = parse("{\"name\":\"a\",\"nam\":1}");
    struct err err;

    (void)state;
    expect("{\"name\":7,\"fsat\":true,\"x\":1}",
           "/fsat: a thing has no member 'fsat'; did you mean 'fast'? (unknown)\n"
           "/x: a thing has no member 'x' (unknown)\n"
           "/name: must be a text of 1 to 8 bytes\n");
    assert_int_equal(in_read_wire(&open_shape, object, NULL, &err), ERR_OK);
    json_decref(object);
}

static void test_the_first_fault_is_an_error(void **state)
{
    json_t *object = parse("{\"list\":[{\"name\":7}]}");
    struct err err;

    (void)state;
    assert_int_equal(in_read_wire(&shape, object, NULL, &err), ERR_PROTOCOL);
    assert_string_equal(err.message, "name is missing");
    json_object_set_new(object, "name", json_string("n"));
    assert_int_equal(in_read_wire(&shape, object, NULL, &err), ERR_PROTOCOL);
    assert_string_equal(err.message, "list/0/name must be a text that is not empty");
    assert_int_equal(in_read_file(&shape, object, "x.json: /things/0", NULL, &err),
                     ERR_INVALID);
    assert_string_equal(err.message,
                        "x.json: /things/0/list/0/name: must be a text that "
                        "is not empty");
    json_decref(object);
    object = parse("7");
    assert_int_equal(in_read_wire(&shape, object, NULL, &err), ERR_PROTOCOL);
    assert_string_equal(err.message, "it must be an object");
    assert_int_equal(in_read_file(&shape, object, "x.json", NULL, &err), ERR_INVALID);
    assert_string_equal(err.message, "x.json: must be an object");
    assert_int_equal(in_read_file(&shape, object, "x.json: ", NULL, &err), ERR_INVALID);
    assert_string_equal(err.message, "x.json: at the top: must be an object");
    assert_int_equal(in_read_file(&shape, object, "x.json: /a", NULL, &err), ERR_INVALID);
    assert_string_equal(err.message, "x.json: /a: must be an object");
    json_decref(object);
}

static void test_fallbacks_complete_an_object(void **state)
{
    json_t *object = parse("{\"name\":\"n\"}");
    struct err err;

    (void)state;
    assert_int_equal(in_complete(&shape, object, "x", &err), ERR_OK);
    assert_true(json_is_true(json_object_get(object, "fast")));
    assert_int_equal(json_object_size(object), 2);
    json_object_set_new(object, "fast", json_null());
    assert_int_equal(in_complete(&shape, object, "x", &err), ERR_INVALID);
    assert_string_equal(err.message, "x/fast: must be true or false");
    json_decref(object);
}

static void test_short_ways(void **state)
{
    json_t *object = parse("{\"a\":\"x\",\"n\":7}");
    char *pointer = in_pointer("a~b/c");

    (void)state;
    assert_string_equal(pointer, "/a~0b~1c");
    free(pointer);
    assert_string_equal(in_text(object, "a"), "x");
    assert_null(in_text(object, "n"));
    assert_int_equal(in_int(object, "n"), 7);
    assert_int_equal(in_int(object, "b"), 0);
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_taken),
        cmocka_unit_test(test_every_fault_is_told),
        cmocka_unit_test(test_what_is_inside_is_read),
        cmocka_unit_test(test_unknown_members_are_refused_or_ignored),
        cmocka_unit_test(test_the_first_fault_is_an_error),
        cmocka_unit_test(test_fallbacks_complete_an_object),
        cmocka_unit_test(test_short_ways),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
