/* How long a worker has to say what it is. */
#include "daemon/agent/stack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int64_t time_of(const char *worker, int64_t own_ms, int64_t standard_ms)
{
    struct stack stack = { .worker = (char *)worker, .probe_ms = own_ms };

    return stack_probe_ms(&stack, standard_ms);
}

/* What was asked for counts, for the stack first; else a driver has its time. */
static void test_a_worker_of_gpus_has_a_minute(void **state)
{
    static const char gpu[] = "/opt/reprod/reprod-worker-cuda";

    (void)state;
    assert_int_equal(time_of(gpu, 0, STACK_PROBE_MS), 60000);
    assert_int_equal(time_of(gpu, 0, 2000), 2000);
    assert_int_equal(time_of(gpu, 3000, STACK_PROBE_MS), 3000);
    assert_int_equal(time_of("/opt/reprod/reprod-worker", 0, STACK_PROBE_MS), 10000);
    assert_int_equal(time_of("/opt/reprod-worker-cuda/other", 0, STACK_PROBE_MS), 10000);
    assert_int_equal(time_of("worker", 0, STACK_PROBE_MS), 10000);
    assert_int_equal(time_of(NULL, 0, STACK_PROBE_MS), 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_worker_of_gpus_has_a_minute),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
