/* What an earlier life of a service left running, and who is nobody's business. */
#include "daemon/process/leftovers.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A command that its service left: it says its pid, and ignores SIGTERM where it is
 * told to. */
struct command {
    bool leads, to_pipe, ignores;
};

static char folder[] = "/tmp/leftovers-XXXXXX", other[] = "/tmp/leftovers-XXXXXX";

static void execute(const struct command *command, int out)
{
    static char sh[] = "sh", option[] = "-c", path[] = "PATH=/usr/bin:/bin";
    /* A shell gives its own output away while it echoes elsewhere: a child says it.  Then
     * it stays what it is: who is about to execute another program has no environment. */
    static char script[] = "(echo $$ >&3); read never";
    char *const argv[] = { sh, option, script, NULL };
    char *env[] = { path, NULL, NULL };
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int silent[2];

    env[1] = leftovers_mark();
    if (command->leads) {
        setsid();
    }
    signal(SIGTERM, command->ignores ? SIG_IGN : SIG_DFL);
    if (pipe(silent) == 0) {
        dup2(silent[0], STDIN_FILENO);
    }
    dup2(out, 3);
    dup2(command->to_pipe ? out : null, STDOUT_FILENO);
    execve("/bin/sh", argv, env);
    _exit(127);
}

/* Starts COMMAND as a service of DATA that is dead then.  Returns its pid. */
static pid_t leave(const char *data, struct command command, int *ret_out)
{
    int out[2];
    char text[32] = "";
    pid_t service;

    assert_int_equal(pipe(out), 0);
    service = fork();
    if (service == 0) {
        leftovers_open(data);
        if (fork() == 0) {
            execute(&command, out[1]);
        }
        _exit(0);
    }
    close(out[1]);
    assert_int_equal(waitpid(service, NULL, 0), service);
    assert_true(read(out[0], text, sizeof text - 1) > 0);
    *ret_out = out[0];
    return (pid_t)strtol(text, NULL, 10);
}

/* Its output ends with it. */
static void wait_for_end(int out)
{
    char byte;

    assert_int_equal(read(out, &byte, 1), 0);
    close(out);
}

static void test_what_an_earlier_life_left_is_ended(void **state)
{
    int out, stubborn_out;
    pid_t stubborn;

    (void)state;
    leave(folder, (struct command){ .leads = true, .to_pipe = true }, &out);
    stubborn = leave(folder, (struct command){ true, true, true }, &stubborn_out);
    leftovers_open(folder);
    assert_int_equal(leftovers_end(SIGTERM), 2);
    wait_for_end(out);
    assert_int_equal(kill(stubborn, 0), 0);
    assert_int_equal(leftovers_end(SIGKILL), 1);
    wait_for_end(stubborn_out);
    assert_int_equal(leftovers_end(SIGKILL), 0);
}

static void assert_spared(const char *data, struct command command)
{
    int out;
    pid_t pid = leave(data, command, &out);

    leftovers_open(folder);
    assert_int_equal(leftovers_end(SIGKILL), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    close(out);
}

static void test_others_are_spared(void **state)
{
    (void)state;
    assert_spared(other, (struct command){ .leads = true, .to_pipe = true });
    assert_spared(folder,
                  (struct command){ .leads = true }); /* put into the background */
    assert_spared(folder, (struct command){ .to_pipe = true }); /* not started by it */
    leftovers_open("/nowhere/at all");
    assert_null(leftovers_mark());
    assert_int_equal(leftovers_end(SIGKILL), 0);
}

/* Of this life, though somebody else is its parent by now. */
static void test_what_this_life_started_is_spared(void **state)
{
    int out[2];
    char text[32] = "";
    pid_t between;

    (void)state;
    leftovers_open(folder);
    assert_int_equal(pipe(out), 0);
    between = fork();
    if (between == 0) {
        if (fork() == 0) {
            execute(&(struct command){ .leads = true, .to_pipe = true }, out[1]);
        }
        _exit(0);
    }
    close(out[1]);
    waitpid(between, NULL, 0);
    assert_true(read(out[0], text, sizeof text - 1) > 0);
    assert_int_equal(leftovers_end(SIGKILL), 0);
    assert_int_equal(kill((pid_t)strtol(text, NULL, 10), SIGKILL), 0);
    wait_for_end(out[0]);
}

static int make_folders(void **state)
{
    (void)state;
    return mkdtemp(folder) && mkdtemp(other) ? 0 : -1;
}

static int remove_folders(void **state)
{
    (void)state;
    return rmdir(folder) | rmdir(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_an_earlier_life_left_is_ended),
        cmocka_unit_test(test_others_are_spared),
        cmocka_unit_test(test_what_this_life_started_is_spared),
    };

    return cmocka_run_group_tests_name("leftovers", tests, make_folders, remove_folders);
}
