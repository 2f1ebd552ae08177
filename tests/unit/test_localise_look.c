/* What a localisation concludes from stored runs, look by look, and what is stored of it.
 */
#include "tests/unit/store_fixture.h"

#include <jansson.h>

#include "daemon/localise_look.h"
#include "db/fsck.h"
#include "db/runs_tensor.h"
#include "db/tx.h"

enum { RUNS_MIN = 3, RUNS_MAX = 6 };

static void insert_job(struct fixture *f)
{
    struct job_item items[] = { fixture_item("unordered", "cpu:a", RUNS_MAX),
                                fixture_item("unordered", "cpu:a", RUNS_MAX) };
    struct fixture_job j = fixture_job(1, items, 2);

    snprintf(items[0].options, sizeof items[0].options, "{\"probes\":1}");
    items[1].seq = 1;
    j.job.localise_runs = RUNS_MIN;
    fixture_write(f, fixture_insert_job, &j);
}

/* Run N of ITEM with TRACE, and tensors that hold OUT; HOW: all of it, or its end. */
static void store_run(struct fixture *f, store_fn how, int n, int item,
                      const struct trace *trace, uint64_t out)
{
    float data[4] = { 1, 2, 3, (float)out };
    char shape[] = "[4]";
    struct run_tensor tensors[] = {
        { .is_out = false, .name = "x", .dtype = "float32", .total = 16, .bytes = 16 },
        { .is_out = true, .name = "y", .dtype = "float32", .total = 16, .bytes = 16 },
    };
    struct fixture_run r = { .n = n, .job = 1, .item = item, .environment = 1 };

    tensors[0].shape = tensors[1].shape = shape;
    tensors[0].data = tensors[1].data = data;
    r.outcome = OUTCOME_COMPLETED;
    r.trace = trace;
    r.tensors = tensors;
    r.tensor_count = 2;
    fixture_write(f, how, &r);
}

/* Run N of ITEM, whose place "op" at step 7 reads IN and writes OUT. */
static void finish_run(struct fixture *f, int n, int item, uint64_t in, uint64_t out)
{
    struct trace trace;

    trace_init(&trace);
    if (item == LOCALISATION_SEARCH) {
        trace_add(&trace, 0, 6, "loss", (struct digest){ 0, 0 }, (struct digest){ 0, 1 });
    }
    trace_add(&trace, 0, 7, "op", (struct digest){ 1, in }, (struct digest){ 2, out });
    store_run(f, fixture_whole_run, n, item, &trace, out);
    trace_release(&trace);
}

static void fail_run(struct fixture *f, int n)
{
    struct fixture_run r = { .n = n, .job = 1, .outcome = OUTCOME_CRASHED };

    fixture_write(f, fixture_whole_run, &r);
}

struct looking {
    struct look_state state;
    struct look look;
};

static enum err_code read_look(struct tx *tx, void *arg, struct err *err)
{
    struct looking *l = arg;
    char id[ID_SIZE];

    fixture_id('J', 1, id);
    return look_at(tx, id, &l->state, &l->look, err);
}

/* Looks, and again with nothing remembered, as after a restart: both must agree. */
static struct look *look(struct fixture *f, struct looking *l)
{
    struct looking fresh = { .look.next = LOOK_AGAIN };

    look_release(&l->look);
    fixture_read(f, read_look, l);
    fixture_read(f, read_look, &fresh);
    assert_int_equal(l->look.next, fresh.look.next);
    assert_string_equal(l->look.reason, fresh.look.reason);
    if (l->look.search) {
        assert_string_equal(l->look.search, fresh.look.search);
    }
    look_release(&fresh.look);
    look_state_release(&fresh.state);
    return &l->look;
}

static void end(struct looking *l)
{
    look_release(&l->look);
    look_state_release(&l->state);
}

static enum err_code capture(struct tx *tx, void *arg, struct err *err)
{
    const struct look *l = arg;
    char id[ID_SIZE];
    struct localisations_found found = { .job = id,
                                         .reason = l->reason,
                                         .search = l->search,
                                         .options = l->options,
                                         .now_ms = 99000 };

    fixture_id('J', 1, id);
    return localisations_capture(tx, &found, err);
}

static enum err_code conclude(struct tx *tx, void *arg, struct err *err)
{
    const struct look *l = arg;
    char id[ID_SIZE];
    struct localisations_end e = { .job = id,
                                   .state = l->state,
                                   .reason = l->reason,
                                   .search = l->search,
                                   .difference = l->difference,
                                   .runs = { l->runs[0], l->runs[1] },
                                   .now_ms = 99500 };

