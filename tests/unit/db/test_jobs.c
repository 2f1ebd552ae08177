/* Jobs: storing, idempotency, progress, giving up, cancelling. */
#include "tests/unit/db/store_fixture.h"

#include "db/events.h"
#include "tests/unit/jobs/options_fixture.h"

static void insert(struct fixture *f, struct fixture_job *job)
{
    fixture_write(f, fixture_insert_job, job);
}

struct got {
    char id[ID_SIZE];
    struct job job;
};

static enum err_code get(struct tx *tx, void *arg, struct err *err)
{
    struct got *g = arg;

    return jobs_get(tx, g->id, &g->job, err);
}

/* Release with job_release. */
static struct job load(struct fixture *f, int n)
{
    struct got g;

    fixture_id('J', n, g.id);
    fixture_read(f, get, &g);
    return g.job;
}

static void check_progress(struct fixture *f, int n, enum job_state state, int done,
                           int failed, int total)
{
    struct job job = load(f, n);

    assert_int_equal(job.state, state);
    assert_int_equal(job.runs_done, done);
    assert_int_equal(job.runs_failed, failed);
    assert_int_equal(job.runs_total, total);
    assert_int_equal(job.finished_ms != 0, state >= JOB_FINISHED);
    job_release(&job);
}

static struct fixture_run run(int n, enum outcome outcome)
{
    return (struct fixture_run){ .n = n, .job = 1, .outcome = outcome, .environment = 1 };
}

static void finish(struct fixture *f, struct fixture_run r, struct run_effect *ret_effect)
{
    fixture_write(f, fixture_whole_run, &r);
    *ret_effect = r.effect;
}

static void test_a_job_comes_back_as_it_went_in(void **state)
{
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 5),
                                fixture_item("ordered", "cpu:b", 3) };
    struct fixture_job j = fixture_job(1, items, 2);
    struct job job;

    items[1].key.seed = UINT64_MAX;
    snprintf(items[1].no_control, sizeof items[1].no_control, "it has none");
    run_options_read("{\"probes\":1}", &items[1].options);
    items[1].timeout_ms = 90000;
    j.job.priority = JOB_BACKGROUND;
    j.job.survey = true;
    j.job.stop_when_varies = true;
    insert(f, &j);
    job = load(f, 1);
    assert_int_equal(job.state, JOB_QUEUED);
    assert_int_equal(job.priority, JOB_BACKGROUND);
    assert_true(job.survey);
    assert_true(job.stop_when_varies);
    assert_int_equal(job.iterations, 10);
    assert_int_equal(job.timeout_ms, 60000);
    assert_int_equal(job.items[0].timeout_ms, 0);
    assert_int_equal(job.items[1].timeout_ms, 90000);
    assert_int_equal(job.runs_total, 8);
    assert_string_equal(job.request, "{}");
    assert_int_equal(job.item_count, 2);
    assert_string_equal(job.items[0].key.variant, "unordered");
    assert_true(job.items[0].is_control);
    assert_string_equal(job.items[1].device, "cpu:b");
    assert_true(job.items[1].key.seed == UINT64_MAX);
    assert_string_equal(job.items[1].no_control, "it has none");
    assert_int_equal(job.items[1].seq, 1);
    check_options(&job.items[0].options, "");
    check_options(&job.items[1].options, "{\"probes\":1}");
    job_release(&job);
}

static void test_bad_jobs_store_nothing(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 0);
    struct fixture_job none = fixture_job(1, NULL, 0);
    struct fixture_job no_runs = fixture_job(1, &item, 1);
    struct got g;
    struct err err;

    assert_int_equal(store_write_sync(f->store, fixture_insert_job, &none, &err),
                     ERR_INVALID);
    assert_int_equal(store_write_sync(f->store, fixture_insert_job, &no_runs, &err),
                     ERR_INVALID);
    fixture_id('J', 1, g.id);
    assert_int_equal(store_read_sync(f->store, get, &g, &err), ERR_NOT_FOUND);
}

static void test_idempotency(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 1);
    struct fixture_job first = fixture_job(1, &item, 1);
    struct fixture_job same = fixture_job(2, &item, 1);
    struct fixture_job other = fixture_job(3, &item, 1);
    struct got g;
    struct err err;

    first.key = same.key = other.key = "abc";
    other.job.request = (char *)"{\"other\":1}";
    insert(f, &first);
    assert_string_equal(first.existing, "");
    insert(f, &same);
    assert_string_equal(same.existing, first.job.id);
    assert_int_equal(store_write_sync(f->store, fixture_insert_job, &other, &err),
                     ERR_CONFLICT);
    fixture_id('J', 2, g.id);
    assert_int_equal(store_read_sync(f->store, get, &g, &err), ERR_NOT_FOUND);
}

