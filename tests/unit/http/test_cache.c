/* Rendered replies: valid until the store or time changes them, and, of a large fleet,
 * for a while after that. */
#include "api/http/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/base/mem.h"

static void add(struct cache *cache, const char *key, uint64_t generation,
                int64_t begun_ms)
{
    cached_unref(cache_add(cache, key, generation, begun_ms, begun_ms + 1000,
                           xstrdup("body"), 4, "etag"));
}

static bool is_valid(struct cache *cache, const char *key, uint64_t generation,
                     int64_t now_ms)
{
    struct cached *found = cache_find(cache, key, generation, now_ms);

    cached_unref(found);
    return found != NULL;
}

/* When the entry was begun that is shown; -1: none is. */
static int64_t shown(struct cache *cache, int64_t age_ms, int64_t now_ms, bool *ret_renew)
{
    struct cached *found = cache_find_old(cache, "a", age_ms, now_ms, ret_renew);
    int64_t begun_ms = found ? found->begun_ms : -1;

    cached_unref(found);
    return begun_ms;
}

static void test_what_changed_is_not_valid(void **state)
{
    struct cache cache = { .next = 0 };

    (void)state;
    add(&cache, "a", 7, 100);
    assert_true(is_valid(&cache, "a", 7, 1099));
    assert_false(is_valid(&cache, "a", 8, 1099));
    assert_false(is_valid(&cache, "b", 7, 1099));
    assert_false(is_valid(&cache, "a", 7, 1100));
    cache_release(&cache);
}

static void test_what_changed_is_shown_while_it_is_young(void **state)
{
    struct cache cache = { .next = 0 };
    bool renew;

    (void)state;
    add(&cache, "a", 7, 100);
    assert_int_equal(shown(&cache, 200, 199, &renew), 100);
    assert_false(renew);
    assert_int_equal(shown(&cache, 200, 300, &renew), -1);
    assert_int_equal(shown(&cache, 0, 100, &renew), -1); /* a small fleet */
    assert_false(renew);
    cache_release(&cache);
}

static void test_one_renews_it_and_its_successor_is_shown(void **state)
{
    struct cache cache = { .next = 0 };
    bool renew;

    (void)state;
    add(&cache, "a", 7, 100);
    assert_int_equal(shown(&cache, 200, 200, &renew), 100);
    assert_true(renew);
    assert_int_equal(shown(&cache, 200, 201, &renew), 100);
    assert_false(renew);
    add(&cache, "a", 9, 200);
    assert_int_equal(shown(&cache, 200, 301, &renew), 200);
    assert_true(renew);
    cache_release(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_changed_is_not_valid),
        cmocka_unit_test(test_what_changed_is_shown_while_it_is_young),
        cmocka_unit_test(test_one_renews_it_and_its_successor_is_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
