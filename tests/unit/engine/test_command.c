/* Short commands beside a loop: how they end, and what is told of it. */
#include "daemon/engine/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/buf.h"
#include "daemon/base/mem.h"

struct fixture {
    uv_loop_t loop;
    struct command *command;
    struct buf output;
    char *cause; /* "": it ended well; NULL: it has not ended */
};

static void on_bytes(void *arg, const char *data, size_t length)
{
    struct fixture *f = arg;

    buf_add(&f->output, data, length);
}

static void on_ended(void *arg, const char *cause)
{
    struct fixture *f = arg;

    assert_null(f->cause);
    f->cause = xstrdup(cause ? cause : "");
}

static enum err_code start(struct fixture *f, const char *program, const char *script,
                           int64_t deadline_ms, struct err *err)
{
    static const char *const without[] = { "HIDES_", NULL };
    const char *const argv[] = { program, "-c", script, NULL };
    const struct command_options options = { .argv = argv,
                                             .without = without,
                                             .deadline_ms = deadline_ms,
                                             .most = 100000,
                                             .bytes = on_bytes,
                                             .ended = on_ended,
                                             .arg = f };

    *f = (struct fixture){ .cause = NULL };
    uv_loop_init(&f->loop);
    return command_start(&f->loop, &options, &f->command, err);
}

static void finish(struct fixture *f, const char *output, const char *cause)
{
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_non_null(f->cause);
    assert_string_equal(f->cause, cause);
    if (output) {
        assert_string_equal(f->output.data ? f->output.data : "", output);
    }
    assert_int_equal(uv_loop_close(&f->loop), 0);
    buf_release(&f->output);
    free(f->cause);
}

static void check(const char *script, const char *output, const char *cause)
{
    struct fixture f;
    struct err err;

    assert_int_equal(start(&f, "sh", script, 600000, &err), ERR_OK);
    finish(&f, output, cause);
}

static void test_how_it_ends(void **state)
{
    (void)state;
    check("echo one; echo two", "one\ntwo\n", "");
    check("echo one; exit 3", "one\n", "exit status 3");
    check("echo why >&2; echo more >&2; exit 1", "", "exit status 1: why");
    check("kill -9 $$", "", "killed by signal 9");
    check("echo why >&2; kill -9 $$", "", "killed by signal 9: why");
}

static void test_its_environment(void **state)
{
    (void)state;
    setenv("HIDES_NODES", "all", 1);
    setenv("SHOWS_HIDES_", "2", 1);
    check("echo \"$HIDES_NODES$SHOWS_HIDES_\"", "2\n", "");
    unsetenv("HIDES_NODES");
    unsetenv("SHOWS_HIDES_");
}

static void test_it_takes_too_long(void **state)
{
    struct fixture f;
    struct err err;

    (void)state;
    assert_int_equal(start(&f, "sh", "sleep 100000", 50, &err), ERR_OK);
    finish(&f, "", "not done within 50 ms");
}

static void test_it_leaves_one_that_holds_its_output(void **state)
{
    struct fixture f;
    struct err err;

    (void)state;
    assert_int_equal(start(&f, "sh",
                           "f=$(mktemp); setsid sh -c \"rm $f; exec sleep 3\" & "
                           "while [ -e $f ]; do sleep 0.01; done; echo one",
                           500, &err),
                     ERR_OK);
    finish(&f, NULL, "not done within 500 ms");
}

static void test_it_says_too_much(void **state)
{
    (void)state;
    check("yes", NULL, "its output is too long");
}

static void test_it_is_killed(void **state)
{
    struct fixture f;
    struct err err;

    (void)state;
    assert_int_equal(start(&f, "sh", "sleep 100000", 600000, &err), ERR_OK);
    command_kill(f.command);
    finish(&f, "", "the service stopped");
}

static void test_there_is_no_such_program(void **state)
{
    struct fixture f;
    struct err err;

    (void)state;
    assert_int_not_equal(start(&f, "no-such-program", "", 1000, &err), ERR_OK);
    assert_non_null(strstr(err.message, "no-such-program"));
    assert_int_equal(uv_loop_close(&f.loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_it_ends),
        cmocka_unit_test(test_its_environment),
        cmocka_unit_test(test_it_takes_too_long),
        cmocka_unit_test(test_it_leaves_one_that_holds_its_output),
        cmocka_unit_test(test_it_says_too_much),
        cmocka_unit_test(test_it_is_killed),
        cmocka_unit_test(test_there_is_no_such_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
