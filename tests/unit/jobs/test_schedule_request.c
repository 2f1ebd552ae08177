/* What may be posted as a schedule, and what its jobs are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"
#include "daemon/jobs/schedule_request.h"

#define NOW_MS INT64_C(1700000000000)

static enum err_code read(const char *text, struct schedule *ret_schedule,
                          struct problems *problems)
{
    json_t *body = json_loads(text, JSON_DECODE_ANY, NULL);
    const json_t *job = NULL;
    enum err_code code;

    assert_non_null(body);
    *ret_schedule = (struct schedule){ .every_seconds = 0 };
    *problems = (struct problems){ .count = 0 };
    code = schedule_request_read(body, NOW_MS, ret_schedule, &job, problems);
    assert_int_equal(code == ERR_OK, problems->count == 0);
    assert_int_equal(code == ERR_OK, job && job == json_object_get(body, "job"));
    json_decref(body);
    return code;
}

static void test_a_period(void **state)
{
    struct schedule s;
    struct problems problems;

    (void)state;
    assert_int_equal(read("{\"name\":\"n\",\"every\":\"6h\",\"job\":{}}", &s, &problems),
                     ERR_OK);
    assert_string_equal(s.name, "n");
    assert_int_equal(s.every_seconds, 6 * 3600);
    assert_string_equal(s.calendar_text, "");
    assert_int_equal(s.spread_seconds, -1);
    assert_false(s.paused);
    assert_int_equal(s.created_ms, NOW_MS);
    assert_int_equal(s.next_ms, schedule_next(&s, NOW_MS));
}

static void test_a_calendar(void **state)
{
    struct schedule s;
    struct problems problems;

    (void)state;
    assert_int_equal(read("{\"name\":\"n\",\"calendar\":\"0 3 * * *\",\"paused\":true,"
                          "\"spread_seconds\":0,\"job\":{}}",
                          &s, &problems),
                     ERR_OK);
    assert_int_equal(s.every_seconds, 0);
    assert_string_equal(s.calendar_text, "0 3 * * *");
    assert_int_equal(s.spread_seconds, 0);
    assert_true(s.paused);
    assert_true(s.next_ms > NOW_MS);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *body, *pointer, *detail;
        enum problem_kind kind;
    } cases[] = {
        { "7", "", "must be an object", PROBLEM_INVALID },
        { "{\"name\":\"n\",\"job\":{}}", "",
          "a schedule has either 'every' or 'calendar'", PROBLEM_INVALID },
        { "{\"name\":\"n\",\"job\":{},\"every\":\"1d\",\"calendar\":\"0 3 * * *\"}", "",
          "a schedule has either 'every' or 'calendar'", PROBLEM_INVALID },
        { "{\"name\":\"n\",\"job\":{},\"every\":\"often\"}", "/every",
          "must be a number with a unit", PROBLEM_INVALID },
        { "{\"name\":\"n\",\"job\":{},\"every\":\"400d\"}", "/every",
          "must be a year at most", PROBLEM_INVALID },
        { "{\"name\":\"n\",\"job\":{},\"calendar\":\"0 3 * *\"}", "/calendar", "column ",
          PROBLEM_INVALID },
        { "{\"name\":\"n\",\"job\":{},\"calendar\":\"0 3 30 2 *\"}", "/calendar",
          "there is no such day", PROBLEM_INVALID },
        { "{\"name\":\"n\",\"job\":{},\"every\":\"1d\",\"evry\":1}", "/evry",
          "a schedule has no member", PROBLEM_UNKNOWN_MEMBER },
        { "{\"name\":\"\",\"job\":{},\"every\":\"1d\"}", "/name", "", PROBLEM_INVALID },
        { "{\"name\":\"n\",\"every\":\"1d\"}", "/job", "", PROBLEM_INVALID },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct schedule s;
        struct problems problems;

        assert_int_equal(read(cases[i].body, &s, &problems), ERR_INVALID);
        if (problems.items[0].kind != cases[i].kind ||
            strcmp(problems.items[0].pointer, cases[i].pointer) != 0 ||
            !strstr(problems.items[0].detail, cases[i].detail)) {
            fail_msg("%s: %s: %s", cases[i].body, problems.items[0].pointer,
                     problems.items[0].detail);
        }
        problems_release(&problems);
    }
}

/* It says whose it is where the request does not, and how much it matters. */
static void test_what_its_jobs_are(void **state)
{
    json_t *plain = json_pack("{s:i}", "runs", 3);
    json_t *full = json_pack("{s:s,s:s}", "priority", "urgent", "note", "mine");
    json_t *of_plain = schedule_request_job(plain, "nightly");
    json_t *of_full = schedule_request_job(full, "nightly");

    (void)state;
    assert_string_equal(json_string_value(json_object_get(of_plain, "priority")),
                        "scheduled");
    assert_string_equal(json_string_value(json_object_get(of_plain, "note")),
                        "schedule nightly");
    assert_int_equal(json_integer_value(json_object_get(of_plain, "runs")), 3);
    assert_int_equal(json_object_size(plain), 1);
    assert_true(json_equal(of_full, full));
    json_decref(of_full);
    json_decref(of_plain);
    json_decref(full);
    json_decref(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_period),
        cmocka_unit_test(test_a_calendar),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_what_its_jobs_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
