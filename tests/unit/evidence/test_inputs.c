/* Which inputs are those of a case: by majority of hosts, and of the runs of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"
#include "daemon/evidence/inputs.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "cccccccccccccccccccccccccccccccc"

/* WANTED: the digest; NULL: contested, and the words hold both of its camps' first. */
static void expect(const struct input_count *counts, int count, const char *wanted)
{
    struct inputs inputs = inputs_judge(counts, count, "");

    assert_string_equal(inputs.digest, wanted ? wanted : "");
    assert_int_equal(inputs.contested, !wanted);
    assert_int_equal(inputs.words[0] != '\0', !wanted);
}

static void test_nothing_was_said(void **state)
{
    struct inputs inputs = inputs_judge(NULL, 0, "");

    (void)state;
    assert_string_equal(inputs.digest, "");
    assert_false(inputs.contested);
}

static void test_runs_of_one_host(void **state)
{
    const struct input_count one[] = { { A, "h", 1, "R1" } };
    const struct input_count tie[] = { { A, "h", 1, "R1" }, { B, "h", 1, "R2" } };
    const struct input_count majority[] = { { A, "h", 1, "R1" }, { B, "h", 2, "R2" } };
    const struct input_count half[] = { { A, "h", 2, "R1" },
                                        { B, "h", 1, "R2" },
                                        { C, "h", 1, "R3" } };

    (void)state;
    expect(one, COUNT_OF(one), A);
    expect(tie, COUNT_OF(tie), NULL);
    expect(majority, COUNT_OF(majority), B);
    expect(half, COUNT_OF(half), NULL);
}

/* However often a host runs, it has one vote. */
static void test_one_host_condemns_no_other(void **state)
{
    const struct input_count liar[] = { { A, "liar", 59, "R1" },
                                        { B, "g", 1, "R2" },
                                        { B, "h", 1, "R3" } };
    const struct input_count two[] = { { A, "liar", 59, "R1" }, { B, "h", 1, "R2" } };

    (void)state;
    expect(liar, COUNT_OF(liar), B);
    expect(two, COUNT_OF(two), NULL);
}

/* A host that contradicts itself has no vote, and counts among the hosts. */
static void test_a_host_that_contradicts_itself(void **state)
{
    const struct input_count one_left[] = { { A, "g", 1, "R1" },
                                            { B, "g", 1, "R2" },
                                            { B, "h", 1, "R3" } };
    const struct input_count two_left[] = { { A, "f", 1, "R1" },
                                            { B, "f", 1, "R2" },
                                            { B, "g", 1, "R3" },
                                            { B, "h", 1, "R4" } };

    (void)state;
    expect(one_left, COUNT_OF(one_left), NULL);
    expect(two_left, COUNT_OF(two_left), B);
}

static void test_camps_are_named(void **state)
{
    const struct input_count counts[] = { { A, "f", 1, "R4" },
                                          { C, "g", 1, "R2" },
                                          { C, "h", 1, "R1" },
                                          { B, "i", 1, "R3" } };

    (void)state;
    assert_string_equal(inputs_judge(counts, COUNT_OF(counts), "").words,
                        "2 of 4 hosts say cccccccc (run R1 on h), 1 say aaaaaaaa (run R4 "
                        "on f)");
}

static void test_a_person_decides(void **state)
{
    const struct input_count tie[] = { { A, "h", 1, "R1" }, { B, "g", 9, "R2" } };
    struct inputs inputs = inputs_judge(tie, COUNT_OF(tie), A);

    (void)state;
    assert_string_equal(inputs.digest, A);
    assert_false(inputs.contested);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_was_said),
        cmocka_unit_test(test_runs_of_one_host),
        cmocka_unit_test(test_one_host_condemns_no_other),
        cmocka_unit_test(test_a_host_that_contradicts_itself),
        cmocka_unit_test(test_camps_are_named),
        cmocka_unit_test(test_a_person_decides),
    };

    return cmocka_run_group_tests_name("inputs", tests, NULL, NULL);
}
