/* What is said of devices that disagree, and in which words: single cases. */
#include "tests/unit/evidence/dissent_fixture.h"

#include "daemon/base/array.h"

/* SPEC: for each device its digests, one letter a run; B is the only wrong one. */
static struct dissent judged(struct fleet *f, int hosts, const char *const *specs,
                             int devices)
{
    make(f, devices, hosts);
    for (int i = 0; i < devices; i++) {
        for (const char *c = specs[i]; *c; c++) {
            run(f, i, *c - 'A');
        }
    }
    look(f);
    return f->dissent;
}

static void test_one_departure_says_nothing(void **state)
{
    static const char *const specs[] = { "AAAAA", "AAAAA", "AABAA", "AAAAA",
                                         "AAAAA", "AAAAA", "AAAAA", "AAAAA" };
    static struct fleet f;
    struct dissent d = judged(&f, 2, specs, COUNT_OF(specs));

    (void)state;
    assert_int_equal(d.state, DISSENT_UNDECIDED);
    assert_int_equal(d.dissenters, 0);
    assert_int_equal(d.agreeing, 7);
    assert_string_equal(d.words,
                        "1 of 40 runs departs, on GPU-02; whether the workload "
                        "varies or this device computes wrong cannot be told yet");
    assert_true(row_of(&f, 2)->wanted);
    assert_int_equal(row_of(&f, 2)->mark, DISSENT_DEPARTS);
}

static void test_words_of_a_dissenter(void **state)
{
    static const char *const specs[] = { "AAAAA", "AAAAA", "BBBBBBBB", "AAAAA",
                                         "AAAAA", "AAAAA", "AAAAA",    "AAAAA" };
    static struct fleet f;
    struct dissent d = judged(&f, 2, specs, COUNT_OF(specs));

    (void)state;
    assert_int_equal(d.state, DISSENT_DISAGREE);
    assert_string_equal(d.words, "1 of 8 devices dissents: GPU-02 (8 of 8 runs)");
    assert_int_equal(d.agreeing, 7);
    assert_int_equal(d.agreeing_runs, 35);
    assert_string_equal(d.digest, "00000000000000000000000000000000");
    for (int i = 0; i < 8; i++) {
        assert_false(row_of(&f, i)->wanted);
    }
}

static void test_camps_along_hosts(void **state)
{
    static const char *const even[] = { "AAAAA", "BBBBB", "AAAAA", "BBBBB",
                                        "AAAAA", "BBBBB", "AAAAA", "BBBBB" };
    static const char *const two[] = { "AAAAAAA", "BBBBBBBB" };
    static const char *const most_of_one[] = { "AAAAAAAA", "BBBBBBBB", "AAAAAAAA",
                                               "AAAAAAAA", "AAAAAAAA", "AAAAAAAA" };
    static struct fleet f;
    struct dissent d = judged(&f, 2, even, COUNT_OF(even));

    (void)state;
    assert_int_equal(d.state, DISSENT_DISAGREE);
    assert_true(d.hosts_differ);
    assert_int_equal(d.dissenters, 0);
    assert_string_equal(d.words,
                        "4 of 8 devices say 00000000 (host-0), 4 say 00000001 "
                        "(host-1): hosts differ");
    d = judged(&f, 1, two, COUNT_OF(two));
    assert_int_equal(d.dissenters, 0);
    /* A device alone on its host is its host. */
    make(&f, 6, 6);
    for (int i = 0; i < 6; i++) {
        for (const char *c = most_of_one[i]; *c; c++) {
            run(&f, i, *c - 'A');
        }
        snprintf(f.names[i], sizeof f.names[i], i == 1 ? "host-1" : "host-0");
    }
    look(&f);
    assert_int_equal(f.dissent.dissenters, 0);
    assert_true(f.dissent.hosts_differ);
    for (int i = 0; i < 6; i++) {
        snprintf(f.names[i], sizeof f.names[i], "host-%c", (char)('0' + i));
    }
    look(&f);
    assert_int_equal(f.dissent.dissenters, 1);
    assert_true(is_named(&f, 1));
}

/* A digest that shows only under load says nothing of the device that had the load. */
static void test_conditions_are_apart(void **state)
{
    struct dissent_row rows[10];
    struct dissent d;

    (void)state;
    for (int i = 0; i < 8; i++) {
        static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };

        rows[i] = (struct dissent_row){ .device = names[i],
                                        .host = "x",
                                        .options = "",
                                        .runs = 9,
                                        .mode = "aa",
                                        .mode_runs = 9 };
    }
    rows[8] = rows[3];
    rows[8].options = "{\"contention\":4}";
    rows[8].mode = "bb";
    rows[9] = rows[8]; /* of one device alone it could not be told */
    rows[9].device = "e";
    dissent_majorities(rows, 10);
    d = dissent_judge(rows, 10);
    assert_int_equal(d.state, DISSENT_NONE);
    assert_int_equal(d.devices, 8);
    assert_int_equal(d.agreeing, 8);
    assert_string_equal(d.digest, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_departure_says_nothing),
        cmocka_unit_test(test_words_of_a_dissenter),
        cmocka_unit_test(test_camps_along_hosts),
        cmocka_unit_test(test_conditions_are_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
