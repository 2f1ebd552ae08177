/* What tests of localisations share: a job that searches, runs of it with traces and
 * tensors, and looks at them. */
#ifndef TESTS_UNIT_LOCALISE_LOCALISE_FIXTURE_H
#define TESTS_UNIT_LOCALISE_LOCALISE_FIXTURE_H

#include "tests/unit/db/store_fixture.h"

#include "daemon/localise/localise_look.h"
#include "db/captures.h"
#include "db/fsck.h"
#include "db/tx.h"

enum { RUNS_MIN = 3, RUNS_MAX = 6 };

static inline void insert_job(struct fixture *f)
{
    struct job_item items[] = { fixture_item("unordered", "cpu:a", RUNS_MAX),
                                fixture_item("unordered", "cpu:a", RUNS_MAX) };
    struct fixture_job j = fixture_job(1, items, 2);

    run_options_read("{\"probes\":1}", &items[0].options);
    items[1].seq = 1;
    j.job.localise_runs = RUNS_MIN;
    fixture_write(f, fixture_insert_job, &j);
}

/* Run N of ITEM with TRACE, and tensors that hold OUT; HOW: all of it, or its end. */
static inline void store_run(struct fixture *f, store_fn how, int n, int item,
                             const struct trace *trace, uint64_t out)
{
    float data[4] = { 1, 2, 3, (float)out };
    char shape[] = "[4]";
    struct captured_tensor tensors[] = {
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
static inline void finish_run(struct fixture *f, int n, int item, uint64_t in,
                              uint64_t out)
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

struct looking {
    struct look_state state;
    struct look look;
};

static inline enum err_code read_look(struct tx *tx, void *arg, struct err *err)
{
    struct looking *l = arg;
    char id[ID_SIZE];

    fixture_id('J', 1, id);
    return look_at(tx, id, &l->state, &l->look, err);
}

/* Looks, and again with nothing remembered, as after a restart: both must agree. */
static inline struct look *look(struct fixture *f, struct looking *l)
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

static inline void end(struct looking *l)
{
    look_release(&l->look);
    look_state_release(&l->state);
}

static inline enum err_code capture(struct tx *tx, void *arg, struct err *err)
{
    const struct look *l = arg;
    char id[ID_SIZE];
    struct localisations_found found = { .job = id,
                                         .reason = l->reason,
                                         .search = l->search,
                                         .options = &l->options,
                                         .now_ms = 99000 };

    fixture_id('J', 1, id);
    return localisations_capture(tx, &found, err);
}

static inline enum err_code conclude(struct tx *tx, void *arg, struct err *err)
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

static inline enum err_code read_stored(struct tx *tx, void *arg, struct err *err)
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

static inline struct stored stored(struct fixture *f)
{
    struct stored s;

    fixture_read(f, read_stored, &s);
    return s;
}

static inline void stored_release(struct stored *s)
{
    job_release(&s->job);
    localisation_release(&s->localisation);
}

static inline void print(void *arg, const char *line)
{
    (void)arg;
    printf("%s\n", line);
}

static inline void check_database(struct fixture *f)
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

#endif
