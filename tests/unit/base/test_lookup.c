#include "daemon/base/lookup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { KEYS = 2000 };

static char keys[KEYS][16];
static int values[KEYS];

static void fill(struct lookup *lookup)
{
    for (int i = 0; i < KEYS; i++) {
        snprintf(keys[i], sizeof keys[i], "GPU-%04d", i);
        lookup_put(lookup, keys[i], &values[i]);
    }
}

static void test_empty(void **state)
{
    struct lookup lookup = { .slots = NULL };

    (void)state;
    assert_null(lookup_get(&lookup, "GPU-0"));
    lookup_remove(&lookup, "GPU-0");
    lookup_release(&lookup);
}

static void test_put_and_get(void **state)
{
    struct lookup lookup = { .slots = NULL };

    (void)state;
    fill(&lookup);
    assert_int_equal(lookup.count, KEYS);
    for (int i = 0; i < KEYS; i++) {
        char copy[16];

        memcpy(copy, keys[i], sizeof copy);
        assert_ptr_equal(lookup_get(&lookup, copy), &values[i]);
    }
    assert_null(lookup_get(&lookup, "GPU-2000"));
    lookup_release(&lookup);
    assert_null(lookup_get(&lookup, keys[0]));
}

static void test_a_key_is_there_once(void **state)
{
    struct lookup lookup = { .slots = NULL };

    (void)state;
    lookup_put(&lookup, "a", &values[0]);
    lookup_put(&lookup, "a", &values[1]);
    assert_int_equal(lookup.count, 1);
    assert_ptr_equal(lookup_get(&lookup, "a"), &values[1]);
    lookup_remove(&lookup, "a");
    assert_int_equal(lookup.count, 0);
    assert_null(lookup_get(&lookup, "a"));
    lookup_remove(&lookup, "a");
    assert_int_equal(lookup.count, 0);
    lookup_release(&lookup);
}

/* In an order that leaves holes everywhere: each that stays is still found. */
static void test_remove(void **state)
{
    struct lookup lookup = { .slots = NULL };

    (void)state;
    fill(&lookup);
    for (int i = 0; i < KEYS; i++) {
        int gone = i * 1009 % KEYS;

        lookup_remove(&lookup, keys[gone]);
        assert_null(lookup_get(&lookup, keys[gone]));
        for (int later = i + 1; later < KEYS && later < i + 50; later++) {
            int there = later * 1009 % KEYS;

            assert_ptr_equal(lookup_get(&lookup, keys[there]), &values[there]);
        }
    }
    assert_int_equal(lookup.count, 0);
    fill(&lookup);
    assert_ptr_equal(lookup_get(&lookup, "GPU-1999"), &values[1999]);
    lookup_release(&lookup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_put_and_get),
        cmocka_unit_test(test_a_key_is_there_once),
        cmocka_unit_test(test_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
