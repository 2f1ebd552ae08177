/* Which processes can be one of a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/process/proc.h"

static const char mark[] = "REPROD_TEST_NO_SUCH=1";

/* A child in a session of its own, whose environment does not have the mark. */
static pid_t begin(bool ends)
{
    pid_t child = fork();

    if (child == 0) {
        setsid();
        while (!ends) {
            pause();
        }
        _exit(0);
    }
    assert_true(child > 0);
    return child;
}

static void test_a_process_of_somebody_else(void **state)
{
    pid_t child = begin(false);

    (void)state;
    assert_false(proc_may_be(child, getpid(), mark));
    assert_true(proc_may_be(child, child, mark));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(proc_may_be(child, getpid(), mark)); /* it is gone */
}

/* Its environment cannot be read any more, so nobody knows whether it had the mark. */
static void test_a_process_that_has_ended(void **state)
{
    pid_t child = begin(true);
    siginfo_t info;

    (void)state;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_true(proc_may_be(child, getpid(), mark));
    assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_process_of_somebody_else),
        cmocka_unit_test(test_a_process_that_has_ended),
    };

    return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
