/* What states of Slurm mean.  Whatever nobody knows keeps a host from being used. */
#include "daemon/engine/slurm_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"

static void check_held(const char *state, const char *reason, bool reservation,
                       const char *expected)
{
    struct slurm_node node = { .name = "n1" };
    char cause[SLURM_CAUSE_SIZE];

    copy_text(node.state, sizeof node.state, state);
    copy_text(node.reason, sizeof node.reason, reason);
    slurm_node_held(&node, reservation, cause);
    assert_string_equal(cause, expected);
}

static void test_nodes_that_can_be_used(void **state)
{
    static const char *const usable[] = {
        "IDLE",
        "MIXED",
        "ALLOCATED",
        "IDLE+PLANNED",
        "IDLE+CLOUD",
        "MIXED+COMPLETING",
        "IDLE+POWERED_DOWN",
        "IDLE+POWERING_UP",
        "IDLE+DYNAMIC_NORM",
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(usable); i++) {
        check_held(usable[i], "", false, "");
        check_held(usable[i], "a remark", true, "");
    }
}

static void test_nodes_that_are_held(void **state)
{
    (void)state;
    check_held("IDLE+DRAIN", "flaky ECC", false, "slurm: drained: flaky ECC");
    check_held("MIXED+DRAIN", "flaky ECC", false, "slurm: draining: flaky ECC");
    check_held("DRAIN+COMPLETING", "", false, "slurm: draining");
    check_held("DOWN+NOT_RESPONDING", "Not responding", false,
               "slurm: down: Not responding");
    check_held("IDLE+NOT_RESPONDING", "", false, "slurm: not responding");
    check_held("IDLE+FAIL", "bad", false, "slurm: failing: bad");
    check_held("IDLE+MAINTENANCE", "", false, "slurm: maintenance");
    check_held("IDLE+RESERVED", "", false, "slurm: reserved");
    check_held("IDLE+POWER_DOWN", "", false, "slurm: to be powered down");
    check_held("IDLE+POWERING_DOWN", "", false, "slurm: being powered down");
    check_held("IDLE+DRAIN+INVALID_REG", "gres count", false,
               "slurm: drained: gres count");
    check_held("IDLE+INVALID_REG", "", false, "slurm: its registration is invalid");
    check_held("UNKNOWN", "", false, "slurm: state unknown");
    check_held("FUTURE", "", false, "slurm: not there yet");
    check_held("IDLE+REBOOT_REQUESTED", "", false, "slurm: to be rebooted");
}

static void test_a_reservation_of_ours(void **state)
{
    (void)state;
    check_held("IDLE+RESERVED", "", true, "");
    check_held("MAINTENANCE", "", true, "");
    check_held("IDLE+RESERVED+DRAIN", "", true, "slurm: drained");
    check_held("", "", true, "slurm: the node has no state");
}

static void test_unknown_is_never_good(void **state)
{
    (void)state;
    check_held("", "", false, "slurm: the node has no state");
    check_held("PLANNED", "", false, "slurm: the node has no state");
    check_held("IDLE+QUANTUM", "", false, "slurm: state 'QUANTUM' is not known here");
    check_held("IDL", "", false, "slurm: state 'IDL' is not known here");
    check_held("IDLE+QUANTUM+DRAIN", "", true,
               "slurm: state 'QUANTUM' is not known here");
}

static struct slurm_job job_in(const char *state, const char *node)
{
    struct slurm_job job = { .id = 17 };

    copy_text(job.state, sizeof job.state, state);
    copy_text(job.node, sizeof job.node, node);
    return job;
}

static void check_phase(const char *state, enum slurm_phase expected)
{
    struct slurm_job job = job_in(state, "n1");

    assert_int_equal(slurm_job_phase(&job), expected);
}

static void test_phases(void **state)
{
    (void)state;
    check_phase("PENDING", SLURM_WAITS);
    check_phase("CONFIGURING", SLURM_WAITS);
    check_phase("RUNNING", SLURM_RUNS);
    check_phase("SUSPENDED", SLURM_RUNS);
    check_phase("QUANTUM", SLURM_RUNS);
    check_phase("", SLURM_RUNS);
    check_phase("COMPLETING", SLURM_ENDING);
    check_phase("CANCELLED+COMPLETING", SLURM_ENDED);
    check_phase("COMPLETED", SLURM_ENDED);
    check_phase("NODE_FAIL", SLURM_ENDED);
}

static void check_cause(const char *state, const char *node, int64_t preempted,
                        const char *expected)
{
    struct slurm_job job = job_in(state, node);
    char cause[SLURM_CAUSE_SIZE];

    job.preempted = preempted;
    slurm_job_cause(&job, cause);
    assert_string_equal(cause, expected);
}

static void test_causes(void **state)
{
    (void)state;
    check_cause("NODE_FAIL", "n1", 0, "slurm: node failure of n1 (job 17)");
    check_cause("PREEMPTED", "n1", 0, "slurm: preempted on n1 (job 17)");
    check_cause("FAILED", "n1", 9, "slurm: preempted on n1 (job 17)");
    check_cause("CANCELLED", "n1", 9, "slurm: preempted on n1 (job 17)");
    check_cause("TIMEOUT", "n1", 0, "slurm: its time limit was reached on n1 (job 17)");
    check_cause("CANCELLED", "", 0, "slurm: cancelled on its node (job 17)");
    check_cause("OUT_OF_MEMORY", "n1", 0, "slurm: out of memory on n1 (job 17)");
    check_cause("BOOT_FAIL", "n1", 0, "slurm: n1 did not boot (job 17)");
    check_cause("COMPLETED", "n1", 0, "");
    check_cause("FAILED", "n1", 0, "");
    check_cause("RUNNING", "n1", 0, "");
}

static void test_why_a_job_waits(void **state)
{
    struct slurm_job job = job_in("PENDING", "");
    char words[SLURM_CAUSE_SIZE];

    (void)state;
    slurm_job_waits(&job, words);
    assert_string_equal(words, "slurm: job 17 waits");
    copy_text(job.reason, sizeof job.reason, "Priority");
    slurm_job_waits(&job, words);
    assert_string_equal(words, "slurm: job 17 waits: Priority");
}

static void test_pace(void **state)
{
    (void)state;
    assert_int_equal(slurm_pace(10000, 0, false, 10), 10000);
    assert_int_equal(slurm_pace(10000, 80000, false, 5000), 10000);
    assert_int_equal(slurm_pace(10000, 0, true, 10), 20000);
    assert_int_equal(slurm_pace(10000, 10000, false, 5001), 20000);
    assert_int_equal(slurm_pace(10000, 160000, true, 10), 300000);
    assert_int_equal(slurm_pace(10000, 300000, true, 10), 300000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_that_can_be_used),
        cmocka_unit_test(test_nodes_that_are_held),
        cmocka_unit_test(test_a_reservation_of_ours),
        cmocka_unit_test(test_unknown_is_never_good),
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_causes),
        cmocka_unit_test(test_why_a_job_waits),
        cmocka_unit_test(test_pace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
