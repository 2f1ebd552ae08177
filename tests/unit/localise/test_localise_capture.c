/* What a localisation captures at the place that it has found, keeps and concludes. */
#include "tests/unit/jobs/options_fixture.h"
#include "tests/unit/localise/localise_fixture.h"

#include <jansson.h>

/* Starts a job, finishes runs 1 to RUNS_MIN, of which the second parts at "op", and
 * looks. */
static void find_place(struct fixture *f, struct looking *l)
{
    *l = (struct looking){ .look.next = LOOK_AGAIN };
    insert_job(f);
    for (int n = 1; n <= RUNS_MIN; n++) {
        finish_run(f, n, LOCALISATION_SEARCH, 5, n == 2);
    }
    assert_int_equal(look(f, l)->next, LOOK_CAPTURE);
}

/* And has the place captured by the runs that follow. */
static void find_and_capture(struct fixture *f, struct looking *l)
{
    find_place(f, l);
    fixture_write(f, capture, &l->look);
    look_state_release(&l->state);
}

static void test_runs_that_part_are_shown(void **state)
{
    struct fixture *f = *state;
    struct looking l;
    struct stored s;
    json_t *difference;

    find_and_capture(f, &l);
    assert_int_equal(look(f, &l)->next, LOOK_GO_ON);
    assert_int_equal(l.look.item, LOCALISATION_CAPTURE);
    finish_run(f, 4, 1, 5, 1);
    finish_run(f, 5, 1, 6, 2); /* other inputs */
    finish_run(f, 6, 1, 5, 1);
    assert_int_equal(look(f, &l)->next, LOOK_GO_ON);
    s = stored(f);
    assert_int_equal(s.tensors, 6);
    assert_int_equal(s.blobs, 2);
    stored_release(&s);
    check_database(f);
    finish_run(f, 7, 1, 5, 3);
    assert_int_equal(look(f, &l)->next, LOOK_CONCLUDE);
    assert_int_equal(l.look.state, LOCALISATION_LOCALISED);
    difference = json_loads(l.look.difference, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(difference, "runs_captured")), 4);
    json_decref(difference);
    assert_non_null(strstr(l.look.difference, "\"elements\":4,\"differ\":1,\"first\":3"));
    end(&l);
}

/* Those of the two runs that are shown. */
static void test_a_conclusion_keeps_two_runs_tensors(void **state)
{
    struct fixture *f = *state;
    struct looking l;
    struct stored s;

    find_and_capture(f, &l);
    for (int n = 4; n <= 7; n++) {
        finish_run(f, n, 1, 5, n == 7 ? 3 : 1);
    }
    assert_int_equal(look(f, &l)->next, LOOK_CONCLUDE);
    fixture_write(f, conclude, &l.look);
    s = stored(f);
    assert_int_equal(s.job.state, JOB_FINISHED);
    assert_int_equal(s.job.runs_total, 7);
    assert_int_equal(s.job.runs_done, 7);
    assert_int_equal(s.tensors, 4);
    assert_int_equal(s.localisation.state, LOCALISATION_LOCALISED);
    assert_non_null(s.localisation.search);
    assert_int_equal(s.localisation.ended_ms, 99500);
    assert_non_null(strstr(s.job.localisation, "\"place\":\"op\""));
    stored_release(&s);
    check_database(f);
    end(&l);
}

/* The place is known, and the captured runs happen to agree there. */
static void test_captured_runs_agree(void **state)
{
    struct fixture *f = *state;
    struct looking l;

    find_and_capture(f, &l);
    for (int n = RUNS_MIN + 1; n <= RUNS_MIN + RUNS_MAX; n++) {
        finish_run(f, n, 1, 5, 1);
    }
    assert_int_equal(look(f, &l)->next, LOOK_CONCLUDE);
    assert_int_equal(l.look.state, LOCALISATION_LOCALISED);
    assert_null(l.look.difference);
    assert_non_null(
        strstr(l.look.reason, "none of 6 runs that captured it parted there"));
    end(&l);
}

/* A program that writes records in addition to the one that is captured: they decide
 * nothing. */
static void test_only_the_captured_record_counts(void **state)
{
    struct fixture *f = *state;
    struct looking l;

    find_and_capture(f, &l);
    for (int n = 4; n <= 6; n++) {
        struct digest in = { 1, 5 }, other = { 3, (uint64_t)n };
        struct trace trace;

        trace_init(&trace);
        trace_add(&trace, 0, 7, "before", in, other);
        trace_add(&trace, 0, 6, "op", in, other);
        trace_add(&trace, 1, 7, "op", in, other);
        trace_add(&trace, 0, 7, "op", in, (struct digest){ 2, n == 6 });
        store_run(f, fixture_whole_run, n, 1, &trace, n == 6);
        trace_release(&trace);
        assert_int_equal(look(f, &l)->next, n < 6 ? LOOK_GO_ON : LOOK_CONCLUDE);
    }
    assert_non_null(l.look.difference);
    end(&l);
}