    fixture_id('J', 1, id);
    return localisations_conclude(tx, &e, err);
}

struct stored {
    struct job job;
    struct localisation localisation;
    int64_t blobs, tensors;
};

static enum err_code read_stored(struct tx *tx, void *arg, struct err *err)
{
    struct stored *s = arg;
    struct query q;
    char id[ID_SIZE];

    fixture_id('J', 1, id);
    if (jobs_get(tx, id, &s->job, err) != ERR_OK ||
        localisations_get(tx, id, &s->localisation, err) != ERR_OK) {
        return err->code;
    }
    query_begin(&q, tx,
                "SELECT (SELECT count(*) FROM tensor_blob), count(*) FROM run_tensor");
    query_step(&q);
    s->blobs = query_take_int(&q);
    s->tensors = query_take_int(&q);
    return query_end(&q, err);
}

static struct stored stored(struct fixture *f)
{
    struct stored s;

    fixture_read(f, read_stored, &s);
    return s;
}

static void stored_release(struct stored *s)
{
    job_release(&s->job);
    localisation_release(&s->localisation);
}

static void print(void *arg, const char *line)
{
    (void)arg;
    printf("%s\n", line);
}

static void check_database(struct fixture *f)
{
    struct fsck_counts counts;
    struct err err;

    fixture_close(f);
    if (fsck_database(f->path, print, NULL, &counts, &err) != ERR_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(counts.jobs_differing, 0);
    assert_int_equal(counts.dangling, 0);
    fixture_open(f);
}

static void test_a_place_is_found_and_captured(void **state)
{
    struct fixture *f = *state;
    struct looking l = { .look.next = LOOK_AGAIN };
    struct stored s;
    json_t *difference;

    insert_job(f);
    assert_int_equal(look(f, &l)->next, LOOK_GO_ON);
    finish_run(f, 1, 0, 5, 1);
    finish_run(f, 2, 0, 5, 2); /* parts, but there may be an earlier place */
    assert_int_equal(look(f, &l)->next, LOOK_GO_ON);
    finish_run(f, 3, 0, 5, 1);
    assert_int_equal(look(f, &l)->next, LOOK_CAPTURE);
    assert_string_equal(l.look.options, "{\"capture\":\"0:7:op\"}");
    assert_non_null(strstr(l.look.reason,
                           "'op' at step 7 of iteration 0: 1 of 3 runs, 2 of "
                           "3 pairs"));
    s = stored(f);
    assert_int_equal(s.tensors, 0); /* only what was asked for is kept */
    assert_string_equal(s.job.localisation,
                        "{\"state\":\"searching\",\"root\":null,\"href\":"
                        "\"/v1/jobs/01J00000000000000000000001/localisation\"}");
    stored_release(&s);
    fixture_write(f, capture, &l.look);
    look_state_release(&l.state);
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
    difference = (json_decref(difference), NULL);
    assert_non_null(strstr(l.look.difference, "\"elements\":4,\"differ\":1,\"first\":3"));
    fixture_write(f, conclude, &l.look);
    s = stored(f);
    assert_int_equal(s.job.state, JOB_FINISHED);
    assert_int_equal(s.job.runs_total, 7);
    assert_int_equal(s.job.runs_done, 7);
    assert_int_equal(s.tensors, 4); /* those of the two runs that are shown */
    assert_int_equal(s.localisation.state, LOCALISATION_LOCALISED);
    assert_non_null(s.localisation.search);
    assert_int_equal(s.localisation.ended_ms, 99500);
    assert_non_null(strstr(s.job.localisation, "\"place\":\"op\""));
    stored_release(&s);
    check_database(f);
    end(&l);
}

static void test_an_honest_negative(void **state)
{
    struct fixture *f = *state;
    struct looking l = { .look.next = LOOK_AGAIN };
    struct stored s;

    insert_job(f);
    for (int n = 1; n <= RUNS_MAX; n++) {
        assert_int_equal(look(f, &l)->next, LOOK_GO_ON);
        finish_run(f, n, 0, 5, 1);
    }
    check_database(f); /* its last run is there, its conclusion is not */
    assert_int_equal(look(f, &l)->next, LOOK_CONCLUDE);
    assert_int_equal(l.look.state, LOCALISATION_NOT_FOUND);
    assert_string_equal(l.look.reason,
                        "no pair parted in 6 runs; per-run difference "
                        "probability < 39 % (95 %)");
    fixture_write(f, conclude, &l.look);
    s = stored(f);
    assert_int_equal(s.job.state, JOB_FINISHED);
    assert_int_equal(s.job.runs_total, RUNS_MAX);
    stored_release(&s);
    check_database(f);
    end(&l);
}

/* Inputs that differ without anything before them that does. */
static void test_a_source_without_a_probe(void **state)
{
    struct fixture *f = *state;
    struct looking l = { .look.next = LOOK_AGAIN };

    insert_job(f);
    for (int n = 1; n <= RUNS_MAX; n++) {
        finish_run(f, n, 0, (uint64_t)n, (uint64_t)n);
    }
    assert_int_equal(look(f, &l)->next, LOOK_CONCLUDE);
    assert_int_equal(l.look.state, LOCALISATION_NOT_FOUND);
    assert_non_null(strstr(l.look.reason, "what makes the difference has no probe"));
    assert_non_null(strstr(l.look.search, "\"difference_probability_upper_bound\":1"));
    end(&l);
}

static void test_nothing_to_look_at(void **state)
{
    struct fixture *f = *state;
    struct looking l = { .look.next = LOOK_AGAIN };

    insert_job(f);
    fail_run(f, 1);
    fail_run(f, 2);
    assert_int_equal(look(f, &l)->next, LOOK_GO_ON);
    fail_run(f, 3);
    assert_int_equal(look(f, &l)->next, LOOK_CONCLUDE);
    assert_int_equal(l.look.state, LOCALISATION_FAILED);
    assert_string_equal(l.look.reason, "none of 3 runs completed");
    end(&l);
}

static void test_no_probes(void **state)
{
    struct fixture *f = *state;
    struct looking l = { .look.next = LOOK_AGAIN };

    insert_job(f);
    for (int n = 1; n <= RUNS_MIN; n++) {
        struct fixture_run r = { .n = n, .job = 1, .environment = 1 };

        r.outcome = OUTCOME_COMPLETED;
        fixture_write(f, fixture_whole_run, &r);
    }
    assert_int_equal(look(f, &l)->next, LOOK_CONCLUDE);
    assert_int_equal(l.look.state, LOCALISATION_FAILED);
    assert_non_null(strstr(l.look.reason, "no probes"));
    end(&l);
}

/* The place is known, and the captured runs happen to agree there. */
static void test_captured_runs_agree(void **state)
{
    struct fixture *f = *state;
    struct looking l = { .look.next = LOOK_AGAIN };

    insert_job(f);
    for (int n = 1; n <= RUNS_MIN; n++) {
        finish_run(f, n, 0, 5, n == 2);
    }
    assert_int_equal(look(f, &l)->next, LOOK_CAPTURE);
    fixture_write(f, capture, &l.look);
    look_state_release(&l.state);
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

/* A program that writes records beside the one that is captured: they decide nothing. */
static void test_only_the_captured_record_counts(void **state)
{
    struct fixture *f = *state;
    struct looking l = { .look.next = LOOK_AGAIN };

    insert_job(f);
    for (int n = 1; n <= RUNS_MIN; n++) {
        finish_run(f, n, 0, 5, n == 2);
    }
    assert_int_equal(look(f, &l)->next, LOOK_CAPTURE);
    fixture_write(f, capture, &l.look);
    look_state_release(&l.state);
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
    struct looking l = { .look.next = LOOK_AGAIN };
    struct err err;
    struct stored s;

    insert_job(f);
    for (int n = 1; n <= RUNS_MIN; n++) {
        finish_run(f, n, 0, 5, n == 2);
    }
    look(f, &l);
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
    struct looking l = { .look.next = LOOK_AGAIN };
    struct fixture_run begun = { .n = 5, .job = 1, .item = 1 };
    struct stored s;

    insert_job(f);
    for (int n = 1; n <= RUNS_MIN; n++) {
        finish_run(f, n, 0, 5, n == 2);
    }
    look(f, &l);
    fixture_write(f, capture, &l.look);
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
        STORE_TEST(test_a_place_is_found_and_captured),
        STORE_TEST(test_an_honest_negative),
        STORE_TEST(test_a_source_without_a_probe),
        STORE_TEST(test_nothing_to_look_at),
        STORE_TEST(test_no_probes),
        STORE_TEST(test_captured_runs_agree),
        STORE_TEST(test_only_the_captured_record_counts),
        STORE_TEST(test_cancelled_meanwhile),
        STORE_TEST(test_cancelled_while_capturing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
