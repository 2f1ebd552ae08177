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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_come_back),
        cmocka_unit_test(test_contested_inputs_are_those_of_runs),
    };

    return cmocka_run_group_tests_name("branches of verdicts", tests, NULL, NULL);
}
