/* Child processes of a loop: their pipes, their environment, and their end. */
#include "daemon/process/child.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    uv_loop_t loop;
    struct child child;
    struct child_pipes pipes;
    int ended, closed;
};

static void on_closed(void *arg)
{
    ((struct fixture *)arg)->closed++;
}

static void on_ended(void *arg)
{
    struct fixture *f = arg;

    f->ended++;
    child_close(&f->child, on_closed);
}

static void start(struct fixture *f, const char *script, char *const *env, bool has_input)
{
    const char *const argv[] = { "sh", "-c", script, NULL };
    struct err err;

    *f = (struct fixture){ .child = { .ended = on_ended, .arg = f } };
    uv_loop_init(&f->loop);
    assert_int_equal(child_start(&f->child, &f->loop,
                                 &(struct child_start){ .argv = (char *const *)argv,
                                                        .env = env,
                                                        .has_input = has_input },
                                 &f->pipes, &err),
                     ERR_OK);
    assert_int_equal(f->pipes.in >= 0, has_input);
}

/* Until it is gone; OUTPUT is all that it printed. */
static void finish(struct fixture *f, const char *output)
{
    char text[256];
    size_t length = 0;
    ssize_t n;

    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->ended, 1);
    assert_int_equal(f->closed, 1);
    assert_true(f->child.exited);
    while ((n = read(f->pipes.out, text + length, sizeof text - 1 - length)) > 0) {
        length += (size_t)n;
    }
    text[length] = '\0';
    assert_string_equal(text, output);
    close(f->pipes.out);
    close(f->pipes.err);
    if (f->pipes.in >= 0) {
        close(f->pipes.in);
    }
    assert_int_equal(uv_loop_close(&f->loop), 0);
}

static void test_it_reads_and_writes(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, "read word; echo $word; exit 3", NULL, true);
    assert_int_equal(write(f.pipes.in, "hello\n", 6), 6);
    finish(&f, "hello\n");
    assert_int_equal(WEXITSTATUS(f.child.status), 3);
    child_kill(&f.child, SIGKILL); /* nobody: its number may be another's */
    start(&f, "read word || echo nothing", NULL, false);
    finish(&f, "nothing\n");
}

/* What is left of its group holds its output until it is killed. */
static void test_its_group_ends_with_it(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, "sleep 100000 & echo one", NULL, false);
    finish(&f, "one\n");
    start(&f, "sleep 100000 & wait", NULL, false);
    child_kill(&f.child, SIGTERM);
    finish(&f, "");
    assert_int_equal(WTERMSIG(f.child.status), SIGTERM);
}

static void test_its_environment(void **state)
{
    static const char *const without[] = { "HIDES_", "PATH_NOT_", NULL };
    static char added[] = "ADDED=3";
    struct fixture f;
    char **environment;

    (void)state;
    setenv("HIDES_NODES", "1", 1);
    setenv("SHOWS_HIDES_", "2", 1);
    environment = child_environment(added, without);
    start(&f, "echo \"$HIDES_NODES,$SHOWS_HIDES_,$ADDED\"", environment, false);
    finish(&f, ",2,3\n");
    free(environment);
    environment = child_environment(NULL, NULL);
    start(&f, "echo \"$HIDES_NODES,$SHOWS_HIDES_,$ADDED\"", environment, false);
    finish(&f, "1,2,\n");
    free(environment);
    unsetenv("HIDES_NODES");
    unsetenv("SHOWS_HIDES_");
}

static void test_there_is_no_such_program(void **state)
{
    const char *const argv[] = { "/nowhere/at all", NULL };
    struct child child = { .exited = true };
    struct child_pipes pipes;
    struct err err;
    uv_loop_t loop;

    (void)state;
    uv_loop_init(&loop);
    assert_int_not_equal(child_start(&child, &loop,
                                     &(struct child_start){ .argv = (char *const *)argv },
                                     &pipes, &err),
                         ERR_OK);
    assert_non_null(strstr(err.message, "/nowhere/at all"));
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_reads_and_writes),
        cmocka_unit_test(test_its_group_ends_with_it),
        cmocka_unit_test(test_its_environment),
        cmocka_unit_test(test_there_is_no_such_program),
    };

    return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
