/* External workloads: what is configured, which build it is, what a run gets and what the
 * agent makes of what it says. */
#include "daemon/external.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/agent/external_files.h"
#include "daemon/agent/external_run.h"
#include "daemon/base/mem.h"

static char folder[] = "/tmp/reprod-external-XXXXXX";

static const char configured[] =
    "{\"name\":\"own\",\"command\":[\"sh\",\"train.sh\",\"a word\"],\"version\":3,"
    " \"files\":[\"model\"],\"environment\":{\"A\":\"1\",\"B\":\"1\",\"LANG\":null},"
    " \"sizes\":{\"small\":[\"-n\",\"1\"],\"large\":[\"-n\",\"9\"]},\"timeout_seconds\":"
    "7,"
    " \"variants\":[{\"name\":\"plain\",\"control\":true},"
    "  {\"name\":\"set\",\"recipe\":\"TDO\",\"arguments\":[\"-d\"],"
    "   \"environment\":{\"B\":\"2\",\"OMP_NUM_THREADS\":null}}]}";

static const char arguments_text[] =
    "{\"workload\":\"own\",\"variant\":\"set\",\"size\":\"large\",\"dtype\":\"float32\","
    "\"seed\":\"4294967299\",\"iterations\":10,\"probe-names\":\"conv*\"}";

static void write_file(const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    free(path);
}

/* Complete, with the member at KEY replaced by VALUE (as JSON) unless that is NULL. */
static json_t *workload_with(const char *key, const char *value)
{
    json_t *workload = json_loads(configured, 0, NULL);
    struct err err;

    assert_non_null(workload);
    if (value) {
        json_object_set_new(workload, key, json_loads(value, JSON_DECODE_ANY, NULL));
    }
    if (external_complete(workload, "here", folder, &err) != ERR_OK) {
        fail_msg("%s", err.message);
    }
    return workload;
}

static int make_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    write_file("train.sh", "true\n");
    write_file("model", "1\n");
    return 0;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {
        "package/.hidden",
        "package/__pycache__/a.pyc",
        "package/__pycache__",
        "package/inner/b.py",
        "package/inner/c.py",
        "package/inner",
        "package/a.py",
        "package/loop",
        "package",
        "train.sh",
        "model",
        "large",
        "pipe",
        "",
    };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = xasprintf("%s/%s", folder, names[i]);

        remove(path);
        free(path);
    }
    return 0;
}

static void test_a_complete_workload_stays_as_it_is(void **state)
{
    json_t *workload = workload_with("title", NULL);
    json_t *copy = json_deep_copy(workload);
    struct err err;

    (void)state;
    assert_string_equal(json_string_value(json_object_get(workload, "title")), "own");
    assert_string_equal(json_string_value(json_object_get(workload, "directory")),
                        folder);
    assert_true(json_is_false(json_object_get(workload, "survey")));
    assert_int_equal(external_complete(copy, "here", NULL, &err), ERR_OK);
    assert_true(json_equal(copy, workload));
    json_object_set_new(copy, "directory", json_string("relative"));
    assert_int_equal(external_complete(copy, "here", NULL, &err), ERR_INVALID);
    assert_string_equal(err.message, "here/directory: must be an absolute path");
    json_decref(copy);
    json_decref(workload);
}

static void build_with(const char *key, const char *value, char ret[DIGEST_TEXT_SIZE])
{
    json_t *workload = workload_with(key, value);
    struct external_build build;
    struct err err;

    if (external_build_init(&build, workload, &err) != ERR_OK) {
        fail_msg("%s", err.message);
    }
    assert_true(build.program[0] == '/');
    assert_string_equal(strrchr(build.program, '/'), "/sh");
    copy_text(ret, DIGEST_TEXT_SIZE, build.digest);
    external_build_release(&build);
    json_decref(workload);
}

static void test_what_makes_another_build(void **state)
{
    static const struct {
        const char *key, *value;
        bool another;
    } rows[] = {
        { "title", "\"other\"", false },
        { "timeout_seconds", "8", false },
        { "survey", "true", false },
        { "command", "[\"sh\",\"train.sh\",\"other\"]", true },
        { "environment", "{\"A\":\"2\"}", true },
        { "sizes", "{\"small\":[]}", true },
        { "files", "[]", true },
        { "variants", "[{\"name\":\"plain\",\"control\":true}]", true },
    };
    char first[DIGEST_TEXT_SIZE], other[DIGEST_TEXT_SIZE];

    (void)state;
    build_with("title", NULL, first);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        build_with(rows[i].key, rows[i].value, other);
        if ((strcmp(first, other) != 0) != rows[i].another) {
            fail_msg("%s %s", rows[i].key, rows[i].value);
        }
    }
    for (int i = 0; i < 2; i++) {
        write_file(i ? "model" : "train.sh", "edited\n");
        build_with("title", NULL, other);
        assert_string_not_equal(first, other);
        write_file("train.sh", "true\n");
        write_file("model", "1\n");
        build_with("title", NULL, other);
        assert_string_equal(first, other);
    }
}

/* Whether a build of FILES changes with the time of modification of NAME, which gets MIB
 * MiB of zeros: it does not where contents are read. */
