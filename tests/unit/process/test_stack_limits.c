/* What of a hello's stack is too much, and that all of a real one is not. */
#include "daemon/process/stack_limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/mem.h"

static json_t *text_of(int length)
{
    char *text = xcalloc((size_t)length + 1, 1);
    json_t *json;

    memset(text, 'x', (size_t)length);
    json = json_string(text);
    free(text);
    return json;
}

static json_t *copies(const char *json, int count)
{
    json_t *array = json_array();

    for (int i = 0; i < count; i++) {
        json_array_append_new(array, json_loads(json, JSON_DECODE_ANY, NULL));
    }
    return array;
}

#define DEVICE "{\"id\":\"d\",\"model\":\"m\",\"attributes\":{\"a\":\"b\"}}"
#define WORKLOAD                                                                         \
    "{\"workload\":\"w\",\"backend\":\"cpu\",\"variants\":[{\"name\":\"v\"}],"           \
    "\"sizes\":[{\"name\":\"s\"}],\"dtypes\":[\"float32\"],\"title\":\"t\"}"

static json_t *fine(void)
{
    return json_loads(
        "{\"name\":\"cpu\",\"cause\":null,\"probe\":{\"backend\":\"cpu\","
        "\"devices\":[" DEVICE "]},\"catalogue\":[" WORKLOAD "]}",
        0, NULL);
}

/* The value that PATH ("probe/devices/0/id") leads to is VALUE (taken over) instead. */
static void expect(const char *path, json_t *value, const char *message)
{
    json_t *stack = fine();
    json_t *at = stack;
    struct err err = { .code = ERR_OK };
    char copy[64];
    char *rest = NULL;
    char *key;

    snprintf(copy, sizeof copy, "%s", path);
    key = strtok_r(copy, "/", &rest);
    for (char *next; (next = strtok_r(NULL, "/", &rest)) != NULL; key = next) {
        at = json_is_array(at) ? json_array_get(at, (size_t)(*key - '0'))
                               : json_object_get(at, key);
    }
    if (json_is_array(at)) {
        json_array_set_new(at, (size_t)(*key - '0'), value);
    } else {
        json_object_set_new(at, key, value);
    }
    assert_int_equal(stack_limits_check(stack, &err) == ERR_OK, message == NULL);
    if (message) {
        assert_string_equal(err.message, message);
    }
    json_decref(stack);
}

static void test_what_fits(void **state)
{
    (void)state;
    expect("name", text_of(63), NULL);
    expect("probe", json_null(), NULL);
    expect("catalogue", json_null(), NULL);
    expect("cause", text_of(32768), NULL);
    expect("probe/devices/0/id", text_of(255), NULL);
    expect("probe/devices", copies(DEVICE, 256), NULL);
    expect("probe/unmeasured", copies("\"torch.mm\"", 1000), NULL);
    expect("probe/unmeasured", json_null(), NULL);
    expect("catalogue", copies(WORKLOAD, 1000), NULL);
    expect("catalogue/0/workload", text_of(63), NULL);
    expect("catalogue/0/variants", copies("{\"name\":\"v\"}", 256), NULL);
}

static void test_names(void **state)
{
    (void)state;
    expect("name", text_of(64), "name has more than 63 bytes");
    expect("name", text_of(0), "name is not a text, or an empty one");
    expect("name", json_integer(7), "name is not a text, or an empty one");
    expect("probe/backend", text_of(64), "probe: backend has more than 63 bytes");
    expect("probe/devices/0", json_true(),
           "probe: devices[0]: id is not a text, or an empty one");
    expect("probe/devices/0/id", text_of(256),
           "probe: devices[0]: id has more than 255 bytes");
    expect("probe/devices/0/model", text_of(256),
           "probe: devices[0]: model has more than 255 bytes");
    expect("catalogue/0/workload", text_of(64),
           "catalogue: [0]: workload has more than 63 bytes");
    expect("catalogue/0/variants/0/name", text_of(64),
           "catalogue: [0]: variants[0]: the name has more than 63 bytes");
    expect("catalogue/0/sizes/0/name", text_of(64),
           "catalogue: [0]: sizes[0]: the name has more than 63 bytes");
    expect("catalogue/0/dtypes/0", text_of(64),
           "catalogue: [0]: dtypes[0]: the name has more than 63 bytes");
}

static void test_what_is_unmeasured_is_named(void **state)
{
    (void)state;
    expect("probe/unmeasured", json_string("torch.mm"),
           "probe: unmeasured is not an array");
    expect("probe/unmeasured", copies("7", 2), "probe: unmeasured[0] is not a text");
}

static void test_counts(void **state)
{
    (void)state;
    expect("probe/devices", copies(DEVICE, 257),
           "probe: devices: there are more than 256");
    expect("probe/unmeasured", copies("\"torch.mm\"", 1001),
           "probe: unmeasured: there are more than 1000");
    expect("catalogue", copies(WORKLOAD, 1001),
           "catalogue: workloads: there are more than 1000");
    expect("catalogue/0/variants", copies("{\"name\":\"v\"}", 257),
           "catalogue: [0]: variants: there are more than 256");
    expect("catalogue/0/dtypes", copies("\"float32\"", 257),
           "catalogue: [0]: dtypes: there are more than 256");
}

static void test_texts(void **state)
{
    (void)state;
    expect("catalogue/0/title", text_of(32769),
           "catalogue: [0]: title: is a text of more than 32768 bytes");
    expect("of_the_future", copies("\"x\"", 3), NULL);
    expect("of_the_future", text_of(32769),
           "of_the_future: is a text of more than 32768 bytes");
    expect("probe/devices/0/attributes", copies("\"0123456789\"", 6000),
           "probe: devices[0]: attributes has more than 65536 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_fits),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_what_is_unmeasured_is_named),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_texts),
    };

    return cmocka_run_group_tests_name("stack_limits", tests, NULL, NULL);
}