/* Run N of ITEM: a momentum that was EARLIER at step 6 and becomes OUT at step 7, while
 * the gradient that it says to read is the same. */
static void finish_momentum(struct fixture *f, int n, int item, uint64_t earlier,
                            uint64_t out)
{
    struct digest gradient = { 1, 1 };
    struct trace trace;

    trace_init(&trace);
    trace_add(&trace, 0, 6, "optimizer/w", (struct digest){ 1, earlier },
              (struct digest){ 2, earlier });
    trace_add(&trace, 0, 7, "optimizer/w", gradient, (struct digest){ 2, out });
    store_run(f, fixture_whole_run, n, item, &trace, out);
    trace_release(&trace);
}

/* What a place reads in addition to what it says counts among captured runs as among
 * those that searched: of two whose momentum differed before, neither shows where it
 * comes in. */
static void test_captured_runs_read_what_was_before(void **state)
{
    struct fixture *f = *state;
    struct looking l = { .look.next = LOOK_AGAIN };
    char a[ID_SIZE], b[ID_SIZE];

    insert_job(f);
    for (int n = 1; n <= RUNS_MIN; n++) {
        finish_momentum(f, n, 0, 1, n == 2);
    }
    assert_int_equal(look(f, &l)->next, LOOK_CAPTURE);
    check_options(&l.look.options, "{\"capture\":\"0:7:optimizer/w\",\"probes\":1}");
    fixture_write(f, capture, &l.look);
    look_state_release(&l.state);
    finish_momentum(f, 4, 1, 1, 1);
    finish_momentum(f, 5, 1, 2, 7); /* it was another before */
    assert_int_equal(look(f, &l)->next, LOOK_GO_ON);
    finish_momentum(f, 6, 1, 2, 8);
    assert_int_equal(look(f, &l)->next, LOOK_CONCLUDE);
    assert_non_null(l.look.difference);
    fixture_id('R', 5, a);
    fixture_id('R', 6, b);
    assert_string_equal(l.look.runs[0], a);
    assert_string_equal(l.look.runs[1], b);
    end(&l);
}

static enum err_code cancel(struct tx *tx, void *arg, struct err *err)
{
    char id[ID_SIZE];

    (void)arg;
    fixture_id('J', 1, id);
    return jobs_cancel(tx, id, 50000, err);
}

/* A decision that comes after the job was cancelled changes nothing. */
static void test_cancelled_meanwhile(void **state)
{
    struct fixture *f = *state;
    struct looking l;
    struct err err;
    struct stored s;

    find_place(f, &l);
    fixture_write(f, cancel, NULL);
    assert_int_equal(store_write_sync(f->store, capture, &l.look, &err), ERR_CONFLICT);
    assert_int_equal(store_write_sync(f->store, conclude, &l.look, &err), ERR_CONFLICT);
    s = stored(f);
    assert_int_equal(s.localisation.state, LOCALISATION_SEARCHING);
    assert_non_null(strstr(s.job.localisation, "\"cancelled\""));
    stored_release(&s);
    check_database(f);
    end(&l);
}

/* What a cancelled job captured shows nothing to anybody, and takes no room. */
static void test_cancelled_while_capturing(void **state)
{
    struct fixture *f = *state;
    struct looking l;
    struct fixture_run begun = { .n = 5, .job = 1, .item = 1 };
    struct stored s;

    find_and_capture(f, &l);
    finish_run(f, 4, 1, 5, 1);
    fixture_write(f, fixture_begin, &begun);
    s = stored(f);
    assert_int_equal(s.tensors, 2);
    stored_release(&s);
    fixture_write(f, cancel, NULL);
    store_run(f, fixture_finish, 5, 1, NULL, 2); /* it completed before it was told */
    s = stored(f);
    assert_int_equal(s.tensors, 0);
    assert_int_equal(s.blobs, 0);
    stored_release(&s);
    check_database(f);
    end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_runs_that_part_are_shown),
        STORE_TEST(test_a_conclusion_keeps_two_runs_tensors),
        STORE_TEST(test_captured_runs_agree),
        STORE_TEST(test_only_the_captured_record_counts),
        STORE_TEST(test_captured_runs_read_what_was_before),
        STORE_TEST(test_cancelled_meanwhile),
        STORE_TEST(test_cancelled_while_capturing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
