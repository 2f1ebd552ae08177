/* Iterations that an agent tells in one event are judged as if they came one by one. */
#include "tests/unit/run/run_judge_fixture.h"

#include "daemon/agent/iterations.h"
#include "daemon/base/array.h"
#include "daemon/process/wire.h"

static json_t *several(const char *ms)
{
    json_t *event = parse_json(iteration_text);

    json_object_set_new(event, "event", json_string("iterations"));
    json_object_set_new(event, "ms", json_loads(ms, JSON_DECODE_ANY, NULL));
    return event;
}

/* The run of start, EVENT and end. */
static struct run_record judged(struct run_judge *judge, json_t *event,
                                struct run_result *ret_result)
{
    json_t *start = parse_json(start_text), *end = parse_json(end_text);
    struct run_record run;

    judge_init(judge);
    run_judge_event(judge, start);
    run_judge_iterations(judge, event);
    run_judge_event(judge, end);
    run_judge_finish(judge, &good_exit, &run, ret_result);
    json_decref(start);
    json_decref(event);
    json_decref(end);
    return run;
}

static void test_three_in_one_event(void **state)
{
    struct run_judge judge;
    struct run_result result;
    struct run_record run = judged(&judge, several("[10.5,7,0.123456789]"), &result);

    (void)state;
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_int_equal(run.iterations, 3);
    assert_string_equal(run.digest, DIGEST_A);
    assert_string_equal(run.weight_sum, "c0234c2400000000");
    assert_int_equal(result.digests[0].iterations, 3);
    assert_int_equal(run.min_ns, 123457); /* without the first */
    assert_int_equal(run.max_ns, 7000000);
    run_judge_release(&judge);
}

