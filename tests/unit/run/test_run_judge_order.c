/* A run is completed by its events in order, all of them, and by nothing else. */
#include "tests/unit/jobs/options_fixture.h"
#include "tests/unit/run/run_judge_fixture.h"

/* The events of a good run, as indices; 'p' a probe, 'P' a batch of them, 't' and 's' the
 * pieces of a tensor, 'B' and 'T' malformed ones, 'u' one of unknown type, 'U' unknown
 * without its type. */
struct order {
    const char *events;
    enum outcome outcome;
    const char *cause;
};

/* Of six bytes. */
static json_t *tensor_piece(int offset, const char *data)
{
    return json_pack("{s:s,s:i,s:i,s:s,s:s,s:i,s:s,s:s,s:[i],s:i,s:i,s:i,s:s}", "event",
                     "tensor", "i", 0, "step", 3, "place", "conv1/dw", "role", "out",
                     "index", 0, "name", "y", "dtype", "uint8", "shape", 6, "bytes_total",
                     6, "captured_bytes", 6, "offset", offset, "data", data);
}

/* What LETTER of struct order stands for; caller frees with json_decref. */
static json_t *event_of(char letter, json_t *const events[EVENTS])
{
    switch (letter) {
    case 'p':
        return parse_json(probe_text);
    case 'P':
        return parse_json(probes_text);
    case 'B':
        return parse_json("{\"event\":\"probes\",\"i\":0}");
    case 'b':
        return parse_json("{\"event\":\"probe\",\"step\":0}");
    case 'T':
        return parse_json("{\"event\":\"tensor\",\"i\":0}");
    case 't':
        return tensor_piece(0, "AQID");
    case 's':
        return tensor_piece(3, "BAUG");
    case 'u':
        return parse_json("{\"event\":\"weather\"}");
    case 'U':
        return parse_json("{\"weather\":\"fine\"}");
    default:
        return json_incref(events[letter - '0']);
    }
}

