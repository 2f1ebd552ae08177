/* What an agent holds back of a run's events, and what it makes of that. */
#include "daemon/agent/iterations.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/buf.h"

#define SHOWN(digest)                                                                    \
    "\"digest\":\"" digest                                                               \
    "\",\"weight_sum\":\"s\",\"loss\":null,\"algorithm\":"                               \
    "\"tree\""
#define ONE_OF(digest, i, ms)                                                            \
    "{\"event\":\"iteration\",\"i\":" #i "," SHOWN(digest) ",\"ms\":" #ms "}"
#define ONE(i, ms)    ONE_OF("d", i, ms)
#define WORKER(event) "{\"event\":\"worker\",\"run\":\"R\",\"data\":" event "}"
#define SEVERAL(i, ms)                                                                   \
    "{\"event\":\"iterations\",\"i\":" #i "," SHOWN("d") ",\"ms\":" ms ",\"run\":\"R\"}"

enum { EVENTS_MAX = 5 };

/* Both are texts of JSON, each followed by a line break. */
static void tell(struct iterations *held, struct buf *told)
{
    json_t *event = iterations_take(held, "R");
    char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;

    if (text) {
        buf_printf(told, "%s\n", text);
    }
    free(text);
    json_decref(event);
}

static void feed(struct iterations *held, const char *text, struct buf *told)
{
    json_t *data = json_loads(text, 0, NULL);

    assert_non_null(data);
    if (iterations_hold(held, data)) {
        return;
    }
    tell(held, told);
    if (!iterations_hold(held, data)) {
        buf_printf(told, "%s\n", text);
        json_decref(data);
    }
}

static void expect(const char *const *events, const char *wanted)
{
    struct iterations held = { NULL, NULL };
    struct buf told = BUF_INIT;

    for (int i = 0; i < EVENTS_MAX && events[i]; i++) {
        feed(&held, events[i], &told);
    }
    tell(&held, &told);
    assert_null(held.first);
    assert_null(iterations_take(&held, "R"));
    assert_string_equal(told.data, wanted);
    buf_release(&told);
}

static void test_what_is_told_in_one(void **state)
{
    static const struct {
        const char *events[EVENTS_MAX], *told;
    } cases[] = {
        { { ONE(0, 1.5), ONE(1, 2), ONE(2, 0.001) }, SEVERAL(0, "[1.5,2,0.001]") "\n" },
        { { ONE(7, 1.5) }, WORKER(ONE(7, 1.5)) "\n" },
        { { ONE(0, 1), ONE(1, 1), "{\"event\":\"check\"}", ONE(2, 1) },
          SEVERAL(0, "[1,1]") "\n{\"event\":\"check\"}\n" WORKER(ONE(2, 1)) "\n" },
        { { ONE(0, 1), ONE_OF("e", 1, 1), ONE(2, 1), ONE(3, 1) },
          WORKER(ONE(0, 1)) "\n" WORKER(ONE_OF("e", 1, 1)) "\n" SEVERAL(2,
                                                                        "[1,1]") "\n" },
        /* Not the next. */
        { { ONE(0, 1), ONE(0, 1) }, WORKER(ONE(0, 1)) "\n" WORKER(ONE(0, 1)) "\n" },
        { { ONE(0, 1), ONE(2, 1) }, WORKER(ONE(0, 1)) "\n" WORKER(ONE(2, 1)) "\n" },
        /* What an agent alone may say, said by a worker. */
        { { ONE(0, 1), SEVERAL(1, "[1,1]") },
          WORKER(ONE(0, 1)) "\n" SEVERAL(1, "[1,1]") "\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect(cases[i].events, cases[i].told);
    }
}

/* MEMBER of the second of three alike is VALUE (NULL: absent). */
static void test_what_is_not_held(void **state)
{
    static const struct {
        const char *member, *value;
    } cases[] = {
        { "event", NULL },
        { "event", "1" },
        { "event", "\"iterations\"" },
        { "i", NULL },
        { "i", "\"1\"" },
        { "i", "1.0" },
        { "i", "-1" },
        { "i", "2147483648" },
        { "digest", NULL },
        { "digest", "null" },
        { "digest", "7" },
        { "weight_sum", NULL },
        { "weight_sum", "null" },
        { "weight_sum", "1.5" },
        { "loss", NULL },
        { "loss", "0" },
        { "ms", NULL },
        { "ms", "null" },
        { "ms", "\"1\"" },
        { "ms", "-0.5" },
        { "ms", "1e300" },
        { "ms", "[1]" },
        { "algorithm", NULL },
        { "algorithm", "null" },
        { "run", "\"R\"" },
        { "unknown", "null" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *one = json_loads(ONE(1, 1), 0, NULL);
        const char *events[EVENTS_MAX] = { ONE(0, 1), NULL, ONE(2, 1) };
        struct buf wanted = BUF_INIT;
        char *text;

        if (cases[i].value) {
            json_object_set_new(one, cases[i].member,
                                json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
        } else {
            json_object_del(one, cases[i].member);
        }
        text = json_dumps(one, JSON_COMPACT);
        events[1] = text;
        buf_printf(&wanted, "%s\n%s\n%s\n", WORKER(ONE(0, 1)), text, WORKER(ONE(2, 1)));
        expect(events, wanted.data);
        buf_release(&wanted);
        free(text);
        json_decref(one);
    }
}

/* Each member that is shown ends what can be told in one, "" and null, too. */
static void test_what_differs_is_told_alone(void **state)
{
    static const char *const members[] = { "digest", "weight_sum", "loss", "algorithm" };

    (void)state;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *one = json_loads(ONE(1, 1), 0, NULL);
        const char *events[EVENTS_MAX] = { ONE(0, 1) };
        struct buf wanted = BUF_INIT;
        char *text;

        json_object_set_new(one, members[i], json_string(""));
        text = json_dumps(one, JSON_COMPACT);
        events[1] = text;
        buf_printf(&wanted, "%s\n{\"event\":\"worker\",\"run\":\"R\",\"data\":%s}\n",
                   WORKER(ONE(0, 1)), text);
        expect(events, wanted.data);
        buf_release(&wanted);
        free(text);
        json_decref(one);
    }
}

static void test_how_many_are_held(void **state)
{
    struct iterations held = { NULL, NULL };
    struct buf told = BUF_INIT;
    json_t *event;
    char text[256];

    (void)state;
    for (int i = 0; i < ITERATIONS_HELD_MAX; i++) {
        snprintf(text, sizeof text,
                 "{\"event\":\"iteration\",\"i\":%d," SHOWN("d") ",\"ms\":1}", i);
        feed(&held, text, &told);
    }
    assert_int_equal(told.length, 0);
    event = json_loads(ONE(256, 1), 0, NULL);
    assert_false(iterations_hold(&held, event));
    json_decref(event);
    event = iterations_take(&held, "R");
    assert_int_equal(json_array_size(json_object_get(event, "ms")), ITERATIONS_HELD_MAX);
    json_decref(event);
    buf_release(&told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_told_in_one),
        cmocka_unit_test(test_what_is_not_held),
        cmocka_unit_test(test_what_differs_is_told_alone),
        cmocka_unit_test(test_how_many_are_held),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
