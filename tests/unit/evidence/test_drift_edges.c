/* What is rarely seen of a case between two environments: devices that are named, sides
 * of which little is known, conditions that cannot be requested. */
#include "daemon/base/array.h"
#include "tests/unit/evidence/drift_fixture.h"

#define CAPTURED "{\"capture\":\"0:1:x\"}"
#define ODD      "{\"contention\":0}" /* no canonical text */

static const char *const gpu_1_and_2[] = { "GPU-01", "GPU-02" };

/* As compared, where devices of BEFORE or NOW are named in other cases. */
static struct drift_case among_suspects(struct shown *from, int suspects_before,
                                        struct shown *to, int suspects_now, bool since)
{
    struct drift_devices then = judged(from);
    struct drift_devices now = judged(to);
    struct drift_case c = { .since = since };

    c.from = (struct drift_side){ .cell = 1, .verdict = VERDICT_INCONCLUSIVE, .runs = 8 };
    c.to = c.from;
    c.from.reach = c.to.reach = DRIFT_RUNNABLE;
    then.suspects = now.suspects = gpu_1_and_2;
    then.suspect_count = suspects_before;
    now.suspect_count = suspects_now;
    drift_compare(&c, &then, &now);
    drift_judge(&c);
    return c;
}

static void test_other_devices_dissent_now(void **state)
{
    struct shown from = { .count = 0 }, to = { .count = 0 };
    struct drift_case c;

    (void)state;
    show(&from, 0, "", 9, 8);
    show_all(&from, 1, 8, "", 1, 8);
    show_all(&to, 0, 7, "", 1, 8);
    show(&to, 7, "", 9, 8);
    c = compared(&from, VERDICT_DEVICES_DISAGREE, &to, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(c.kind, DRIFT_DISAGREE_NOW);
    assert_true(c.bits_same);
    assert_int_equal(c.newly_dissenting, 1);
    assert_says(c, "; GPU-00 disagreed before; GPU-07 disagrees now");
}

/* One that was not there before dissents newly, too. */
static void test_a_new_device_dissents(void **state)
{
    struct shown from = { .count = 0 }, to = { .count = 0 };
    struct drift_case c;

    (void)state;
    show_all(&from, 0, 7, "", 1, 8);
    show_all(&to, 0, 7, "", 1, 8);
    show(&to, 7, "", 9, 8);
    c = compared(&from, VERDICT_REPRODUCIBLE, &to, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(c.newly_dissenting, 1);
    assert_int_equal(c.kind, DRIFT_DISAGREE_NOW);
    assert_int_equal(c.common, 7);
    assert_int_equal(c.changed, 0);
}

/* Whichever is measured in both is no witness if it is named. */
static void test_a_named_device_is_no_witness(void **state)
{
    static const char words[] =
        "; no device that agrees with its equals was measured in both";
    struct shown from = { .count = 0 }, to = { .count = 0 }, two = { .count = 0 };
    struct drift_case c;

    (void)state;
    show_all(&from, 0, 7, "", 1, 8);
    show(&from, 7, "", 9, 8);
    show(&to, 7, "", 2, 8);
    c = compared(&from, VERDICT_DEVICES_DISAGREE, &to, VERDICT_REPRODUCIBLE);
    assert_int_equal(c.kind, DRIFT_BITS);
    assert_int_equal(c.common, 1);
    assert_int_equal(c.common_agreeing, 0);
    assert_says(c, words);
    /* In another case, of either side. */
    from.count = to.count = 0;
    show_all(&from, 0, 2, "", 1, 8);
    show(&to, 1, "", 2, 8);
    show(&to, 3, "", 2, 8);
    for (int now = 0; now < 2; now++) {
        c = among_suspects(&from, !now, &to, now, false);
        assert_int_equal(c.kind, DRIFT_BITS);
        assert_int_equal(c.common, 1);
        assert_int_equal(c.common_agreeing, 0);
        assert_says(c, words);
    }
    c = among_suspects(&from, 0, &to, 0, false);
    assert_int_equal(c.common_agreeing, 1);
    assert_null(strstr(c.reason, words));
    /* Those that agree are counted. */
    show(&two, 1, "", 9, 5);
    show(&two, 3, "", 2, 5);
    c = among_suspects(&from, 0, &two, 1, false);
    assert_int_equal(c.kind, DRIFT_BITS);
    assert_int_equal(c.to.devices, 1);
    assert_says(c, "in 5 runs of the 1 device that agrees now");
}

/* Since a change on its host, a device is compared with itself, named or not. */
static void test_a_named_device_changes_on_its_host(void **state)
{
    struct shown from = { .count = 0 }, to = { .count = 0 };
    struct drift_case c;

    (void)state;
    show(&from, 1, "", 1, 4);
    show(&to, 1, "", 2, 4);
    c = among_suspects(&from, 1, &to, 1, true);
    assert_int_equal(c.kind, DRIFT_BITS);
    assert_true(c.bits_told && !c.bits_same);
    c = among_suspects(&from, 1, &to, 1, false);
    assert_int_equal(c.kind, DRIFT_UNKNOWN);
    assert_true(!c.bits_told && c.lacks_from && c.lacks_to);
    c.from.reach = DRIFT_NO_DEVICE;
    drift_judge(&c);
    assert_true(!c.lacks_from && c.lacks_to);
    c.from.reach = DRIFT_RUNNABLE;
    c.to.reach = DRIFT_NO_DEVICE;
    drift_judge(&c);
    assert_true(c.lacks_from && !c.lacks_to);
    c.to.reach = DRIFT_RUNNABLE;
    c.to.place_suspect = true;
    drift_judge(&c);
    assert_true(c.lacks_from && !c.lacks_to);
}

/* Where each device is named elsewhere, none is believed against another. */
static void test_all_are_suspects(void **state)
{
    struct shown from = { .count = 0 }, to = { .count = 0 };
    struct drift_case c;

    (void)state;
    show_all(&from, 1, 3, "", 1, 4);
    show(&to, 1, "", 1, 4);
    show(&to, 2, "", 2, 4);
    c = among_suspects(&from, 0, &to, 2, false);
    assert_string_equal(c.to.digest, "");
    assert_int_equal(c.to.devices, 2);
    assert_true(c.to.suspects_only);
    assert_int_equal(c.kind, DRIFT_UNKNOWN);
    assert_false(c.bits_told);
}

/* Unknown digests are no equal ones. */
static void test_no_digest_is_known(void **state)
{
    struct shown from = { .count = 0 }, to = { .count = 0 };
    struct drift_case c;

    (void)state;
    show_all(&from, 0, 2, "", 1, 4);
    show_all(&to, 0, 2, "", 1, 4);
    for (int i = 0; i < 2; i++) {
        from.digests[i][0] = to.digests[i][0] = '\0';
    }
    c = compared(&from, VERDICT_REPRODUCIBLE, &to, VERDICT_REPRODUCIBLE);
    assert_string_equal(c.from.digest, "");
    assert_int_equal(c.told, 0);
    assert_int_equal(c.kind, DRIFT_UNKNOWN);
    assert_false(c.bits_told || c.bits_same || c.proven);
}

/* What was measured on one side, up to or from another change. */
static void test_between_changes(void **state)
{
    struct drift_case c = { .since = true, .skipped = true };

    (void)state;
    c.to = (struct drift_side){ .cell = 1, .verdict = VERDICT_REPRODUCIBLE, .runs = 5 };
    c.from.reach = c.to.reach = DRIFT_RUNNABLE;
    drift_judge(&c);
    assert_int_equal(c.kind, DRIFT_UNKNOWN);
    assert_says(c, "not measured between the change before and this one");
    assert_false(c.lacks_from || c.lacks_to); /* what is over cannot be run */
    c.from = c.to;
    c.to = (struct drift_side){ .reach = DRIFT_RUNNABLE };
    c.skipped = false;
    c.until = true;
    drift_judge(&c);
    assert_int_equal(c.kind, DRIFT_UNKNOWN);
    assert_string_equal(c.reason, "not measured before the next change");
    assert_false(c.lacks_from || c.lacks_to);
}

static void test_one_side_is_empty(void **state)
{
    struct shown some = { .count = 0 }, none = { .count = 0 };
    struct drift_case c;

    (void)state;
    show_all(&some, 0, 2, LOADED, 1, 4);
    c = compared(&some, VERDICT_REPRODUCIBLE, &none, VERDICT_UNMEASURED);
    assert_false(c.apart);
    assert_string_equal(c.from.conditions, "contention 2");
    assert_string_equal(c.to.conditions, "");
    assert_int_equal(c.from.devices, 2);
    assert_false(c.to.suspects_only);
    assert_int_equal(c.kind, DRIFT_UNKNOWN);
    assert_true(c.lacks_to && !c.lacks_from);
    c = compared(&none, VERDICT_UNMEASURED, &some, VERDICT_REPRODUCIBLE);
    assert_false(c.apart || c.from.suspects_only);
    assert_true(c.lacks_from && !c.lacks_to);
}

/* Equal conditions are run where there is a device, and only if a job can request them.
 */
static void test_which_conditions_are_run(void **state)
{
    static const struct {
        const char *before, *now;
        enum drift_reach from, to;
        int contention; /* -1: nothing is run */
        bool lacks_from;
    } table[] = {
        { "", LOADED, DRIFT_RUNNABLE, DRIFT_NO_DEVICE, 2, true },
        { LOADED, "", DRIFT_NO_DEVICE, DRIFT_RUNNABLE, 2, false },
        { "", LOADED, DRIFT_NO_DEVICE, DRIFT_NO_CASE, -1, false },
        { CAPTURED, PROBED, DRIFT_RUNNABLE, DRIFT_RUNNABLE, -1, false },
        { CAPTURED, LOADED, DRIFT_RUNNABLE, DRIFT_RUNNABLE, 2, true },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(table); i++) {
        struct shown from = { .count = 0 }, to = { .count = 0 };
        bool runs = table[i].contention >= 0;
        struct drift_case c;

        show_all(&from, 0, 2, table[i].before, 1, 4);
        show_all(&to, 0, 2, table[i].now, 2, 4);
        c = compared(&from, VERDICT_REPRODUCIBLE, &to, VERDICT_REPRODUCIBLE);
        c.from.reach = table[i].from;
        c.to.reach = table[i].to;
        drift_judge(&c);
        assert_true(c.apart);
        assert_int_equal(c.kind, DRIFT_UNKNOWN);
        assert_int_equal(c.lacks_from, runs && table[i].lacks_from);
        assert_int_equal(c.lacks_to, runs && !table[i].lacks_from);
        assert_int_equal(c.wanted.contention, runs ? table[i].contention : 0);
    }
}

/* Conditions that cannot be read are shown as they are stored. */
static void test_conditions_without_words(void **state)
{
    struct shown from = { .count = 0 }, to = { .count = 0 };
    struct drift_case c;

    (void)state;
    show_all(&from, 0, 2, ODD, 1, 4);
    show_all(&to, 0, 2, ODD, 2, 4);
    c = compared(&from, VERDICT_REPRODUCIBLE, &to, VERDICT_REPRODUCIBLE);
    assert_int_equal(c.kind, DRIFT_BITS);
    assert_string_equal(c.conditions, ODD);
    assert_string_equal(c.from.conditions, ODD);
}

/* Under which of several conditions bits are compared. */
static void test_the_conditions_that_tell(void **state)
{
    static const struct {
        int plain[2], plain_runs[2]; /* digests and runs, before and now */
        int loaded[2], poisoned[2];  /* likewise; 0: it varies; -1: not measured */
        enum verdict verdict;
        const char *conditions;
        enum drift_kind kind;
    } table[] = {
        /* Plain runs varied before, or were too few: those under load tell. */
        { { 0, 1 },
          { 4, 4 },
          { 1, 2 },
          { -1, -1 },
          VERDICT_INCONCLUSIVE,
          "contention 2",
          DRIFT_BITS },
        { { 1, 2 },
          { 1, 4 },
          { 1, 2 },
          { -1, -1 },
          VERDICT_INCONCLUSIVE,
          "contention 2",
          DRIFT_BITS },
        { { 1, 2 },
          { 4, 1 },
          { 1, 2 },
          { -1, -1 },
          VERDICT_INCONCLUSIVE,
          "contention 2",
          DRIFT_BITS },
        /* What varies now matters more than what changed, of conditions that are not
         * plain. */
        { { -1, -1 },
          { 0, 0 },
          { 1, 2 },
          { 1, 0 },
          VERDICT_VARIES,
          "memory-poison 11111111",
          DRIFT_VARIES_NOW },
        { { -1, -1 },
          { 0, 0 },
          { 1, 0 },
          { 1, 2 },
          VERDICT_VARIES,
          "contention 2",
          DRIFT_VARIES_NOW },
        { { 1, 2 }, { 4, 4 }, { 1, 0 }, { -1, -1 }, VERDICT_VARIES, "", DRIFT_BITS },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(table); i++) {
        struct shown sides[2] = { { .count = 0 }, { .count = 0 } };
        struct drift_case c;

        for (int now = 0; now < 2; now++) {
            const int digests[] = { table[i].plain[now], table[i].loaded[now],
                                    table[i].poisoned[now] };
            static const char *const options[] = { "", LOADED, POISONED };

            for (int k = 0; k < COUNT_OF(digests); k++) {
                if (digests[k] >= 0) {
                    show(&sides[now], 0, options[k], digests[k],
                         k ? 4 : table[i].plain_runs[now]);
                }
            }
        }
        c = compared(&sides[0], VERDICT_REPRODUCIBLE, &sides[1], table[i].verdict);
        if (c.kind != table[i].kind || strcmp(c.conditions, table[i].conditions) != 0) {
            fail_msg("%d: %s under '%s': %s", i, drift_kind_name(c.kind), c.conditions,
                     c.reason);
        }
    }
}

/* Half of the devices were measured on both sides; COMMON says what they show now. */
static struct drift_case half_in_common(const int common[2], int runs,
                                        enum verdict before)
{
    struct shown from = { .count = 0 }, to = { .count = 0 };

    show(&from, 0, "", 1, 9);
    show(&from, 1, "", 2, runs);
    show(&to, 0, "", common[0], 9);
    show(&to, 1, "", common[1], 9);
    show(&to, 2, "", 5, 9);
    show(&to, 3, "", 6, 9);
    return compared(&from, before, &to, VERDICT_DEVICES_DISAGREE);
}

/* Devices disagree on both sides, and not most of them were measured on both. */
static void test_some_of_those_that_disagree(void **state)
{
    static const int same[] = { 1, 2 }, one_other[] = { 1, 4 }, all_other[] = { 3, 4 };
    struct drift_case c = half_in_common(same, 9, VERDICT_DEVICES_DISAGREE);

    (void)state;
    assert_int_equal(c.kind, DRIFT_UNKNOWN); /* the others may have changed */
    assert_int_equal(c.told, 2);
    assert_false(c.bits_told);
    c = half_in_common(one_other, 9, VERDICT_INCONCLUSIVE);
    assert_int_equal(c.kind, DRIFT_UNKNOWN);
    assert_false(c.bits_told);
    assert_says(c, "GPU-01 shows other bits since (1 of 2 devices)");
    c = half_in_common(all_other, 9, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(c.kind, DRIFT_BITS);
    assert_says(c, "GPU-00, GPU-01 show other bits since (2 of 2 devices)");
    /* One process of a device says nothing of it. */
    c = half_in_common(one_other, 1, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(c.told, 1);
    assert_int_equal(c.changed, 0);
    assert_int_equal(c.kind, DRIFT_UNKNOWN);
}

/* What varied before, if only under other conditions, is no change of each device. */
static void test_what_varied_is_not_each_device(void **state)
{
    struct shown from = { .count = 0 }, to = { .count = 0 };
    struct drift_case c;

    (void)state;
    for (int n = 0; n < 2; n++) {
        show(&from, n, "", 1 + n, 9);
        show(&to, n, "", 3 + n, 9);
    }
    c = compared(&from, VERDICT_VARIES, &to, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(c.kind, DRIFT_VERDICT);
    assert_false(c.bits_told);
    assert_says(c, "varies before, devices_disagree now");
    assert_says(c, "GPU-00, GPU-01 show other bits since");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_devices_dissent_now),
        cmocka_unit_test(test_a_new_device_dissents),
        cmocka_unit_test(test_a_named_device_is_no_witness),
        cmocka_unit_test(test_a_named_device_changes_on_its_host),
        cmocka_unit_test(test_all_are_suspects),
        cmocka_unit_test(test_no_digest_is_known),
        cmocka_unit_test(test_between_changes),
        cmocka_unit_test(test_one_side_is_empty),
        cmocka_unit_test(test_which_conditions_are_run),
        cmocka_unit_test(test_conditions_without_words),
        cmocka_unit_test(test_the_conditions_that_tell),
        cmocka_unit_test(test_some_of_those_that_disagree),
        cmocka_unit_test(test_what_varied_is_not_each_device),
    };

    return cmocka_run_group_tests_name("drift edges", tests, NULL, NULL);
}
