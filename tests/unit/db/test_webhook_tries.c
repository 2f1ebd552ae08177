/* What becomes of deliveries that fail: they are tried again, in order, and given up
 * within bounds. */
#include "tests/unit/db/webhooks_fixture.h"

static void test_tries(void **state)
{
    struct fixture *f = *state;
    struct delivery_try t;
    struct webhook w;
    int64_t first, second;

    add(f, 1, "a", only(WEBHOOK_HOST_LOST));
    assert_int_equal(due(f, NOW).next_ms, 0);
    first = add_test(f);
    second = add_test(f);
    assert_int_equal(due(f, NOW - 1).row.number, 0);
    assert_int_equal(due(f, NOW - 1).next_ms, NOW);
    assert_int_equal(due(f, NOW).row.number, first);
    try(f, first, NOW + 5, 500, 0);
    assert_int_equal(due(f, NOW + 900).row.number, second);
    try(f, second, NOW + 10, 204, 0);
    assert_int_equal(due(f, NOW + 804).row.number, 0);
    assert_int_equal(due(f, NOW + 805).row.number, first);
    w = the_first(f);
    assert_int_equal(w.delivered, 1);
    assert_int_equal(w.failures, 1);
    assert_int_equal(w.failing_ms, 0);
    assert_string_equal(w.cause, "it answered 500");
    try(f, first, NOW + 805, 0, 60000);
    assert_int_equal(due(f, NOW).next_ms, NOW + 60805);
    assert_int_equal(the_first(f).failing_ms, NOW + 805);
    for (int i = 2; i < RETRY_ATTEMPTS_MAX - 1; i++) {
        t = try(f, first, NOW + 60805, 500, 0);
        assert_false(t.dead);
    }
    t = try(f, first, NOW + 70000, 500, 0);
    assert_true(t.dead);
    assert_int_equal(the_first(f).dead, 1);
    assert_int_equal(the_first(f).waiting, 0);
    try(f, 4711, NOW, 500, 0); /* which is no longer there */
    /* 410: it waits, and nothing is sent. */
    first = add_test(f);
    t = try(f, first, NOW + 80000, 410, 0);
    assert_true(t.disabled && !t.dead);
    assert_string_equal(the_first(f).disabled, "it answered 410");
    assert_int_equal(the_first(f).waiting, 1);
}

static enum err_code pause(struct tx *tx, void *arg, struct err *err)
{
    char id[ID_SIZE];

    fixture_id('W', 1, id);
    return webhooks_pause(tx, id, *(bool *)arg, NOW, err);
}

static void test_a_resumed_one_begins_at_once(void **state)
{
    struct fixture *f = *state;
    bool paused = true;

    add(f, 1, "a", only(WEBHOOK_HOST_LOST));
    try(f, add_test(f), NOW, 410, 0);
    fixture_write(f, pause, &paused);
    assert_true(the_first(f).paused && the_first(f).disabled[0]);
    assert_int_equal(due(f, NOW).row.number, 0);
    paused = false;
    fixture_write(f, pause, &paused);
    assert_true(!the_first(f).paused && !the_first(f).disabled[0] &&
                !the_first(f).failing_ms);
    assert_true(due(f, NOW).row.number > 0);
}

/* In the order in which it happened, whatever was tried. */
static void test_a_resumed_one_gets_all_in_order(void **state)
{
    struct fixture *f = *state;
    bool paused = false;
    int64_t first, second;

    add(f, 1, "a", only(WEBHOOK_HOST_LOST));
    first = add_test(f);
    second = add_test(f);
    try(f, first, NOW, 429, RETRY_AFTER_MOST_MS);
    assert_int_equal(due(f, NOW).row.number, second);
    fixture_write(f, pause, &paused);
    assert_int_equal(due(f, NOW).row.number, first);
}

/* A service that was off has not tried. */
static void test_few_tries_give_nothing_up(void **state)
{
    struct fixture *f = *state;
    struct delivery_try t = { .delivery = 2,
                              .now_ms = NOW + 3 * RETRY_GIVE_UP_MS,
                              .status = 500,
                              .failures = RETRY_GIVE_UP_FAILURES - 1 };

    add(f, 1, "a", only(WEBHOOK_HOST_LOST));
    add_test(f);
    add_test(f);
    try(f, 1, NOW, 500, 0);
    fixture_id('W', 1, t.webhook);
    fixture_write(f, tried, &t);
    assert_int_equal(t.given_up, 0);
    t.failures++;
    fixture_write(f, tried, &t);
    assert_int_equal(t.given_up, 2);
}

/* A receiver that takes nothing for a day. */
static void test_what_waits_for_a_dead_receiver_is_given_up(void **state)
{
    struct fixture *f = *state;
    struct delivery_try t;
    struct shown s;

    add(f, 1, "a", only(WEBHOOK_HOST_LOST));
    for (int i = 0; i < 3; i++) {
        add_test(f);
    }
    try(f, 1, NOW, 500, 0);
    t = try(f, 1, NOW + RETRY_GIVE_UP_MS, 500, 0);
    assert_int_equal(t.given_up, 0);
    run_sql(f,
            "UPDATE webhook_delivery SET created_ms = created_ms + 5 WHERE number = 3");
    t = try(f, 1, NOW + RETRY_GIVE_UP_MS + 1, 500, 0);
    assert_int_equal(t.given_up, 2);
    s = shown(f, 1, DELIVERY_DEAD);
    assert_int_equal(s.count, 2);
    assert_string_equal(s.first.cause, "the receiver took nothing for a day");
    buf_release(&s.text);
    s = shown(f, 1, DELIVERY_WAITING);
    assert_int_equal(s.count, 1);
    buf_release(&s.text);
}

static void test_bounds(void **state)
{
    static const char many[] =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
        " INSERT INTO webhook_delivery (webhook, message, type, at_ms, body, created_ms,"
        " next_ms, state, ended_ms) SELECT 1, '%s' || i, 'webhook.test', 1,"
        " '{\"subject\":\"x\"}', 1, 1,"
        " '%s', 1 FROM n";
    struct fixture *f = *state;
    char *sql;

    add(f, 1, "a", only(WEBHOOK_HOST_LOST));
    sql = xasprintf(many, WEBHOOK_WAITING_MAX, "w", "waiting");
    run_sql(f, sql);
    free(sql);
    sql = xasprintf(many, WEBHOOK_DEAD_MAX, "d", "dead");
    run_sql(f, sql);
    free(sql);
    sql = xasprintf(many, WEBHOOK_DELIVERED_KEPT + 7, "k", "delivered");
    run_sql(f, sql);
    free(sql);
    add_test(f);
    assert_int_equal(the_first(f).waiting, WEBHOOK_WAITING_MAX);
    assert_int_equal(the_first(f).dead, WEBHOOK_DEAD_MAX);
    assert_int_equal(the_first(f).dropped, 1);
    {
        struct shown s = shown(f, 1, DELIVERY_STATES);

        assert_int_equal(s.count,
                         WEBHOOK_WAITING_MAX + WEBHOOK_DEAD_MAX + WEBHOOK_DELIVERED_KEPT);
        buf_release(&s.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_tries),
        STORE_TEST(test_a_resumed_one_begins_at_once),
        STORE_TEST(test_a_resumed_one_gets_all_in_order),
        STORE_TEST(test_few_tries_give_nothing_up),
        STORE_TEST(test_what_waits_for_a_dead_receiver_is_given_up),
        STORE_TEST(test_bounds),
    };

    return cmocka_run_group_tests_name("webhook tries", tests, NULL, NULL);
}
