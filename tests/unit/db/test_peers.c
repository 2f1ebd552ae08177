/* Runs that another service measured: each is taken once and judged here, whatever comes
 * between; what cannot be taken is refused by name. */
#include "tests/unit/db/peers_fixture.h"

#include "daemon/base/array.h"
#include "db/upkeep/retention.h"

static struct fixture_run varying(int n)
{
    struct fixture_run run = completed(n, UNORDERED);

    run.distinct = 3;
    run.digest = 10 * n;
    return run;
}

/* Job 1 on two devices, and four runs that make its ordered case reproducible. */
static void measure(struct fixture *f)
{
    see_device(f, "cpu:a", "{}", 1);
    see_device(f, "cpu:b", "{}", 1);
    insert_job(f);
    measure_run(f, varying(1));
    measure_run(f, varying(2));
    measure_run(f, completed(3, ORDERED_A));
    measure_run(f, completed(4, ORDERED_B));
}

static struct run_record run_of(struct fixture *f, int n)
{
    struct got got = { .n = n };

    fixture_read(f, get, &got);
    free(got.log);
    return got.run;
}

static void test_runs_count_as_if_they_were_measured_here(void **state)
{
    struct peers_fixture *p = *state;
    struct peer_taken taken;
    struct cell there, here;
    struct run_record run;

    measure(p->there);
    taken = pull(p, "east", 3);
    assert_int_equal(taken.taken, 4);
    assert_int_equal(taken.refused + taken.known, 0);
    there = fixture_cell(p->there, "ordered");
    here = fixture_cell(p->here, "ordered");
    assert_int_equal(here.verdict, VERDICT_REPRODUCIBLE);
    assert_int_equal(there.verdict, VERDICT_REPRODUCIBLE);
    assert_string_equal(here.digest, there.digest);
    assert_int_equal(fixture_cell(p->here, "unordered").verdict, VERDICT_VARIES);
    run = run_of(p->here, 3);
    assert_string_equal(run.device, "cpu:east/a");
    assert_string_equal(run.stack, "east:cpu");
    assert_int_equal(run.check.state, run_of(p->there, 3).check.state);
    fixture_check_cells(p->here);
    assert_clean(p->here, 0);
    assert_clean(p->there, 0);
}

static void test_nothing_is_taken_twice(void **state)
{
    struct peers_fixture *p = *state;
    struct peer_taken taken;

    measure(p->there);
    pull(p, "east", 1);
    assert_int_equal(pull(p, "east", 10).taken, 0);
    measure_run(p->there, completed(5, ORDERED_A));
    assert_int_equal(pull(p, "east", 10).taken, 1);
    /* The same service under another name. */
    taken = pull(p, "west", 10);
    assert_int_equal(taken.known, 5);
    assert_int_equal(taken.taken + taken.refused, 0);
    assert_string_equal(run_of(p->here, 5).device, "cpu:east/a");
    assert_int_equal(progress(p, "east").progress.taken, 5);
    assert_int_equal(progress(p, "west").progress.known, 5);
    fixture_check_cells(p->here);
}

/* Ids do not grow in the order in which runs end. */
static void test_a_run_that_goes_on_holds_later_ones_back(void **state)
{
    struct peers_fixture *p = *state;
    struct fixture_run slow = completed(6, ORDERED_A);
    char id[ID_SIZE];

    measure(p->there);
    fixture_write(p->there, fixture_begin, &slow);
    measure_run(p->there, completed(7, ORDERED_B));
    assert_int_equal(pull(p, "east", 10).taken, 4);
    fixture_id('R', 6, id);
    assert_string_equal(progress(p, "east").progress.waits_for, id);
    fixture_write(p->there, fixture_finish, &slow);
    assert_int_equal(pull(p, "east", 10).taken, 2);
    assert_string_equal(progress(p, "east").progress.waits_for, "");
}

static void test_runs_of_peers_are_not_handed_on(void **state)
{
    struct peers_fixture *p = *state;
    struct peers_fixture back = { .here = p->there, .there = p->here };

    measure(p->there);
    pull(p, "east", 10);
    assert_int_equal(pull(&back, "west", 10).taken, 0);
    assert_int_equal(progress(&back, "west").progress.of_peers, 4);
    assert_int_equal(pull(p, "east", 10).taken, 0);
}

static enum err_code find_last_run(struct tx *tx, void *arg, struct err *err)
{
    char last[ID_SIZE] = "";
    enum err_code code = tx_fetch(tx, TX_TARGETS(last), err, "SELECT max(id) FROM run");

    copy_text(arg, ID_SIZE, last);
    return code;
}

static void test_what_is_measured_later_has_later_ids(void **state)
{
    struct peers_fixture *p = *state;
    char id[ID_SIZE], last[ID_SIZE];

    measure(p->there);
    pull(p, "east", 100);
    id_new(0, id); /* the clock went back */
    fixture_read(p->here, find_last_run, last);
    assert_true(strcmp(id, last) > 0);
}

