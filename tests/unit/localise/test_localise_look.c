/* What a localisation concludes from the runs that it has searched. */
#include "tests/unit/jobs/options_fixture.h"
#include "tests/unit/localise/localise_fixture.h"

static void fail_run(struct fixture *f, int n)
{
    struct fixture_run r = { .n = n, .job = 1, .outcome = OUTCOME_CRASHED };

    fixture_write(f, fixture_whole_run, &r);
}

static void test_a_place_is_found(void **state)
{
    struct fixture *f = *state;
    struct looking l = { .look.next = LOOK_AGAIN };
    struct stored s;

    insert_job(f);
    assert_int_equal(look(f, &l)->next, LOOK_GO_ON);
    finish_run(f, 1, 0, 5, 1);
    finish_run(f, 2, 0, 5, 2); /* parts, but there may be an earlier place */
    assert_int_equal(look(f, &l)->next, LOOK_GO_ON);
    finish_run(f, 3, 0, 5, 1);
    assert_int_equal(look(f, &l)->next, LOOK_CAPTURE);
    check_options(&l.look.options, "{\"capture\":\"0:7:op\"}");
    assert_non_null(strstr(l.look.reason,
                           "'op' at step 7 of iteration 0: 1 of 3 runs, 2 of "
                           "3 pairs"));
    s = stored(f);
    assert_int_equal(s.tensors, 0); /* only what was asked for is kept */
    assert_string_equal(s.job.localisation,
                        "{\"state\":\"searching\",\"root\":null,\"href\":"
                        "\"/v1/jobs/01J00000000000000000000001/localisation\"}");
    stored_release(&s);
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
                        "probability < 46 % (95 %)");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_place_is_found),
        STORE_TEST(test_an_honest_negative),
        STORE_TEST(test_a_source_without_a_probe),
        STORE_TEST(test_nothing_to_look_at),
        STORE_TEST(test_no_probes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