static void test_wrong_ones(void **state)
{
    static const struct {
        const char *member, *value, *cause;
    } cases[] = {
        { "ms", "[1,1,1,1]", "more iterations than the 3 that were asked for" },
        { "ms", "[1,1]", "2 of 3 iterations" },
        { "ms", "[]", "iteration 0: ms must be an array of 1 to 256" },
        { "ms", "1.5", "iteration 0: ms must be an array" },
        { "ms", "[1,-1,1]", "iteration 0: ms/1 must be a number from 0 to 604800000" },
        { "ms", "[1,1,null]", "iteration 0: ms/2 must be a number" },
        { "i", "1", "iteration 1 came where 0 was due" },
        { "i", "-1", "iteration 0: i must be a whole number from 0" },
        { "i", "2147483648", "iteration 0: i must be a whole number from 0" },
        { "digest", "\"00000000000000000000000000000000\"",
          "iteration 0 has a digest of zeros" },
        { "digest", "\"aa\"", "iteration 0: digest must be 32 hex digits" },
        { "weight_sum", "\"7ff8000000000000\"", "iteration 0: weight_sum is NaN" },
        { "loss", "\"7ff0000000000000\"", "iteration 0: loss is infinite" },
        { "loss", "7", "iteration 0: loss must be 16 hex digits" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *event = several("[1,1,1]");
        struct run_judge judge;
        struct run_result result;
        struct run_record run;

        json_object_set_new(event, cases[i].member,
                            json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
        run = judged(&judge, event, &result);
        if (run.outcome != OUTCOME_INVALID || !strstr(run.cause, cases[i].cause)) {
            fail_msg("%s: '%s'", cases[i].cause, run.cause);
        }
        run_judge_release(&judge);
    }
}

/* One and the same, but for the form in which iterations come: A gets each event as its
 * worker wrote it, B what an agent makes of them. */
struct pair {
    struct run_judge a, b;
    struct iterations held;
};

static json_t *over_the_wire(const json_t *event)
{
    char *text = json_dumps(event, JSON_COMPACT);
    struct err err;
    json_t *read = wire_parse(text, strlen(text), &err);

    assert_non_null(read);
    free(text);
    return read;
}

static void tell_event(struct run_judge *judge, const json_t *event)
{
    json_t *read = over_the_wire(event);

    run_judge_event(judge, read);
    json_decref(read);
}

static void tell_held(struct pair *pair)
{
    json_t *event = iterations_take(&pair->held, "R");
    json_t *read = event ? over_the_wire(event) : NULL;
    json_t *data = json_object_get(read, "data");

    if (data) {
        run_judge_event(&pair->b, data);
    } else if (read) {
        run_judge_iterations(&pair->b, read);
    }
    json_decref(read);
    json_decref(event);
}

/* Takes EVENT over; NULL: garbage. */
static void tell(struct pair *pair, json_t *event)
{
    if (!event) {
        run_judge_garbage(&pair->a, "not JSON");
        tell_held(pair);
        run_judge_garbage(&pair->b, "not JSON");
        return;
    }
    tell_event(&pair->a, event);
    if (iterations_hold(&pair->held, event)) {
        return;
    }
    tell_held(pair);
    if (!iterations_hold(&pair->held, event)) {
        tell_event(&pair->b, event);
        json_decref(event);
    }
}

static uint64_t random_state = 0x9e3779b97f4a7c15u;

/* xorshift64* (Vigna 2016). */
static unsigned random_below(unsigned bound)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (unsigned)((random_state * 0x2545f4914f6cdd1du) >> 33) % bound;
}

/* Mostly in order and alike; sometimes anything. */
static json_t *some_iteration(int *next)
{
    static const struct {
        const char *member, *value;
    } odd[] = {
        { "digest", "\"" DIGEST_B "\"" },
        { "digest", "\"00000000000000000000000000000000\"" },
        { "digest", "\"xyz\"" },
        { "digest", "5" },
        { "weight_sum", "\"4000000000000000\"" },
        { "weight_sum", "\"7ff8000000000000\"" },
        { "loss", "\"3ff0000000000000\"" },
        { "loss", "\"fff0000000000000\"" },
        { "algorithm", "\"atomics\"" },
        { "algorithm", "null" },
        { "ms", "-1" },
        { "ms", "604800001" },
        { "ms", "null" },
        { "ms", "[1,2]" },
        { "i", "0" },
        { "i", "2" },
        { "i", "9223372036854775807" },
        { "new", "true" },
        { "event", "\"iterations\"" },
        { "event", "7" },
    };
    static const char *const ms[] = { "12.345", "3", "0.1", "1e-7",
                                      "123456.78901234567" };
    json_t *event = parse_json(iteration_text);

    json_object_set_new(event, "i", json_integer((*next)++));
    json_object_set_new(
        event, "ms", json_loads(ms[random_below(COUNT_OF(ms))], JSON_DECODE_ANY, NULL));
    if (random_below(8) == 0) {
        unsigned which = random_below(COUNT_OF(odd));

        json_object_set_new(event, odd[which].member,
                            json_loads(odd[which].value, JSON_DECODE_ANY, NULL));
    }
    return event;
}

static json_t *some_event(int *next)
{
    switch (random_below(24)) {
    case 0:
        return NULL;
    case 1:
        return parse_json("{\"event\":\"weather\"}");
    case 2:
        return parse_json(probe_text);
    case 3:
        return parse_json(end_text);
    case 4:
        return parse_json("{\"event\":\"check\",\"result\":\"known\"}");
    default:
        return some_iteration(next);
    }
}

static void assert_alike(const struct run_record *a, const struct run_record *b)
{
    assert_int_equal(a->outcome, b->outcome);
    assert_string_equal(a->cause, b->cause);
    assert_int_equal(a->iterations, b->iterations);
    assert_int_equal(a->distinct_digests, b->distinct_digests);
    assert_string_equal(a->digest, b->digest);
    assert_string_equal(a->weight_sum, b->weight_sum);
    assert_string_equal(a->loss, b->loss);
    assert_string_equal(a->algorithm, b->algorithm);
    assert_true(a->min_ns == b->min_ns && a->max_ns == b->max_ns);
    assert_int_equal(a->median_ns, b->median_ns);
    assert_int_equal(a->check.state, b->check.state);
}

static void assert_iterations_alike(const struct pair *pair)
{
    assert_int_equal(pair->a.seen, pair->b.seen);
    for (int64_t i = 0; i < pair->a.seen; i++) {
        const struct run_judge_iteration *a = &pair->a.iterations[i];
        const struct run_judge_iteration *b = &pair->b.iterations[i];

        assert_int_equal(a->index, b->index);
        assert_int_equal(a->ns, b->ns);
        assert_string_equal(a->digest, b->digest);
        assert_string_equal(a->weight_sum, b->weight_sum);
        assert_string_equal(a->loss, b->loss);
    }
}

/* Ends both runs.  Returns whether they completed. */
static bool finish(struct pair *pair)
{
    struct run_record a, b;
    struct run_result result_a, result_b;

    tell_held(pair);
    assert_string_equal(pair->a.deviation, pair->b.deviation);
    assert_iterations_alike(pair);
    run_judge_finish(&pair->a, &good_exit, &a, &result_a);
    run_judge_finish(&pair->b, &good_exit, &b, &result_b);
    assert_alike(&a, &b);
    assert_int_equal(result_a.digest_count, result_b.digest_count);
    for (int i = 0; i < result_a.digest_count; i++) {
        assert_string_equal(result_a.digests[i].digest, result_b.digests[i].digest);
        assert_int_equal(result_a.digests[i].iterations, result_b.digests[i].iterations);
    }
    run_judge_release(&pair->a);
    run_judge_release(&pair->b);
    return a.outcome == OUTCOME_COMPLETED;
}

static void test_nothing_depends_on_the_form(void **state)
{
    int completed = 0;

    (void)state;
    for (int round = 0; round < 4000; round++) {
        struct pair pair = { .held = { NULL, NULL } };
        int next = 0;

        judge_init(&pair.a);
        judge_init(&pair.b);
        if (random_below(20)) {
            tell(&pair, parse_json(start_text));
        }
        for (unsigned left = random_below(6); left > 0 || next<3; left -= left> 0) {
            tell(&pair, some_event(&next));
        }
        tell(&pair, parse_json(end_text));
        if (random_below(10) == 0) {
            tell(&pair, some_event(&next));
        }
        completed += finish(&pair);
    }
    assert_true(completed > 200);
}

/* No line costs the service more than its length. */
static void test_no_more_than_an_agent_holds(void **state)
{
    (void)state;
    for (int count = 256; count <= 257; count++) {
        json_t *event = several("[1]"), *ms = json_object_get(event, "ms");
        struct run_judge judge;
        struct run_result result;
        struct run_record run;

        while ((int)json_array_size(ms) < count) {
            json_array_append_new(ms, json_integer(1));
        }
        run = judged(&judge, event, &result);
        assert_string_equal(
            run.cause, count == 256 ? "more iterations than the 3 that were asked for"
                                    : "iteration 0: ms must be an array of 1 to 256");
        run_judge_release(&judge);
    }
}

/* The agent cannot know where the run begins and ends for its judge. */
static void test_out_of_place(void **state)
{
    json_t *event = several("[1,1,1]"), *end = parse_json(end_text);
    struct run_judge judge;

    (void)state;
    judge_init(&judge);
    run_judge_iterations(&judge, event);
    assert_string_equal(judge.deviation, "iteration before start");
    run_judge_release(&judge);
    judge_init(&judge);
    judge.started = true;
    run_judge_event(&judge, end);
    judge.deviation[0] = '\0';
    run_judge_iterations(&judge, event);
    assert_string_equal(judge.deviation, "an event after end: 'iteration'");
    assert_int_equal(judge.seen, 0);
    run_judge_release(&judge);
    json_decref(event);
    json_decref(end);
}

/* Only an agent is understood so: a worker that says it says nothing. */
static void test_a_worker_that_says_several(void **state)
{
    json_t *order[] = { parse_json(start_text), several("[1,1,1]"),
                        parse_json(end_text) };
    struct run_judge judge;
    struct run_result result;
    struct run_record run;

    (void)state;
    judge_init(&judge);
    run = judge_finish(&judge, order, COUNT_OF(order), &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_INVALID);
    assert_string_equal(run.cause, "0 of 3 iterations");
    run_judge_release(&judge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_in_one_event),
        cmocka_unit_test(test_wrong_ones),
        cmocka_unit_test(test_nothing_depends_on_the_form),
        cmocka_unit_test(test_no_more_than_an_agent_holds),
        cmocka_unit_test(test_out_of_place),
        cmocka_unit_test(test_a_worker_that_says_several),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
