/* External workloads: which build it is. */
#include "tests/unit/config/external_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/agent/external_build.h"

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
        char *name = external_build_difference(rows[i][0], rows[i][1]);

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_makes_another_build),
        cmocka_unit_test(test_a_large_file_counts_by_size_and_time),
        cmocka_unit_test(test_a_folder_counts_with_what_is_in_it),
        cmocka_unit_test(test_the_file_that_differs_is_named),
        cmocka_unit_test(test_what_is_missing_is_said),
    };

    return cmocka_run_group_tests_name("external_build", tests, make_folder,
                                       remove_folder);
}