static void test_it_is_no_peer_of_itself(void **state)
{
    struct peers_fixture *p = *state;
    struct collected c = { .peer = "east", .limit = 10, .since = PEER_CURSOR_FIRST };
    struct taking t = { .peer = "east", .page = &c.page };
    struct err err;

    measure(p->there);
    fixture_read(p->there, export_page, &c);
    assert_int_equal(store_write_sync(p->there->store, take_page, &t, &err),
                     ERR_UNSUPPORTED);
    /* A page that does not begin at the cursor. */
    copy_text(c.page.since, sizeof c.page.since, c.page.cursor);
    assert_int_equal(store_write_sync(p->here->store, take_page, &t, &err), ERR_CONFLICT);
    peer_page_release(&c.page);
}

static void test_another_service_is_read_from_the_first_run(void **state)
{
    struct peers_fixture *p = *state;
    struct fixture *first = p->there;
    struct fixture_job j;
    struct job_item item = fixture_item("ordered", "cpu:a", 5);
    struct fixture_run run = {
        .n = 2, .job = 9, .outcome = OUTCOME_COMPLETED, .environment = 1
    };

    measure(p->there);
    pull(p, "east", 10);
    p->there = fixture_new();
    fixture_open(p->there);
    see_device(p->there, "cpu:a", "{}", 1);
    j = fixture_job(9, &item, 1);
    fixture_write(p->there, fixture_insert_job, &j);
    measure_run(p->there, run);
    assert_true(pull(p, "east", 10).reset);
    /* Its run has the id of one of the first service. */
    assert_int_equal(pull(p, "east", 10).refused, 1);
    assert_string_equal(progress(p, "east").reason, "other_run");
    fixture_free(p->there);
    p->there = first;
}

/* Refusals. */

static void be_no_control(struct peer_run *run)
{
    run->is_control = false;
}

static void be_of_a_library(struct peer_run *run)
{
    run->run.subject = SUBJECT_LIBRARY;
    copy_text(run->run.subject_name, sizeof run->run.subject_name, "cuDNN");
}

static void be_another_item(struct peer_run *run)
{
    run->run.item = 0;
}

static void hash_nothing(struct peer_run *run)
{
    run->run.elements = 0;
}

static void be_of_our_job(struct peer_run *run)
{
    fixture_id('J', 2, run->run.job);
}

static void expect_refused(struct peers_fixture *p, const char *peer,
                           void (*change)(struct peer_run *run), int taken, int refused,
                           const char *reason)
{
    struct peer_taken sum = pull_changed(p, peer, 10, change);

    if (sum.taken != taken || sum.refused != refused ||
        strcmp(progress(p, peer).reason, reason) != 0) {
        fail_msg("%s: %d taken, %d refused, %s: %s", reason, (int)sum.taken,
                 (int)sum.refused, progress(p, peer).reason, progress(p, peer).words);
    }
    assert_int_equal(progress(p, peer).progress.taken, taken);
    fixture_check_cells(p->here);
    assert_clean(p->here, 0);
}

/* What is declared here stays. */
static void test_a_control_is_what_it_is_here(void **state)
{
    struct peers_fixture *p = *state;
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 5),
                                fixture_item("ordered", "cpu:a", 5) };
    struct fixture_job j = fixture_job(2, items, 2);

    measure(p->there);
    fixture_write(p->here, fixture_insert_job, &j);
    measure_run(p->here, (struct fixture_run){ .n = 30,
                                               .job = 2,
                                               .item = 1,
                                               .environment = 1,
                                               .outcome = OUTCOME_COMPLETED });
    expect_refused(p, "east", be_no_control, 2, 2, "other_case");
}

static void test_a_subject_is_what_it_is_here(void **state)
{
    struct peers_fixture *p = *state;
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 5),
                                fixture_item("ordered", "cpu:a", 5) };
    struct fixture_job j = fixture_job(2, items, 2);

    measure(p->there);
    fixture_write(p->here, fixture_insert_job, &j);
    measure_run(p->here, (struct fixture_run){ .n = 30,
                                               .job = 2,
                                               .item = 1,
                                               .environment = 1,
                                               .outcome = OUTCOME_COMPLETED });
    expect_refused(p, "east", be_of_a_library, 2, 2, "other_case");
}

static void test_items_are_the_same_in_all_runs(void **state)
{
    struct peers_fixture *p = *state;

    measure(p->there);
    expect_refused(p, "east", be_another_item, 2, 2, "other_item");
}

