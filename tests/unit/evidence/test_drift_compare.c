/* What of a case is compared, and by whose digests: devices and conditions. */
#include "daemon/base/array.h"
#include "tests/unit/evidence/drift_fixture.h"

/* A device that is wrong before and now hides neither that bits changed nor itself. */
static void test_bits_are_those_of_the_devices_that_agree(void **state)
{
    struct shown from = { .count = 0 }, to = { .count = 0 }, same = { .count = 0 };
    struct drift_case c;

    (void)state;
    show_all(&from, 0, 7, "", 1, 8);
    show(&from, 7, "", 9, 8);
    show_all(&to, 0, 7, "", 2, 8);
    show(&to, 7, "", 9, 8);
    c = compared(&from, VERDICT_DEVICES_DISAGREE, &to, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(c.kind, DRIFT_BITS);
    assert_true(c.bits_told && !c.bits_same);
    assert_says(c, "00000000 in 56 runs of the 7 devices that agree before");
    assert_says(c, "GPU-07 disagrees before and now");
    assert_int_equal(c.to.devices, 7);
    assert_int_equal(c.to.dissenters, 1);
    show_all(&same, 0, 7, "", 1, 8);
    show(&same, 7, "", 9, 8);
    c = compared(&from, VERDICT_DEVICES_DISAGREE, &same, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(c.kind, DRIFT_SAME);
    assert_true(c.bits_told && c.bits_same && !c.proven);
    assert_says(c, "GPU-07 disagrees before and now");
    assert_says(c, "not proven reproducible");
}

/* Changed bits and a new dissenter: both are said. */
static void test_changed_bits_and_disagreement(void **state)
{
    struct shown from = { .count = 0 }, to = { .count = 0 }, same = { .count = 0 };
    struct drift_case c;
    char headline[DRIFT_HEADLINE_SIZE];

    (void)state;
    show_all(&from, 0, 8, "", 1, 8);
    show_all(&to, 0, 7, "", 2, 8);
    show(&to, 7, "", 9, 8);
    c = compared(&from, VERDICT_REPRODUCIBLE, &to, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(c.kind, DRIFT_BITS);
    assert_says(c, "in 64 runs before");
    assert_says(c, "GPU-07 disagrees now");
    drift_headline(&c, 1, headline);
    assert_non_null(strstr(headline, "in 1 of these devices disagree now, too"));
    show_all(&same, 0, 7, "", 1, 8);
    show(&same, 7, "", 9, 8);
    c = compared(&from, VERDICT_REPRODUCIBLE, &same, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(c.kind, DRIFT_DISAGREE_NOW);
    assert_true(c.bits_told && c.bits_same);
    assert_says(c, "GPU-07 shows other bits since (1 of 8 devices)");
    drift_headline(&c, 1, headline);
    assert_null(strstr(headline, "too"));
    /* Repaired, it is another verdict. */
    c = compared(&same, VERDICT_DEVICES_DISAGREE, &from, VERDICT_REPRODUCIBLE);
    assert_int_equal(c.kind, DRIFT_VERDICT);
    assert_says(c, "GPU-07 disagreed before");
}

/* Load changes bits; what was measured without it says nothing of that. */
static void test_equal_conditions_alone_are_compared(void **state)
{
    static const struct {
        const char *options, *words;
        int contention; /* that is to be run; 0: it cannot be requested */
    } table[] = {
        { LOADED, "before contention 2, now plain", 2 },
        { PROBED, "before probes 1, now plain", 0 },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(table); i++) {
        struct shown plain = { .count = 0 }, other = { .count = 0 };
        struct drift_case c;

        show_all(&plain, 0, 3, "", 1, 4);
        show_all(&other, 0, 3, table[i].options, 2, 4);
        c = compared(&plain, VERDICT_REPRODUCIBLE, &other, VERDICT_REPRODUCIBLE);
        assert_int_equal(c.kind, DRIFT_UNKNOWN);
        assert_false(c.bits_told);
        assert_true(c.lacks_to && !c.lacks_from);
        assert_int_equal(c.wanted.contention, 0);
        c = compared(&other, VERDICT_REPRODUCIBLE, &plain, VERDICT_REPRODUCIBLE);
        assert_int_equal(c.kind, DRIFT_UNKNOWN);
        assert_says(c, table[i].words);
        /* Probes are no part of a request for a job: the plain side is run again. */
        assert_int_equal(c.lacks_to, table[i].contention > 0);
        assert_int_equal(c.lacks_from, table[i].contention == 0);
        assert_int_equal(c.wanted.contention, table[i].contention);
    }
}

static void test_plain_conditions_come_first(void **state)
{
    struct shown from = { .count = 0 }, to = { .count = 0 };
    struct drift_case c;

    (void)state;
    show_all(&from, 0, 3, "", 1, 4);
    show_all(&to, 0, 3, "", 1, 4);
    show_all(&to, 0, 3, LOADED, 2, 4);
    c = compared(&from, VERDICT_REPRODUCIBLE, &to, VERDICT_REPRODUCIBLE);
    assert_int_equal(c.kind, DRIFT_SAME);
    assert_string_equal(c.conditions, "");
    /* What changed under load on both sides is not lost. */
    show_all(&from, 0, 3, LOADED, 3, 4);
    show_all(&from, 0, 3, POISONED, 5, 4);
    show_all(&to, 0, 3, POISONED, 5, 4);
    c = compared(&from, VERDICT_REPRODUCIBLE, &to, VERDICT_REPRODUCIBLE);
    assert_int_equal(c.kind, DRIFT_BITS);
    assert_says(c, "with contention 2, before and now");
    assert_int_equal(c.from.compared_runs, 12);
}

/* What turned to varying under load is told, unless something happened without it. */
static void test_what_turned_under_load(void **state)
{
    static const struct {
        int plain_now;
        enum verdict verdict;
        enum drift_kind kind;
        const char *conditions;
    } table[] = {
        { 1, VERDICT_VARIES, DRIFT_VARIES_NOW, "contention 2" },
        { 1, VERDICT_DEVICES_DISAGREE, DRIFT_DISAGREE_NOW, "contention 2" },
        { 1, VERDICT_INCONCLUSIVE, DRIFT_VERDICT, "" },
        { 2, VERDICT_VARIES, DRIFT_BITS, "" },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(table); i++) {
        struct shown from = { .count = 0 }, to = { .count = 0 };
        struct drift_case c;

        show_all(&from, 0, 3, LOADED, 3, 4);
        show_all(&from, 0, 3, "", 1, 4);
        show_all(&to, 0, 3, LOADED, 0, 4);
        show_all(&to, 0, 3, "", table[i].plain_now, 4);
        c = compared(&from, VERDICT_REPRODUCIBLE, &to, table[i].verdict);
        if (c.kind != table[i].kind) {
            fail_msg("%d: %s: %s", i, drift_kind_name(c.kind), c.reason);
        }
        assert_string_equal(c.conditions, table[i].conditions);
    }
}

/* Half of the devices say nothing of all. */
static void test_some_devices_are_not_all(void **state)
{
    (void)state;
    for (int both = 2; both <= 3; both++) {
        struct shown from = { .count = 0 }, to = { .count = 0 };
        struct drift_case c;

        show_all(&from, 4 - both, 4, "", 1, 9);
        show(&from, 9, "", 2, 9);
        for (int n = 0; n < 4; n++) {
            show(&to, n, "", 3 + n, 9);
        }
        c = compared(&from, VERDICT_DEVICES_DISAGREE, &to, VERDICT_INCONCLUSIVE);
        assert_int_equal(c.told, both);
        assert_int_equal(c.bits_told, both == 3);
        assert_int_equal(c.kind, both == 3 ? DRIFT_BITS : DRIFT_UNKNOWN);
    }
}

static struct drift_case on_another_device(bool suspect_before, bool suspect_now,
                                           bool since)
{
    static const char *const suspects[] = { "GPU-03" };
    struct shown from = { .count = 0 }, to = { .count = 0 };
    struct drift_devices then, now;
    struct drift_case c = { .from = { .cell = 1, .runs = 12 },
                            .to = { .cell = 2, .runs = 4 },
                            .since = since };

    show_all(&from, suspect_before ? 3 : 0, suspect_before ? 4 : 3, "", 1, 4);
    show(&to, suspect_before ? 0 : 3, "", 2, 4);
    then = judged(&from);
    now = judged(&to);
    then.suspects = now.suspects = suspects;
    then.suspect_count = suspect_before;
    now.suspect_count = suspect_now;
    c.from.reach = c.to.reach = DRIFT_RUNNABLE;
    c.from.verdict = c.to.verdict = VERDICT_REPRODUCIBLE;
    drift_compare(&c, &then, &now);
    drift_judge(&c);
    return c;
}

/* A wrong device shows other bits whatever the driver. */
static void test_a_wrong_device_is_no_change(void **state)
{
    struct drift_case c = on_another_device(false, false, false);

    (void)state;
    assert_int_equal(c.kind, DRIFT_BITS);
    assert_says(c, "no device was measured in both");
    for (int since = 0; since < 2; since++) {
        c = on_another_device(false, true, since);
        assert_int_equal(c.kind, DRIFT_UNKNOWN);
        assert_false(c.bits_told);
        assert_says(c, "all that was measured now, GPU-03, disagrees");
        assert_says(c, "no device was measured in both");
        assert_true(c.lacks_to && !c.lacks_from);
    }
    c = on_another_device(true, false, false);
    assert_int_equal(c.kind, DRIFT_UNKNOWN);
    assert_says(c, "all that was measured before, GPU-03");
    assert_true(c.lacks_from && !c.lacks_to);
    c.from.place_suspect = true;
    drift_judge(&c);
    assert_false(c.lacks_from || c.lacks_to);
}

/* Beside a device that is named in another case, the others are believed. */
static void test_the_others_are_believed(void **state)
{
    static const char *const suspects[] = { "GPU-01", "GPU-03" };
    struct shown from = { .count = 0 }, to = { .count = 0 };
    struct drift_devices then, now;
    struct drift_case c = { .from = { .cell = 1, .runs = 12 },
                            .to = { .cell = 2, .runs = 8 } };

    (void)state;
    show_all(&from, 0, 3, "", 1, 4);
    show(&to, 2, "", 1, 4);
    show(&to, 3, "", 2, 4);
    then = judged(&from);
    now = judged(&to);
    now.suspects = suspects;
    now.suspect_count = 2;
    c.from.verdict = VERDICT_REPRODUCIBLE;
    c.to.verdict = VERDICT_INCONCLUSIVE;
    drift_compare(&c, &then, &now);
    drift_judge(&c);
    assert_int_equal(c.kind, DRIFT_VERDICT);
    assert_true(c.bits_told && c.bits_same && !c.proven);
    assert_says(c, "GPU-03 disagrees now");
    assert_int_equal(c.to.compared_runs, 4);
}

/* Where the devices of neither side agree, each one is compared with itself. */
static void test_each_device_with_itself(void **state)
{
    const struct {
        int first, second; /* what they show now */
        enum verdict verdict;
        enum drift_kind kind;
        int bits; /* 1: same, 0: changed, -1: not told */
        const char *words;
    } table[] = {
        { 1, 2, VERDICT_DEVICES_DISAGREE, DRIFT_SAME, 1, "its bits of before" },
        { 1, 2, VERDICT_INCONCLUSIVE, DRIFT_VERDICT, 1, "its bits of before" },
        { 3, 4, VERDICT_DEVICES_DISAGREE, DRIFT_BITS, 0, "shows other bits" },
        { 1, 4, VERDICT_DEVICES_DISAGREE, DRIFT_BITS, 0,
          "GPU-01 shows other bits since" },
        { 1, 4, VERDICT_INCONCLUSIVE, DRIFT_UNKNOWN, -1, "(1 of 2 devices)" },
        { 3, 3, VERDICT_INCONCLUSIVE, DRIFT_BITS, 0, "shows other bits" },
        { 1, 1, VERDICT_REPRODUCIBLE, DRIFT_VERDICT, -1,
          "GPU-01 shows other bits since" },
        { 3, 4, VERDICT_VARIES, DRIFT_VERDICT, -1,
          "devices_disagree before, varies now" },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(table); i++) {
        struct shown from = { .count = 0 }, to = { .count = 0 };
        struct drift_case c;

        show(&from, 0, "", 1, 9);
        show(&from, 1, "", 2, 9);
        show(&to, 0, "", table[i].first, 9);
        show(&to, 1, "", table[i].second, 9);
        c = compared(&from, VERDICT_DEVICES_DISAGREE, &to, table[i].verdict);
        if (c.kind != table[i].kind) {
            fail_msg("%d: %s: %s", i, drift_kind_name(c.kind), c.reason);
        }
        assert_int_equal(c.bits_told ? c.bits_same : -1, table[i].bits);
        assert_says(c, table[i].words);
    }
}

/* Which device departs is said, and not that the workload varies. */
static void test_one_device_that_departs_cannot_be_told_yet(void **state)
{
    struct shown from = { .count = 0 }, to = { .count = 0 }, all = { .count = 0 };
    struct drift_case c;

    (void)state;
    show_all(&from, 0, 8, "", 1, 5);
    show_all(&to, 0, 7, "", 1, 2);
    show(&to, 7, "", 2, 2);
    c = compared(&from, VERDICT_REPRODUCIBLE, &to, VERDICT_INCONCLUSIVE);
    assert_int_equal(c.kind, DRIFT_UNKNOWN);
    assert_says(c, "GPU-07 shows other bits since (1 of 8 devices)");
    assert_false(c.lacks_from || c.lacks_to); /* one more device tells nothing */
    show_all(&all, 0, 8, "", 2, 5);
    c = compared(&from, VERDICT_REPRODUCIBLE, &all, VERDICT_INCONCLUSIVE);
    assert_int_equal(c.kind, DRIFT_BITS);
    assert_int_equal(c.changed, 8);
}

/* What varies is not compared by a digest, whatever it shows most often. */
static void test_no_digest_of_what_varies(void **state)
{
    struct shown from = { .count = 0 }, to = { .count = 0 };
    struct drift_case c;

    (void)state;
    show_all(&from, 0, 3, "", 0, 5);
    show_all(&to, 0, 3, "", 0, 5);
    for (int i = 0; i < 3; i++) {
        snprintf(from.digests[i], sizeof from.digests[i], "%032x", 7);
        snprintf(to.digests[i], sizeof to.digests[i], "%032x", 8);
        from.rows[i].mode_runs = to.rows[i].mode_runs = 4;
    }
    c = compared(&from, VERDICT_VARIES, &to, VERDICT_VARIES);
    assert_false(c.bits_told);
    assert_int_equal(c.kind, DRIFT_VARIES);
    assert_string_equal(c.from.digest, "");
}

static void test_many_names_are_counted(void **state)
{
    struct shown from = { .count = 0 }, to = { .count = 0 };
    struct drift_case c;

    (void)state;
    show_all(&from, 0, 16, "", 1, 40);
    show_all(&to, 0, 11, "", 1, 40);
    show_all(&to, 11, 16, "", 2, 40);
    c = compared(&from, VERDICT_REPRODUCIBLE, &to, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(c.to.dissenters, 5);
    assert_string_equal(c.to.dissenting, "GPU-11, GPU-12, GPU-13 and 2 more");
    assert_says(c, "disagree now");
}

/* A device that was flashed within a side has shown what it showed in both states. */
static void test_a_flash_within_a_side(void **state)
{
    struct shown from = { .count = 0 }, to = { .count = 0 }, varied = { .count = 0 };
    struct drift_case c;

    (void)state;
    show_all(&from, 0, 4, "", 1, 4);
    show_all(&to, 0, 4, "", 1, 4);
    show_all(&to, 0, 4, "", 1, 6);
    for (int i = 4; i < 8; i++) {
        to.rows[i].state = "{\"vbios\":\"97\"}";
    }
    c = compared(&from, VERDICT_REPRODUCIBLE, &to, VERDICT_REPRODUCIBLE);
    assert_int_equal(c.kind, DRIFT_SAME);
    assert_int_equal(c.common, 4);
    assert_int_equal(c.to.compared_runs, 40);
    show_all(&varied, 0, 4, "", 1, 4);
    show_all(&varied, 0, 2, "", 2, 6);
    show(&varied, 2, "", 0, 6);
    for (int i = 4; i < 7; i++) {
        varied.rows[i].state = "{\"vbios\":\"97\"}";
    }
    c = compared(&from, VERDICT_REPRODUCIBLE, &varied, VERDICT_INCONCLUSIVE);
    assert_string_equal(c.to.digest, "");
    assert_int_equal(c.told, 1);           /* GPU-03 */
    varied = (struct shown){ .count = 0 }; /* in the first of its states alone */
    show(&varied, 0, "", 0, 4);
    show(&varied, 0, "", 1, 6);
    varied.rows[1].state = "{\"vbios\":\"97\"}";
    c = compared(&from, VERDICT_REPRODUCIBLE, &varied, VERDICT_VARIES);
    assert_string_equal(c.to.digest, "");
    /* Named in either state, and so in the side. */
    for (int i = 0; i < 4; i++) {
        varied = i ? varied : (struct shown){ .count = 0 };
        show(&varied, i, "", i == 3 ? 9 : 1, 1);
        show(&varied, i, "", i == 3 ? 9 : 1, 30);
        varied.rows[2 * i + 1].state = "{\"vbios\":\"97\"}";
    }
    c = compared(&from, VERDICT_REPRODUCIBLE, &varied, VERDICT_DEVICES_DISAGREE);
    assert_string_equal(c.to.dissenting, "GPU-03");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_are_those_of_the_devices_that_agree),
        cmocka_unit_test(test_changed_bits_and_disagreement),
        cmocka_unit_test(test_equal_conditions_alone_are_compared),
        cmocka_unit_test(test_plain_conditions_come_first),
        cmocka_unit_test(test_what_turned_under_load),
        cmocka_unit_test(test_some_devices_are_not_all),
        cmocka_unit_test(test_a_wrong_device_is_no_change),
        cmocka_unit_test(test_the_others_are_believed),
        cmocka_unit_test(test_each_device_with_itself),
        cmocka_unit_test(test_one_device_that_departs_cannot_be_told_yet),
        cmocka_unit_test(test_no_digest_of_what_varies),
        cmocka_unit_test(test_a_flash_within_a_side),
        cmocka_unit_test(test_many_names_are_counted),
    };

    return cmocka_run_group_tests_name("drift compared", tests, NULL, NULL);
}