struct listed {
    const char *before;
    int limit;
    char ids[8][ID_SIZE];
    int items[8];
    int count;
    bool requested;
};

static void collect(void *arg, const struct job *job)
{
    struct listed *l = arg;

    l->items[l->count] = job->item_count;
    memcpy(l->ids[l->count++], job->id, ID_SIZE);
}

static enum err_code list(struct tx *tx, void *arg, struct err *err)
{
    struct listed *l = arg;

    return jobs_list(tx, l->before, l->requested, l->limit, collect, l, err);
}

static enum err_code each_open(struct tx *tx, void *arg, struct err *err)
{
    return jobs_each_open(tx, collect, arg, err);
}

struct cancel {
    char id[ID_SIZE];
};

static enum err_code cancel(struct tx *tx, void *arg, struct err *err)
{
    return jobs_cancel(tx, ((struct cancel *)arg)->id, 99000, err);
}

static void test_lists(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 1);
    struct listed page = { .before = "", .limit = 3 };
    struct listed rest = { .limit = 3 };
    struct listed open = { .count = 0 };
    struct cancel second;
    char expected[ID_SIZE];

    for (int i = 1; i <= 5; i++) {
        struct fixture_job j = fixture_job(i, &item, 1);

        insert(f, &j);
    }
    fixture_id('J', 2, second.id);
    fixture_write(f, cancel, &second);
    fixture_read(f, list, &page);
    assert_int_equal(page.count, 3);
    rest.before = page.ids[2];
    fixture_read(f, list, &rest);
    assert_int_equal(rest.count, 2);
    fixture_id('J', 1, expected);
    assert_string_equal(rest.ids[1], expected);
    fixture_read(f, each_open, &open);
    assert_int_equal(open.count, 4);
    assert_string_equal(open.ids[0], expected);
    assert_int_equal(open.items[0], 1);
}

static void test_lists_without_background_evidence(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 1);
    struct listed all = { .before = "", .limit = 8 };
    struct listed requested = { .before = "", .limit = 8, .requested = true };
    char expected[ID_SIZE];

    for (int i = 1; i <= 3; i++) {
        struct fixture_job j = fixture_job(i, &item, 1);

        j.job.priority = i == 1 ? JOB_SCHEDULED : JOB_BACKGROUND;
        j.job.survey = i == 2;
        insert(f, &j);
    }
    fixture_read(f, list, &all);
    fixture_read(f, list, &requested);
    assert_int_equal(all.count, 3);
    assert_int_equal(requested.count, 2);
    fixture_id('J', 2, expected);
    assert_string_equal(requested.ids[0], expected);
}

static void test_progress_to_the_end(void **state)
{
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("ordered", "cpu:a", 2),
                                fixture_item("unordered", "cpu:a", 1) };
    struct fixture_job j = fixture_job(1, items, 2);
    struct fixture_run second_item = run(4, OUTCOME_CRASHED);
    struct run_effect effect;
    struct job job;

    insert(f, &j);
    finish(f, run(1, OUTCOME_COMPLETED), &effect);
    assert_false(effect.job_finished);
    check_progress(f, 1, JOB_RUNNING, 1, 0, 3);
    finish(f, run(2, OUTCOME_LOST), &effect);
    check_progress(f, 1, JOB_RUNNING, 1, 0, 3);
    finish(f, run(3, OUTCOME_COMPLETED), &effect);
    check_progress(f, 1, JOB_RUNNING, 2, 0, 3);
    second_item.item = 1;
    finish(f, second_item, &effect);
    assert_true(effect.job_finished);
    assert_false(effect.item_given_up);
    check_progress(f, 1, JOB_FINISHED, 3, 1, 3);
    job = load(f, 1);
    assert_int_equal(job.items[0].runs_answered, 2);
    assert_int_equal(job.items[0].runs_unanswered, 1);
    assert_int_equal(job.items[0].milliseconds, 10);
    assert_int_equal(job.items[1].runs_failed, 1);
    assert_false(job.items[0].given_up);
    job_release(&job);
}

static void test_unsupported_is_given_up(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 5);
    struct fixture_job j = fixture_job(1, &item, 1);
    struct run_effect effect;
    struct job job;

    insert(f, &j);
    finish(f, run(1, OUTCOME_UNSUPPORTED), &effect);
    assert_true(effect.item_given_up);
    assert_true(effect.job_finished);
    check_progress(f, 1, JOB_FINISHED, 1, 0, 1);
    job = load(f, 1);
    assert_true(job.items[0].given_up);
    assert_string_equal(job.items[0].given_up_reason,
                        "unsupported: because of \"unsupported\"");
    job_release(&job);
}