static void test_our_jobs_get_no_runs(void **state)
{
    struct peers_fixture *p = *state;
    struct job_item item = fixture_item("unordered", "cpu:a", 5);
    struct fixture_job j = fixture_job(2, &item, 1);

    measure(p->there);
    fixture_write(p->here, fixture_insert_job, &j);
    measure_run(p->here,
                (struct fixture_run){
                    .n = 30, .job = 2, .environment = 1, .outcome = OUTCOME_COMPLETED });
    expect_refused(p, "east", be_of_our_job, 0, 4, "other_run");
}

/* What the reader let through, the tables do not. */
static void test_completed_runs_have_proof_of_work(void **state)
{
    struct peers_fixture *p = *state;

    measure(p->there);
    expect_refused(p, "east", hash_nothing, 0, 4, "contradictory");
}

/* States of devices */

static void test_a_state_of_a_device_comes_with_its_runs(void **state)
{
    struct peers_fixture *p = *state;
    struct job_item item =
        fixture_item("ordered", "GPU-00000000-0000-0000-0000-000000000001", 5);
    struct fixture_job j = fixture_job(1, &item, 1);

    see_device(p->there, item.device, "{\"vbios\":\"1\"}", 1);
    fixture_write(p->there, fixture_insert_job, &j);
    measure_run(p->there, completed(1, 0));
    see_device(p->there, item.device, "{\"vbios\":\"2\"}", 3);
    measure_run(p->there, completed(4, 0));
    assert_int_equal(pull(p, "east", 10).taken, 2);
    assert_string_equal(run_of(p->here, 4).device, item.device);
    assert_clean(p->here, 0);
    /* It was told otherwise by an agent of ours, and that is newer. */
    see_device(p->here, item.device, "{\"vbios\":\"3\"}", 5);
    measure_run(p->there, completed(6, 0));
    assert_int_equal(pull(p, "east", 10).refused, 1);
    assert_string_equal(progress(p, "east").reason, "other_state");
}

/* Gaps */

static enum err_code cancel(struct tx *tx, void *arg, struct err *err)
{
    char id[ID_SIZE];

    (void)arg;
    fixture_id('J', 1, id);
    return jobs_cancel(tx, id, DAY_MS, err);
}

struct fold {
    struct retention retention;
    struct retention_place place;
};

static enum err_code fold_slice(struct tx *tx, void *arg, struct err *err)
{
    struct fold *f = arg;

    return retention_fold(tx, &f->retention, FAR_MS, &f->place, err);
}

static int64_t fold(struct fixture *f)
{
    struct fold all = { .retention = { 1, 1, 400 } };

    while (!all.place.finished) {
        fixture_write(f, fold_slice, &all);
    }
    return all.place.folded;
}

static void ten_runs(struct fixture *f)
{
    see_device(f, "cpu:a", "{}", 1);
    insert_job(f);
    for (int n = 1; n < 10; n++) {
        measure_run(f, completed(n, ORDERED_A));
    }
    measure_run(f, completed(10 + 2 * DAY, ORDERED_A));
    fixture_write(f, cancel, NULL);
}

static void test_a_gap_is_told(void **state)
{
    struct peers_fixture *p = *state;
    int64_t folded;

    ten_runs(p->there);
    folded = fold(p->there);
    assert_true(folded > 0);
    assert_int_equal(pull(p, "east", 2).taken, 10 - folded);
    assert_int_equal(progress(p, "east").progress.folded, folded);
    assert_int_equal(pull(p, "east", 10).taken, 0);
    assert_int_equal(progress(p, "east").progress.folded, folded);
    assert_clean(p->here, 0);
}

/* Here they are summaries by now. */
static void test_folded_runs_are_known(void **state)
{
    struct peers_fixture *p = *state;

    ten_runs(p->there);
    assert_int_equal(pull(p, "east", 3).taken, 10);
    assert_true(fold(p->here) > 0);
    assert_int_equal(pull(p, "west", 3).known, 10);
    assert_int_equal(progress(p, "west").progress.folded, 0);
    assert_clean(p->here, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PEERS_TEST(test_runs_count_as_if_they_were_measured_here),
        PEERS_TEST(test_nothing_is_taken_twice),
        PEERS_TEST(test_a_run_that_goes_on_holds_later_ones_back),
        PEERS_TEST(test_runs_of_peers_are_not_handed_on),
        PEERS_TEST(test_what_is_measured_later_has_later_ids),
        PEERS_TEST(test_it_is_no_peer_of_itself),
        PEERS_TEST(test_another_service_is_read_from_the_first_run),
        PEERS_TEST(test_a_control_is_what_it_is_here),
        PEERS_TEST(test_a_subject_is_what_it_is_here),
        PEERS_TEST(test_items_are_the_same_in_all_runs),
        PEERS_TEST(test_our_jobs_get_no_runs),
        PEERS_TEST(test_completed_runs_have_proof_of_work),
        PEERS_TEST(test_a_state_of_a_device_comes_with_its_runs),
        PEERS_TEST(test_a_gap_is_told),
        PEERS_TEST(test_folded_runs_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
