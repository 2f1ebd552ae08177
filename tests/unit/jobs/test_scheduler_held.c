/* Items that are held: not before their release, and nobody waits for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/mem.h"
#include <cmocka.h>

#include "daemon/jobs/scheduler.h"

static struct job_item item(int seq, const char *device, bool held)
{
    struct job_item i = { .seq = seq, .runs_wanted = 2, .held = held };

    copy_text(i.key.workload, sizeof i.key.workload, "w");
    copy_text(i.device, sizeof i.device, device);
    return i;
}

static void test_a_held_item_waits_for_its_release(void **state)
{
    struct job_item items[] = { item(0, "a", true), item(1, "b", false) };
    struct job job = { .id = "01M85BZ2PB9P4GGHC5X3N0KK4K",
                       .priority = JOB_SCHEDULED,
                       .items = items,
                       .item_count = 2 };
    struct scheduler *s = scheduler_new();
    struct scheduler_pick pick;

    (void)state;
    scheduler_add(s, &job);
    assert_false(scheduler_next(s, "a", &pick));
    assert_true(scheduler_next(s, "b", &pick));
    scheduler_release(s, job.id, 0, NULL);
    for (int run = 0; run < 2; run++) { /* once released, all of its runs */
        assert_true(scheduler_next(s, "a", &pick));
        assert_int_equal(pick.item->seq, 0);
        scheduler_finished(s, job.id, 0, OUTCOME_COMPLETED, 1, false);
    }
    assert_false(scheduler_next(s, "a", &pick));
    scheduler_free(s);
}

static void test_what_is_held_keeps_nobody_from_the_device(void **state)
{
    struct job_item held = item(0, "a", true);
    struct job_item other = item(0, "a", false);
    struct job first = { .id = "01M85BZ2PB9P4GGHC5X3N0KK4K",
                         .priority = JOB_SCHEDULED,
                         .items = &held,
                         .item_count = 1 };
    struct job second = { .id = "01M85BZ2PB9P4GGHC5X3N0KK4L",
                          .priority = JOB_BACKGROUND,
                          .items = &other,
                          .item_count = 1 };
    struct scheduler *s = scheduler_new();
    struct scheduler_pick pick;

    (void)state;
    scheduler_add(s, &first);
    scheduler_add(s, &second);
    assert_true(scheduler_next(s, "a", &pick));
    assert_string_equal(pick.job, second.id);
    scheduler_free(s);
}

/* A restart holds what it had added. */
static void test_what_is_held_later_waits_likewise(void **state)
{
    struct job_item only = item(0, "a", false);
    struct job job = { .id = "01M85BZ2PB9P4GGHC5X3N0KK4K",
                       .priority = JOB_SCHEDULED,
                       .items = &only,
                       .item_count = 1 };
    struct scheduler *s = scheduler_new();
    struct scheduler_pick pick;

    (void)state;
    scheduler_add(s, &job);
    scheduler_hold(s, job.id, 0);
    scheduler_hold(s, job.id, 1); /* there is none */
    scheduler_hold(s, "unknown", 0);
    assert_false(scheduler_next(s, "a", &pick));
    scheduler_release(s, job.id, 0, NULL);
    assert_true(scheduler_next(s, "a", &pick));
    scheduler_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_held_later_waits_likewise),
        cmocka_unit_test(test_a_held_item_waits_for_its_release),
        cmocka_unit_test(test_what_is_held_keeps_nobody_from_the_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
