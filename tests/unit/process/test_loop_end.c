/* A process that waits for ever after it was told to stop is ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/process/exit_code.h"
#include "daemon/process/loop.h"

static void test_it_is_ended(void **state)
{
    char words[256] = "";
    int ends[2], status;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        loop_must_end(20);
        for (;;) {
            pause();
        }
    }
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_CODE_OTHER);
    assert_true(read(ends[0], words, sizeof words - 1) > 0);
    assert_non_null(strstr(words, "did not come to its end"));
    close(ends[0]);
}

/* One that ends in time is not. */
static void test_it_may_end(void **state)
{
    int status;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        loop_must_end(INT64_C(3600) * 1000);
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_ended),
        cmocka_unit_test(test_it_may_end),
    };

    return cmocka_run_group_tests_name("loop_end", tests, NULL, NULL);
}
