/* Two stored runs side by side: what they were asked to record decides what their traces
 * prove. */
#include "tests/unit/db/store_fixture.h"

#include "api/compare.h"
#include "daemon/trace/trace.h"

/* Run N, of an item of its own that was asked for OPTIONS, whose trace has one record. */
static void add_run(struct fixture *f, int n, const char *options, const char *place)
{
    struct job_item item = fixture_item("unordered", "cpu:a", 1);
    struct fixture_job j = fixture_job(n, &item, 1);
    struct fixture_run r = { .n = n, .job = n, .environment = 1 };
    struct trace trace;

    run_options_read(options, &item.options);
    fixture_write(f, fixture_insert_job, &j);
    trace_init(&trace);
    trace_add(&trace, 0, 7, place, (struct digest){ 1, 5 }, (struct digest){ 2, 6 });
    r.outcome = OUTCOME_COMPLETED;
    r.trace = &trace;
    fixture_write(f, fixture_whole_run, &r);
    trace_release(&trace);
}

static enum err_code compare(struct tx *tx, void *arg, struct err *err)
{
    char a[ID_SIZE], b[ID_SIZE];

    fixture_id('R', 1, a);
    fixture_id('R', 2, b);
    return compare_load(tx, a, b, arg, err);
}

static void check(struct fixture *f, enum comparison_verdict verdict, const char *reason)
{
    struct compare c;

    fixture_read(f, compare, &c);
    assert_int_equal(c.verdict, verdict);
    assert_non_null(strstr(c.reason, reason));
    compare_release(&c);
}

static void test_the_same_place_captured(void **state)
{
    add_run(*state, 1, "{\"capture\":\"0:7:op\"}", "op");
    add_run(*state, 2, "{\"capture\":\"0:7:op\"}", "op");
    check(*state, COMPARISON_EQUAL, "all 1 records");
}

static void test_other_places_captured(void **state)
{
    add_run(*state, 1, "{\"capture\":\"0:7:op\"}", "op");
    add_run(*state, 2, "{\"capture\":\"0:7:loss\"}", "loss");
    check(*state, COMPARISON_NOT_COMPARABLE, "they were probed differently");
}

static void test_other_places_where_the_same_was_asked_for(void **state)
{
    add_run(*state, 1, "{\"contention\":2,\"probes\":1}", "op");
    add_run(*state, 2, "{\"probes\":1}", "loss");
    check(*state, COMPARISON_DIFFERENT, "A has op where B has loss");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_the_same_place_captured),
        STORE_TEST(test_other_places_captured),
        STORE_TEST(test_other_places_where_the_same_was_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
