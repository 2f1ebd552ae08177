/* Wall time goes forward, at between half and twice the speed of time, whatever the
 * system's clock is set to. */
#include "daemon/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/evidence/verdict.h"

enum { SECOND = 1000, HOUR = 3600 * SECOND };

#define BEGIN_MS 1700000000000 /* some day */

static int64_t now_wall_ms, now_steady_ms;

static int64_t wall_ns(void)
{
    return now_wall_ms * 1000000;
}

static int64_t steady_ns(void)
{
    return now_steady_ms * 1000000;
}

static void pass(int64_t ms)
{
    now_wall_ms += ms;
    now_steady_ms += ms;
}

static int begin(void **state)
{
    static const struct clock_source source = { wall_ns, steady_ns };

    (void)state;
    now_wall_ms = BEGIN_MS;
    now_steady_ms = 5 * HOUR;
    clock_set_source(&source);
    assert_int_equal(clock_wall_ms(), BEGIN_MS);
    return 0;
}

static int end(void **state)
{
    (void)state;
    clock_set_source(NULL);
    return 0;
}

static void test_it_is_the_clock_of_the_system(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        pass((i + 1) * HOUR);
        now_wall_ms += i; /* a clock that is being adjusted */
        assert_int_equal(clock_wall_ms(), now_wall_ms);
        assert_int_equal(clock_wall_ahead_ms(), 0);
    }
}

static void test_set_back_it_goes_on_at_half_speed(void **state)
{
    int64_t last = clock_wall_ms();

    (void)state;
    now_wall_ms -= 5 * HOUR;
    assert_int_equal(clock_wall_ms(), last);
    assert_int_equal(clock_wall_ahead_ms(), -5 * HOUR);
    for (int i = 0; i < 100; i++) {
        int64_t now;

        pass(6 * 60 * SECOND);
        now = clock_wall_ms();
        assert_int_equal(now, last + 3 * 60 * SECOND);
        last = now;
    }
    assert_int_equal(clock_wall_ms(), now_wall_ms); /* ten hours later */
    pass(HOUR);
    assert_int_equal(clock_wall_ms(), now_wall_ms);
}

static void test_set_forward_it_goes_on_at_twice_the_speed(void **state)
{
    (void)state;
    now_wall_ms += 5 * HOUR;
    assert_int_equal(clock_wall_ms(), BEGIN_MS);
    pass(HOUR);
    assert_int_equal(clock_wall_ms(), BEGIN_MS + 2 * HOUR);
    assert_int_equal(clock_wall_ahead_ms(), 4 * HOUR);
    pass(4 * HOUR);
    assert_int_equal(clock_wall_ms(), now_wall_ms);
    assert_int_equal(clock_wall_ahead_ms(), 0);
}

/* A cell that was measured a moment ago, where one of an hour is stale. */
static void test_no_jump_makes_what_is_fresh_stale(void **state)
{
    static const int64_t jumps[] = { -400 * 24 * (int64_t)HOUR, -5 * HOUR, 5 * HOUR,
                                     400 * 24 * (int64_t)HOUR };

    for (size_t i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
        int64_t completed;

        begin(state);
        completed = clock_wall_ms();
        now_wall_ms += jumps[i];
        pass(20 * 60 * SECOND);
        assert_int_equal(
            verdict_at(VERDICT_REPRODUCIBLE, completed, completed, clock_wall_ms(), HOUR),
            VERDICT_REPRODUCIBLE);
        assert_true(clock_wall_ms() > completed);
        pass(3 * HOUR);
        assert_int_equal(
            verdict_at(VERDICT_REPRODUCIBLE, completed, completed, clock_wall_ms(), HOUR),
            VERDICT_STALE);
    }
}

static void test_it_is_not_earlier_than_what_is_on_record(void **state)
{
    (void)state;
    clock_wall_at_least(BEGIN_MS - HOUR);
    assert_int_equal(clock_wall_ms(), BEGIN_MS);
    clock_wall_at_least(BEGIN_MS + 2 * HOUR);
    assert_int_equal(clock_wall_ms(), BEGIN_MS + 2 * HOUR);
    pass(2 * HOUR);
    assert_int_equal(clock_wall_ms(), BEGIN_MS + 3 * HOUR);
    pass(3 * HOUR);
    assert_int_equal(clock_wall_ms(), now_wall_ms);
}

/* Of years that leap and others. */
static void test_days_that_there_are(void **state)
{
    static const struct {
        const char *text;
        bool exists;
    } days[] = {
        { "2026-02-28T00:00:00Z", true },  { "2026-02-29T00:00:00Z", false },
        { "2026-02-30T00:00:00Z", false }, { "2028-02-29T00:00:00Z", true },
        { "2028-02-30T00:00:00Z", false }, { "2000-02-29T00:00:00Z", true },
        { "2100-02-29T00:00:00Z", false }, { "2026-04-30T00:00:00Z", true },
        { "2026-04-31T00:00:00Z", false }, { "2026-12-31T00:00:00Z", true },
        { "2026-12-32T00:00:00Z", false }, { "2026-13-01T00:00:00Z", false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof days / sizeof days[0]; i++) {
        int64_t ms = 0;

        assert_int_equal(clock_parse_rfc3339(days[i].text, &ms) == 0, days[i].exists);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_days_that_there_are),
        cmocka_unit_test_setup_teardown(test_it_is_the_clock_of_the_system, begin, end),
        cmocka_unit_test_setup_teardown(test_set_back_it_goes_on_at_half_speed, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_set_forward_it_goes_on_at_twice_the_speed,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_no_jump_makes_what_is_fresh_stale, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_it_is_not_earlier_than_what_is_on_record,
                                        begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