static void test_orders(void **state)
{
    static const struct order orders[] = {
        { "01234", OUTCOME_COMPLETED, "" },
        { "0p1p2p3p4", OUTCOME_COMPLETED, "" },
        { "0PpP1P2P34", OUTCOME_COMPLETED, "" },
        { "0B1234", OUTCOME_INVALID, "probes: " },
        { "0b1234", OUTCOME_INVALID, "probe: " },
        { "0T1234", OUTCOME_INVALID, "tensor: " },
        { "0ts1234", OUTCOME_COMPLETED, "" },
        { "0t1234", OUTCOME_INVALID, "tensor: tensor 0 of 1 ended early" },
        { "0st1234", OUTCOME_INVALID, "tensor: not the next piece" },
        { "0tsts1234", OUTCOME_INVALID, "tensor: not the next piece" },
        { "P01234", OUTCOME_INVALID, "probes before start" },
        { "u01u234", OUTCOME_COMPLETED, "" },
        { "", OUTCOME_CRASHED, "without an end event" },
        { "0", OUTCOME_CRASHED, "without an end event" },
        { "0123", OUTCOME_CRASHED, "without an end event" },
        { "1234", OUTCOME_INVALID, "iteration before start" },
        { "4", OUTCOME_INVALID, "end before start" },
        { "p01234", OUTCOME_INVALID, "probe before start" },
        { "10234", OUTCOME_INVALID, "iteration before start" },
        { "001234", OUTCOME_INVALID, "a second start" },
        { "04", OUTCOME_INVALID, "0 of 3 iterations" },
        { "0124", OUTCOME_INVALID, "2 of 3 iterations" },
        { "02134", OUTCOME_INVALID, "iteration 1 came where 0" },
        { "011234", OUTCOME_INVALID, "iteration 0 came where 1" },
        { "012334", OUTCOME_INVALID, "more iterations than the 3" },
        { "012344", OUTCOME_INVALID, "an event after end" },
        { "01243", OUTCOME_INVALID, "2 of 3 iterations" },
        { "01234p", OUTCOME_INVALID, "an event after end" },
        { "01234u", OUTCOME_INVALID, "an event after end" },
        { "012340", OUTCOME_INVALID, "an event after end" },
        { "0U1234", OUTCOME_INVALID, "a line without an event" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        json_t *events[EVENTS], *order[32];
        int count = (int)strlen(orders[i].events);
        struct run_judge judge;
        struct run_result result;
        struct run_record run;

        judge_init(&judge);
        good_events(events);
        for (int k = 0; k < count; k++) {
            order[k] = event_of(orders[i].events[k], events);
        }
        run = judge_finish(&judge, order, count, &good_exit, &result);
        assert_int_equal(result.tensor_count, strchr(orders[i].events, 't') != NULL);
        if (run.outcome != orders[i].outcome || !strstr(run.cause, orders[i].cause)) {
            fail_msg("%s: %s, '%s'", orders[i].events, outcome_name(run.outcome),
                     run.cause);
        }
        run_judge_release(&judge);
        for (int k = 0; k < EVENTS; k++) {
            json_decref(events[k]);
        }
    }
}

/* Another moment or place than the one that was asked for proves nothing of that. */
static void test_tensors_are_those_that_were_asked_for(void **state)
{
    static const struct {
        const char *options;
        enum outcome outcome;
    } cases[] = {
        { "{\"capture\":\"0:3:conv1/dw\"}", OUTCOME_COMPLETED },
        { "{\"capture\":\"0:4:conv1/dw\"}", OUTCOME_INVALID },
        { "{\"capture\":\"1:3:conv1/dw\"}", OUTCOME_INVALID },
        { "{\"capture\":\"0:3:conv1\"}", OUTCOME_INVALID },
        { "{\"probes\":1}", OUTCOME_COMPLETED },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *events[EVENTS + 2];
        struct run_options options;
        struct run_judge judge;
        struct run_result result;
        struct run_record run;

        judge_init(&judge);
        options = options_of(cases[i].options);
        run_judge_options(&judge, &options);
        good_events(events + 2);
        events[0] = events[2];
        events[1] = tensor_piece(0, "AQID");
        events[2] = tensor_piece(3, "BAUG");
        run = judge_finish(&judge, events, EVENTS + 2, &good_exit, &result);
        assert_int_equal(run.outcome, cases[i].outcome);
        if (run.outcome == OUTCOME_INVALID) {
            assert_non_null(
                strstr(run.cause, "tensor: what is captured is '0:3:conv1/dw'"));
        }
        run_judge_release(&judge);
    }
}

/* What was seen until a run failed is kept. */
static void test_trace_of_a_run_that_fails(void **state)
{
    json_t *order[] = { parse_json(start_text), parse_json(probe_text),
                        parse_json(probe_text) };
    struct run_judge judge;
    struct run_result result;
    struct run_record run;

    (void)state;
    judge_init(&judge);
    json_object_set_new(order[2], "i", json_integer(3)); /* of 0, 1 and 2 */
    run = judge_finish(&judge, order, 3, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_INVALID);
    assert_non_null(strstr(run.cause, "a probe in iteration 3 of 3"));
    assert_int_equal(result.trace->count, 1);
    run_judge_release(&judge);
    judge_init(&judge);
    order[0] = parse_json(start_text);
    judge_finish(&judge, order, 1, &good_exit, &result);
    assert_null(result.trace);
    run_judge_release(&judge);
}

static void test_garbage_anywhere_is_invalid(void **state)
{
    (void)state;
    for (int at = 0; at <= EVENTS; at++) {
        json_t *events[EVENTS];
        struct run_judge judge;
        struct run_result result;
        struct run_record run;

        judge_init(&judge);
        good_events(events);
        for (int i = 0; i <= EVENTS; i++) {
            if (i == at) {
                run_judge_garbage(&judge, "line 3: not JSON");
            }
            if (i < EVENTS) {
                run_judge_event(&judge, events[i]);
                json_decref(events[i]);
            }
        }
        run_judge_finish(&judge, &good_exit, &run, &result);
        assert_int_equal(run.outcome, OUTCOME_INVALID);
        assert_string_equal(run.cause, "line 3: not JSON");
        run_judge_release(&judge);
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

/* Any sequence of good events, shuffled, repeated, dropped, mixed with unknown ones: it
 * completes if and only if it is the good one, unknown events before the end aside. */
static void test_disorder_never_completes(void **state)
{
    int completed = 0;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        json_t *events[EVENTS], *order[16];
        int count = 0, next = 0;
        bool good = true;
        struct run_judge judge;
        struct run_result result;
        struct run_record run;

        judge_init(&judge);
        good_events(events);
        while (count < 16 && random_below(9)) {
            unsigned pick = random_below(3) ? (unsigned)next : random_below(EVENTS + 1);

            if (pick < EVENTS) {
                good = good && pick == (unsigned)next;
                next = (int)pick + 1;
                order[count++] = json_incref(events[pick]);
            } else {
                good = good && next != EVENTS; /* nothing may follow end */
                order[count++] = parse_json("{\"event\":\"weather\"}");
            }
        }
        good = good && next == EVENTS;
        run = judge_finish(&judge, order, count, &good_exit, &result);
        assert_int_equal(run.outcome == OUTCOME_COMPLETED, good);
        completed += good;
        run_judge_release(&judge);
        for (int k = 0; k < EVENTS; k++) {
            json_decref(events[k]);
        }
    }
    assert_true(completed > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_tensors_are_those_that_were_asked_for),
        cmocka_unit_test(test_trace_of_a_run_that_fails),
        cmocka_unit_test(test_garbage_anywhere_is_invalid),
        cmocka_unit_test(test_disorder_never_completes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