static void test_lost_too_often_is_given_up(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 2);
    struct fixture_job j = fixture_job(1, &item, 1);
    struct run_effect effect;

    insert(f, &j);
    finish(f, run(1, OUTCOME_CANCELLED), &effect); /* speaks against nobody */
    for (int i = 2; i <= 4; i++) {
        finish(f, run(i, i % 2 ? OUTCOME_LOST : OUTCOME_INFRA), &effect);
        assert_false(effect.item_given_up);
    }
    finish(f, run(5, OUTCOME_LOST), &effect);
    assert_true(effect.item_given_up);
    assert_true(effect.job_finished);
    check_progress(f, 1, JOB_FINISHED, 0, 0, 0);
}

static void test_stop_when_varies(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("unordered", "cpu:a", 5);
    struct fixture_job j = fixture_job(1, &item, 1);
    struct fixture_run r = run(1, OUTCOME_COMPLETED);
    struct run_effect effect;

    j.job.stop_when_varies = true;
    insert(f, &j);
    r.distinct = 2;
    finish(f, r, &effect);
    assert_int_equal(effect.verdict, VERDICT_VARIES);
    for (int n = 2; n <= JOBS_STOP_RUNS; n++) {
        assert_false(effect.item_given_up); /* fewer cannot tell a cost */
        r.n = n;
        finish(f, r, &effect);
    }
    assert_true(effect.item_given_up);
    assert_true(effect.job_finished);
    check_progress(f, 1, JOB_FINISHED, JOBS_STOP_RUNS, 0, JOBS_STOP_RUNS);
}

static void test_cancel(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 5);
    struct fixture_job j = fixture_job(1, &item, 1);
    struct fixture_run late = run(1, OUTCOME_COMPLETED);
    struct fixture_run refused = run(2, OUTCOME_COMPLETED);
    struct cancel id;
    struct err err;

    insert(f, &j);
    fixture_write(f, fixture_begin, &late);
    fixture_id('J', 1, id.id);
    fixture_write(f, cancel, &id);
    fixture_write(f, cancel, &id); /* once more is fine */
    check_progress(f, 1, JOB_CANCELLED, 0, 0, 5);
    assert_int_equal(store_write_sync(f->store, fixture_begin, &refused, &err),
                     ERR_CONFLICT);
    fixture_write(f, fixture_finish, &late); /* evidence all the same */
    assert_int_equal(late.effect.outcome, OUTCOME_COMPLETED);
    assert_true(late.effect.cell != 0);
    assert_false(late.effect.job_finished);
    check_progress(f, 1, JOB_CANCELLED, 1, 0, 5);
    fixture_id('J', 9, id.id);
    assert_int_equal(store_write_sync(f->store, cancel, &id, &err), ERR_NOT_FOUND);
}

static void test_a_finished_job_cannot_be_cancelled(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 1);
    struct fixture_job j = fixture_job(1, &item, 1);
    struct run_effect effect;
    struct cancel id;
    struct err err;

    insert(f, &j);
    finish(f, run(1, OUTCOME_COMPLETED), &effect);
    fixture_id('J', 1, id.id);
    assert_int_equal(store_write_sync(f->store, cancel, &id, &err), ERR_CONFLICT);
}

static void find_job_events(void *arg, const struct event *event)
{
    struct listed *l = arg;

    if (strcmp(event->kind, "job") == 0) {
        l->count++;
        snprintf(l->ids[0], sizeof l->ids[0], "%s",
                 strstr(event->data, "\"state\":") + 8);
    }
}

static enum err_code read_events(struct tx *tx, void *arg, struct err *err)
{
    return events_each(tx, 0, 100, find_job_events, arg, err);
}

static void test_every_step_is_an_event(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 1);
    struct fixture_job j = fixture_job(1, &item, 1);
    struct listed l = { .count = 0 };
    struct run_effect effect;

    insert(f, &j);
    finish(f, run(1, OUTCOME_COMPLETED), &effect);
    fixture_read(f, read_events, &l);
    assert_int_equal(l.count, 3); /* queued, running, finished */
    assert_memory_equal(l.ids[0], "\"finished\"", 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_job_comes_back_as_it_went_in),
        STORE_TEST(test_bad_jobs_store_nothing),
        STORE_TEST(test_idempotency),
        STORE_TEST(test_lists),
        STORE_TEST(test_lists_without_background_evidence),
        STORE_TEST(test_progress_to_the_end),
        STORE_TEST(test_unsupported_is_given_up),
        STORE_TEST(test_lost_too_often_is_given_up),
        STORE_TEST(test_stop_when_varies),
        STORE_TEST(test_cancel),
        STORE_TEST(test_a_finished_job_cannot_be_cancelled),
        STORE_TEST(test_every_step_is_an_event),
    };

    return cmocka_run_group_tests_name("jobs", tests, NULL, NULL);
}