static bool counts_by_time(const char *files, const char *name, int mib)
{
    char *path = xasprintf("%s/%s", folder, name);
    char first[DIGEST_TEXT_SIZE], other[DIGEST_TEXT_SIZE];
    struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };

    write_file(name, "");
    assert_int_equal(truncate(path, (off_t)mib * 1024 * 1024), 0);
    utimensat(AT_FDCWD, path, times, 0);
    build_with("files", files, first);
    build_with("files", files, other);
    assert_string_equal(first, other);
    times[1].tv_nsec = 1;
    utimensat(AT_FDCWD, path, times, 0);
    build_with("files", files, other);
    free(path);
    return strcmp(first, other) != 0;
}

/* Reading a data set before every run would take longer than the run, and keep the agent
 * from its other devices. */
static void test_a_large_file_counts_by_size_and_time(void **state)
{
    (void)state;
    assert_false(counts_by_time("[\"large\"]", "large", 16));
    assert_true(counts_by_time("[\"large\"]", "large", 17));
    assert_false(counts_by_time("[\"some\"]", "some", 15));
    assert_false(counts_by_time("[\"some\",\"more\"]", "more", 15));
    assert_true(counts_by_time("[\"some\",\"more\",\"last\"]", "last", 3));
    assert_false(counts_by_time("[\"last\",\"some\",\"more\"]", "last", 1));
}

static void make_folder_in(const char *name)
{
    char *path = xasprintf("%s/%s", folder, name);

    assert_int_equal(mkdir(path, 0755), 0);
    free(path);
}

static void test_a_folder_counts_with_what_is_in_it(void **state)
{
    static const struct {
        const char *name, *text;
        bool another;
    } writes[] = {
        { "package/.hidden", "1", false },
        { "package/__pycache__/a.pyc", "1", false },
        { "package/inner/b.py", "other", true },
        { "package/inner/c.py", "", true },
        { "package/inner/c.py", "c", true },
    };
    char last[DIGEST_TEXT_SIZE], now[DIGEST_TEXT_SIZE];
    char *link;

    (void)state;
    make_folder_in("package");
    make_folder_in("package/inner");
    make_folder_in("package/__pycache__");
    write_file("package/a.py", "a");
    write_file("package/inner/b.py", "b");
    link = xasprintf("%s/package/loop", folder);
    assert_int_equal(symlink(".", link), 0);
    free(link);
    build_with("files", "[\"package\"]", last);
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        write_file(writes[i].name, writes[i].text);
        build_with("files", "[\"package\"]", now);
        if ((strcmp(last, now) != 0) != writes[i].another) {
            fail_msg("%s", writes[i].name);
        }
        copy_text(last, sizeof last, now);
    }
}

static void test_the_file_that_differs_is_named(void **state)
{
    static const char *const rows[][3] = {
        { "{}\na\t1\tx\nb\t1\ty\n", "{}\na\t1\tx\nb\t1\ty\n", NULL },
        { "{}\na\t1\tx\nb\t1\ty\n", "{}\na\t1\tx\nb\t2\ty\n", "b" },
        { "{}\na\t1\tx\n", "{}\na\t1\tx\nb\t2\ty\n", "b" },
        { "{}\na\t1\tx\nb\t1\ty\n", "{}\na\t1\tx\n", "b" },
        { "", "", NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *name = external_files_differ(rows[i][0], rows[i][1]);

        assert_int_equal(name != NULL, rows[i][2] != NULL);
        if (name) {
            assert_string_equal(name, rows[i][2]);
        }
        free(name);
    }
}

static void test_what_is_missing_is_said(void **state)
{
    static const struct {
        const char *key, *value, *words;
    } rows[] = {
        { "command", "[\"reprod-no-such\"]",
          "no program 'reprod-no-such' in /usr/local" },
        { "command", "[\"./train.sh\"]", "/train.sh is no program that can be executed" },
        { "environment", "{\"PATH\":\"/none::\"}", "no program 'sh' in /none::" },
        { "files", "[\"none\"]", "/none: No such file" },
        { "files", "[\"pipe\"]", "/pipe: neither a file nor a folder" },
        { "files", "[\"/dev/zero\"]", "/dev/zero: neither a file nor a folder" },
        { "directory", "\"/none\"", "directory /none: No such file" },
        { "directory", "\"/etc/passwd\"", "no folder that can be entered" },
    };
    char *path = xasprintf("%s/pipe", folder);

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    free(path);
    alarm(60); /* a pipe that is opened to be read waits for a writer */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *workload = workload_with(rows[i].key, rows[i].value);
        struct external_build build;
        struct err err;

        assert_int_not_equal(external_build_init(&build, workload, &err), ERR_OK);
        if (!strstr(err.message, rows[i].words)) {
            fail_msg("%s", err.message);
        }
        json_decref(workload);
    }
    alarm(0);
}

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
        cmocka_unit_test(test_a_complete_workload_stays_as_it_is),
        cmocka_unit_test(test_what_makes_another_build),
        cmocka_unit_test(test_a_large_file_counts_by_size_and_time),
        cmocka_unit_test(test_a_folder_counts_with_what_is_in_it),
        cmocka_unit_test(test_the_file_that_differs_is_named),
        cmocka_unit_test(test_what_is_missing_is_said),
        cmocka_unit_test(test_what_a_run_gets),
        cmocka_unit_test(test_a_run_that_cannot_be),
        cmocka_unit_test(test_what_the_agent_makes_of_a_start),
        cmocka_unit_test(test_the_threads_that_were_given_are_a_fact),
        cmocka_unit_test(test_an_edit_during_a_run_is_seen),
    };

    return cmocka_run_group_tests_name("external", tests, make_folder, remove_folder);
}
