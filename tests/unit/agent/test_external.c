/* External workloads: what a run gets, and what the agent makes of what it says. */
#include "tests/unit/config/external_fixture.h"

#include "daemon/agent/external.h"

static const char arguments_text[] =
    "{\"workload\":\"own\",\"variant\":\"set\",\"size\":\"large\",\"dtype\":\"float32\","
    "\"seed\":\"4294967299\",\"iterations\":10,\"probe-names\":\"conv*\"}";

struct fixture {
    json_t *arguments;
    struct stack stack;
    struct external_run run;
};

static enum err_code start(struct fixture *f, const char *key, const char *value,
                           struct err *err)
{
    f->arguments = json_loads(arguments_text, 0, NULL);
    f->stack = (struct stack){
        .externals = json_pack("[o]", workload_with("title", NULL)),
        .probe = json_pack("{s:[{s:s,s:s}]}", "devices", "id", "cpu:a", "model", "EPYC"),
    };
    if (key) {
        json_object_set_new(f->arguments, key, json_string(value));
    }
    f->run = (struct external_run){ 0 };
    return external_run_init(&f->run, &f->stack, f->arguments, "cpu:a", 2, err);
}

static void release(struct fixture *f)
{
    external_run_release(&f->run);
    json_decref(f->arguments);
    json_decref(f->stack.externals);
    json_decref(f->stack.probe);
}

/* How often ENTRY, or with a "=" at its end that variable, is in ENV. */
static int count_in(char *const *env, const char *entry)
{
    size_t length = strlen(entry);
    bool name = entry[length - 1] == '=';
    int count = 0;

    for (; *env; env++) {
        count += name ? strncmp(*env, entry, length) == 0 : strcmp(*env, entry) == 0;
    }
    return count;
}

static void test_what_a_run_gets(void **state)
{
    static const char *const there[] = {
        "A=1",
        "B=2",
        "TF_DETERMINISTIC_OPS=1",
        "PYTHONHASHSEED=3",
        "REPROD_RESULT_FD=3",
        "REPROD_WORKLOAD=own",
        "REPROD_VERSION=3",
        "REPROD_SEED=4294967299",
        "REPROD_ITERATIONS=10",
        "REPROD_PROBE_NAMES=conv*",
        "REPROD_THREADS=2",
        "REPROD_DEVICE=cpu:a",
        "REPROD_MODEL=EPYC",
        "REPROD_RECIPE=TDO",
    };
    static const char *const absent[] = { "LANG=", "OMP_NUM_THREADS=",
                                          "CUDA_VISIBLE_DEVICES=", "REPROD_PROBES=" };
    static const char *const words[] = { "train.sh", "a word", "-n", "9", "-d" };
    struct fixture f;
    struct err err;

    (void)state;
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_int_equal(start(&f, NULL, NULL, &err), ERR_OK);
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
        if (count_in(f.run.env, there[i]) != 1) {
            fail_msg("%s", there[i]);
        }
    }
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        assert_int_equal(count_in(f.run.env, absent[i]), 0);
    }
    assert_int_equal(count_in(f.run.env, "B="), 1);
    assert_int_equal(count_in(f.run.env, "PATH="), 1);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_string_equal(f.run.args[i], words[i]);
    }
    assert_null(f.run.args[5]);
    assert_int_equal(f.run.timeout_ms, 7000);
    release(&f);
}

static void test_a_run_that_cannot_be(void **state)
{
    static const char *const rows[][3] = {
        { "workload", "other", "no external workload 'other'" },
        { "variant", "other", "has no variant 'other'" },
        { "size", "other", "has no size 'other'" },
    };

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct fixture f;
        struct err err;

        assert_int_equal(start(&f, rows[i][0], rows[i][1], &err), ERR_NOT_FOUND);
        assert_non_null(strstr(err.message, rows[i][2]));
        release(&f);
    }
}

static void test_what_the_agent_makes_of_a_start(void **state)
{
    json_t *event = json_loads(
        "{\"event\":\"start\",\"environment\":{\"worker_build\":\"mine\",\"torch\":\"2\","
        "\"env.A\":\"1\",\"env.B\":\"2\",\"env.TF_DETERMINISTIC_OPS\":\"1\","
        "\"env.PYTHONHASHSEED\":\"3\",\"env.OMP_NUM_THREADS\":\"2\"}}",
        0, NULL);
    json_t *expected,
        *other = json_loads("{\"event\":\"end\",\"environment\":{}}", 0, NULL);
    json_t *copy = json_deep_copy(other);
    struct fixture f;
    struct err err;

    (void)state;
    assert_int_equal(start(&f, NULL, NULL, &err), ERR_OK);
    expected =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "worker_build", f.run.build.digest,
                  "program_build", "mine", "backend", "cpu", "model", "EPYC", "torch",
                  "2", "env.A", "1", "env.REPROD_THREADS", "2");
    for (int i = 0; i < 2; i++) { /* once more changes nothing */
        external_run_amend(&f.run, event);
        assert_true(json_equal(json_object_get(event, "environment"), expected));
    }
    external_run_amend(&f.run, other);
    assert_true(json_equal(other, copy));
    json_object_set_new(event, "environment", json_string("no object"));
    external_run_amend(&f.run, event);
    json_decref(expected);
    json_decref(event);
    json_decref(other);
    json_decref(copy);
    release(&f);
}

/* Who says as many as were given has said it. */
static void test_the_threads_that_were_given_are_a_fact(void **state)
{
    struct fixture f;
    struct err err;

    (void)state;
    assert_int_equal(start(&f, NULL, NULL, &err), ERR_OK);
    for (int threads = 1; threads <= 3; threads++) {
        json_t *event = json_pack("{s:s,s:{s:i}}", "event", "start", "environment",
                                  "threads", threads);
        const json_t *environment = json_object_get(event, "environment");
        const json_t *given;

        external_run_amend(&f.run, event);
        given = json_object_get(environment, "env.REPROD_THREADS");
        assert_int_equal(json_integer_value(json_object_get(environment, "threads")),
                         threads);
        if (threads == 2) {
            assert_null(given);
        } else {
            assert_string_equal(json_string_value(given), "2");
        }
        json_decref(event);
    }
    release(&f);
}

static void test_an_edit_during_a_run_is_seen(void **state)
{
    struct fixture f;
    struct err err;

    (void)state;
    assert_int_equal(start(&f, NULL, NULL, &err), ERR_OK);
    assert_true(external_run_unchanged(&f.run, &err));
    write_file("model", "2\n");
    assert_false(external_run_unchanged(&f.run, &err));
    assert_string_equal(err.message, "the command changed while it ran: model");
    write_file("model", "1\n");
    assert_true(external_run_unchanged(&f.run, &err));
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_run_gets),
        cmocka_unit_test(test_a_run_that_cannot_be),
        cmocka_unit_test(test_what_the_agent_makes_of_a_start),
        cmocka_unit_test(test_the_threads_that_were_given_are_a_fact),
        cmocka_unit_test(test_an_edit_during_a_run_is_seen),
    };

    return cmocka_run_group_tests_name("external", tests, make_folder, remove_folder);
}
