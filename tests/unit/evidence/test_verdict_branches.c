/* Words of verdicts, and inputs that are contested where nothing completed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/mem.h"
#include "daemon/evidence/verdict.h"

static void test_words_come_back(void **state)
{
    static const char *const others[] = { "", "Varies", "green", "reproducible " };
    enum verdict verdict;

    (void)state;
    for (int i = 0; i < VERDICT_COUNT; i++) {
        verdict = VERDICT_COUNT;
        assert_int_equal(verdict_parse(verdict_name((enum verdict)i), &verdict), 0);
        assert_int_equal(verdict, i);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        verdict = VERDICT_STALE;
        assert_int_equal(verdict_parse(others[i], &verdict), -1);
        assert_int_equal(verdict, VERDICT_STALE); /* not the first by accident */
    }
}

/* That others disagree about the inputs of a case says nothing of a cell without a run:
 * it is what it would be without them. */
static void test_contested_inputs_are_those_of_runs(void **state)
{
    const struct control control = { .runs = 5, .differed = true, .varied = true };
    struct evidence e = { .distinct_digests = 0 };

    (void)state;
    copy_text(e.contested, sizeof e.contested, "1 of 2 hosts say so");
    assert_int_equal(verdict_judge(&e, &control).verdict, VERDICT_UNMEASURED);
    e.runs[OUTCOME_UNSUPPORTED] = 1;
    assert_int_equal(verdict_judge(&e, &control).verdict, VERDICT_UNSUPPORTED);
    e.runs[OUTCOME_UNSUPPORTED] = 0;
    e.runs[OUTCOME_CRASHED] = 1;
    assert_int_equal(verdict_judge(&e, &control).verdict, VERDICT_FAILING);
    e.runs[OUTCOME_CRASHED] = 0;
    e.runs[OUTCOME_COMPLETED] = 1;
    e.distinct_digests = 1;
    assert_int_equal(verdict_judge(&e, &control).verdict, VERDICT_INCONCLUSIVE);
    assert_string_equal(verdict_judge(&e, &control).reason,
                        "its inputs are contested: 1 of 2 hosts say so");
}

/* A device has what its own runs earned, and no fresher than they are. */
static void test_a_device_is_as_old_as_its_own_runs(void **state)
{
    const struct device_evidence fresh = { .runs = 5, .last_ms = 1000 };
    const struct device_evidence old = { .runs = 5, .last_ms = 1 };
    const struct device_evidence one = { .runs = 1, .last_ms = 1000 };
    const struct device_evidence named = { .runs = 5, .last_ms = 1, .dissents = true };
    const struct device_evidence varied = { .runs = 5, .last_ms = 1000, .varied = true };
    const struct {
        enum verdict cell, agreeing;
        const struct device_evidence *device;
        enum verdict expected;
    } cases[] = {
        { VERDICT_REPRODUCIBLE, VERDICT_UNMEASURED, &fresh, VERDICT_REPRODUCIBLE },
        { VERDICT_REPRODUCIBLE, VERDICT_UNMEASURED, &old, VERDICT_STALE },
        { VERDICT_REPRODUCIBLE, VERDICT_UNMEASURED, &one, VERDICT_INCONCLUSIVE },
        { VERDICT_INCONCLUSIVE, VERDICT_UNMEASURED, &fresh, VERDICT_INCONCLUSIVE },
        { VERDICT_VARIES, VERDICT_UNMEASURED, &fresh, VERDICT_INCONCLUSIVE },
        { VERDICT_VARIES, VERDICT_UNMEASURED, &varied, VERDICT_VARIES },
        { VERDICT_FAILING, VERDICT_UNMEASURED, &fresh, VERDICT_FAILING },
        { VERDICT_UNSUPPORTED, VERDICT_UNMEASURED, &old, VERDICT_UNSUPPORTED },
        { VERDICT_DEVICES_DISAGREE, VERDICT_REPRODUCIBLE, &fresh, VERDICT_REPRODUCIBLE },
        { VERDICT_DEVICES_DISAGREE, VERDICT_REPRODUCIBLE, &old, VERDICT_STALE },
        { VERDICT_DEVICES_DISAGREE, VERDICT_REPRODUCIBLE, &one, VERDICT_INCONCLUSIVE },
        { VERDICT_DEVICES_DISAGREE, VERDICT_REPRODUCIBLE, &named,
          VERDICT_DEVICES_DISAGREE },
        { VERDICT_DEVICES_DISAGREE, VERDICT_REPRODUCIBLE, &varied, VERDICT_INCONCLUSIVE },
        { VERDICT_DEVICES_DISAGREE, VERDICT_UNMEASURED, &fresh, VERDICT_INCONCLUSIVE },
        { VERDICT_DEVICES_DISAGREE, VERDICT_FAILING, &fresh, VERDICT_FAILING },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(verdict_of_device(cases[i].cell, cases[i].agreeing, 1000,
                                           cases[i].device, 1100, 200),
                         cases[i].expected);
    }
    assert_int_equal(
        verdict_of_device(VERDICT_REPRODUCIBLE, VERDICT_UNMEASURED, 1, &fresh, 1100, 200),
        VERDICT_STALE); /* the control varied too long ago */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_device_is_as_old_as_its_own_runs),
        cmocka_unit_test(test_words_come_back),
        cmocka_unit_test(test_contested_inputs_are_those_of_runs),
    };

    return cmocka_run_group_tests_name("branches of verdicts", tests, NULL, NULL);
}
