/* Digest classes: which letter is given to which digest, and what differs. */
#include "tests/unit/evidence/classes_fixture.h"

static int letter(const struct classes *classes, int row, int column)
{
    const struct class_row *r = &classes->rows[row];

    return classes_letter(r, &r->entries[column]);
}

static void test_letters_go_by_columns_not_by_arrival(void **state)
{
    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        struct classes classes = fixture_classes(4);
        static const int digests[] = { 7, 5, 7, 3 };

        for (int i = 0; i < 4; i++) {
            int c = backwards ? 3 - i : i;

            fixture_add(&classes, c, 0, digests[c], VERDICT_REPRODUCIBLE);
        }
        classes_settle(&classes, false);
        assert_int_equal(letter(&classes, 0, 0), 0);
        assert_int_equal(letter(&classes, 0, 1), 1);
        assert_int_equal(letter(&classes, 0, 2), 0);
        assert_int_equal(letter(&classes, 0, 3), 2);
        assert_true(classes.rows[0].differs);
        classes_release(&classes);
    }
}

static void test_what_varies_has_no_letter(void **state)
{
    struct classes classes = fixture_classes(3);

    (void)state;
    fixture_add(&classes, 0, 0, 0, VERDICT_VARIES);
    fixture_add(&classes, 1, 0, 5, VERDICT_REPRODUCIBLE);
    fixture_add(&classes, 0, 1, 0, VERDICT_VARIES);
    fixture_add(&classes, 1, 1, 0, VERDICT_VARIES);
    fixture_add(&classes, 0, 2, 5, VERDICT_REPRODUCIBLE);
    fixture_add(&classes, 1, 2, 5, VERDICT_STALE);
    classes_settle(&classes, false);
    assert_int_equal(letter(&classes, 0, 0), -1);
    assert_int_equal(letter(&classes, 0, 1), 0);
    assert_int_equal(letter(&classes, 0, 2), -1);
    assert_true(classes.rows[0].differs && classes.rows[0].varies);
    assert_false(classes.rows[1].differs);
    assert_true(classes.rows[1].varies);
    assert_false(classes.rows[2].differs || classes.rows[2].varies);
    classes_release(&classes);
}

static void test_rows_are_in_order(void **state)
{
    struct classes classes = fixture_classes(1);

    (void)state;
    for (int i = 0; i < 40; i++) {
        fixture_add(&classes, 0, i * 7 % 40, 1, VERDICT_REPRODUCIBLE);
    }
    assert_int_equal(classes.row_count, 40);
    for (int i = 1; i < 40; i++) {
        assert_true(classes_compare_keys(&classes.rows[i - 1].key, &classes.rows[i].key) <
                    0);
    }
    classes_release(&classes);
}

/* Seeds and versions are cases of their own, and one run can show that it varies. */
static void test_cases_that_differ_in_their_seed(void **state)
{
    struct classes classes = fixture_classes(2);
    struct class_cell cell = { .id = 1,
                               .verdict = VERDICT_VARIES,
                               .runs = 1,
                               .distinct_digests = 2,
                               .key = { .version = 1 } };

    (void)state;
    for (int i = 0; i < 3; i++) {
        cell.key.seed = (uint64_t)(2 - i);
        classes_add(&classes, 0, &cell);
    }
    cell.key.version = 2;
    classes_add(&classes, 0, &cell);
    classes_settle(&classes, false);
    assert_int_equal(classes.row_count, 4);
    assert_int_equal(classes.rows[0].key.seed, 0);
    assert_int_equal(classes.rows[1].key.version, 2);
    assert_int_equal(classes.rows[3].key.seed, 2);
    assert_true(classes.rows[0].varies);
    classes_release(&classes);
}

/* Eight devices of a host, one of which is wrong, beside a host that agrees. */
static void test_hosts_that_agree_are_one_column(void **state)
{
    struct classes classes = fixture_devices(16, 8);

    (void)state;
    for (int d = 0; d < 16; d++) {
        fixture_add(&classes, d, 0, d == 3 ? 9 : 5, VERDICT_REPRODUCIBLE);
        if (d != 12) {
            fixture_add(&classes, d, 1, 5, d == 9 ? VERDICT_STALE : VERDICT_REPRODUCIBLE);
        }
    }
    classes_merge_hosts(&classes);
    classes_settle(&classes, true);
    assert_int_equal(classes.column_count, 9);
    assert_string_equal(classes.columns[3].id, "GPU-0003");
    assert_string_equal(classes.columns[8].id, "host-0001");
    assert_int_equal(classes.columns[8].members, 8);
    assert_int_equal(letter(&classes, 0, 3), 1);
    assert_int_equal(letter(&classes, 0, 0), 0);
    assert_int_equal(letter(&classes, 0, 8), 0);
    assert_int_equal(classes.rows[0].entries[8].members, 8);
    assert_int_equal(classes.rows[1].entries[8].members, 7);
    assert_int_equal(classes.rows[1].entries[8].verdict, VERDICT_STALE);
    assert_false(classes.rows[1].differs);
    classes_release(&classes);
}

/* What varies or fails on two devices of a host is one column, if both do; and it is as
 * weak as the weakest. */
static void test_what_hosts_agree_about(void **state)
{
    static const struct {
        int digests[2];
        enum verdict verdicts[2];
        int columns;
        enum verdict merged;
    } table[] = {
        { { 0, 0 }, { VERDICT_VARIES, VERDICT_VARIES }, 1, VERDICT_VARIES },
        { { 0, 0 }, { VERDICT_VARIES, VERDICT_FAILING }, 2, VERDICT_VARIES },
        { { 5, 5 }, { VERDICT_REPRODUCIBLE, VERDICT_FAILING }, 1, VERDICT_FAILING },
        { { 5, 5 }, { VERDICT_STALE, VERDICT_INCONCLUSIVE }, 1, VERDICT_INCONCLUSIVE },
        { { 5, 5 }, { VERDICT_FAILING, VERDICT_REPRODUCIBLE }, 1, VERDICT_FAILING },
        { { 5, 5 }, { VERDICT_INCONCLUSIVE, VERDICT_FAILING }, 1, VERDICT_FAILING },
        { { 5, 5 }, { VERDICT_FAILING, VERDICT_INCONCLUSIVE }, 1, VERDICT_FAILING },
        { { 5, 0 }, { VERDICT_REPRODUCIBLE, VERDICT_VARIES }, 2, VERDICT_REPRODUCIBLE },
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct classes classes = fixture_devices(2, 2);

        classes.columns[0].first_ms = classes.columns[1].last_ms = 9;
        classes.columns[1].first_ms = classes.columns[0].last_ms = 3;
        for (int d = 0; d < 2; d++) {
            fixture_add(&classes, d, 0, table[i].digests[d], table[i].verdicts[d]);
        }
        classes_merge_hosts(&classes);
        classes_settle(&classes, true);
        assert_int_equal(classes.column_count, table[i].columns);
        assert_int_equal(classes.rows[0].entries[0].verdict, table[i].merged);
        if (table[i].columns == 1) {
            assert_int_equal(classes.columns[0].first_ms, 3);
            assert_int_equal(classes.columns[0].last_ms, 9);
            assert_int_equal(classes.rows[0].entries[0].runs, 10);
        }
        classes_release(&classes);
    }
}

/* Of equally many devices, the smallest digest is A. */
static void test_ties_go_by_the_digest(void **state)
{
    struct classes classes = fixture_devices(4, 1);

    (void)state;
    for (int d = 0; d < 4; d++) {
        fixture_add(&classes, d, 0, d < 2 ? 9 : 4, VERDICT_INCONCLUSIVE);
    }
    classes_settle(&classes, true);
    assert_int_equal(letter(&classes, 0, 0), 1);
    assert_int_equal(letter(&classes, 0, 3), 0);
    classes_release(&classes);
}

/* Wrong numbers that differ say nothing of the operation. */
static void test_what_fails_does_not_vary(void **state)
{
    struct classes classes = fixture_classes(2);

    (void)state;
    fixture_add(&classes, 0, 0, 0, VERDICT_FAILING);
    fixture_add(&classes, 1, 0, 5, VERDICT_REPRODUCIBLE);
    classes_settle(&classes, false);
    assert_false(classes.rows[0].varies || classes.rows[0].differs);
    classes_release(&classes);
}

/* What was measured under other conditions can show that its row varies, never that it
 * differs. */
static void test_what_was_measured_apart(void **state)
{
    static const struct {
        bool apart;
        enum verdict verdict;
        bool varies, differs;
    } table[] = {
        { true, VERDICT_VARIES, true, false },
        { true, VERDICT_REPRODUCIBLE, false, false },
        { true, VERDICT_FAILING, false, false },
        { false, VERDICT_VARIES, true, true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct classes classes = fixture_classes(2);
        struct class_cell cell = { .id = 1,
                                   .verdict = table[i].verdict,
                                   .runs = 5,
                                   .distinct_digests = 2,
                                   .apart = table[i].apart };

        classes_add(&classes, 0, &cell);
        cell = (struct class_cell){ .id = 2,
                                    .verdict = VERDICT_REPRODUCIBLE,
                                    .runs = 5,
                                    .distinct_digests = 1,
                                    .digest = "5" };
        classes_add(&classes, 1, &cell);
        classes_settle(&classes, false);
        assert_int_equal(classes.row_count, 1);
        assert_int_equal(classes.rows[0].varies, table[i].varies);
        assert_int_equal(classes.rows[0].differs, table[i].differs);
        assert_int_equal(letter(&classes, 0, 0), -1);
        assert_int_equal(letter(&classes, 0, 1), 0);
        classes_release(&classes);
    }
}

/* The majority is A, wherever it stands. */
static void test_devices_are_lettered_by_size(void **state)
{
    struct classes classes = fixture_devices(8, 1);

    (void)state;
    for (int d = 0; d < 8; d++) {
        fixture_add(&classes, d, 0, d == 0 ? 1 : 5, VERDICT_INCONCLUSIVE);
    }
    classes_merge_hosts(&classes);
    classes_settle(&classes, true);
    assert_int_equal(classes.column_count, 8);
    assert_int_equal(letter(&classes, 0, 0), 1);
    assert_int_equal(letter(&classes, 0, 7), 0);
    classes_release(&classes);
}

/* 40 devices on 5 hosts: two that differ, one in each host, stay apart. */
static void test_what_most_show_is_one_column(void **state)
{
    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        struct classes classes = fixture_devices(40, 8);

        for (int i = 0; i < 40; i++) {
            int d = backwards ? 39 - i : i;

            fixture_add(&classes, d, 0, d == 9 ? 9 : 5, VERDICT_REPRODUCIBLE);
            if (d != 12) {
                fixture_add(&classes, d, 1, 5,
                            d == 30 ? VERDICT_INCONCLUSIVE : VERDICT_REPRODUCIBLE);
            }
            fixture_add(&classes, d, 2, d == 25 ? 7 : 0, VERDICT_VARIES);
            fixture_add(&classes, d, 3, 0, VERDICT_VARIES);
        }
        classes.columns[39].last_ms = 77;
        classes.columns[20].last_ms = 88;
        classes.columns[20].first_ms = -9;
        classes_merge_hosts(&classes);
        classes_merge_majority(&classes);
        classes_settle(&classes, true);
        assert_int_equal(classes.column_count, 3);
        assert_string_equal(classes.columns[0].id, "majority");
        assert_string_equal(classes.columns[0].host, "");
        assert_string_equal(classes.columns[0].model, "NVIDIA H100");
        assert_int_equal(classes.columns[0].members, 38);
        assert_int_equal(classes.columns[0].hosts, 5);
        assert_int_equal(classes.columns[0].last_ms, 88);
        assert_int_equal(classes.columns[0].first_ms, -9);
        assert_string_equal(classes.columns[1].id, "GPU-0009");
        assert_string_equal(classes.columns[2].id, "GPU-0025");
        assert_int_equal(letter(&classes, 0, 0), 0);
        assert_int_equal(letter(&classes, 0, 1), 1);
        assert_int_equal(letter(&classes, 0, 2), 0);
        /* As weak as the weakest, and it says how many were measured. */
        assert_int_equal(classes.rows[1].entries[0].verdict, VERDICT_INCONCLUSIVE);
        assert_int_equal(classes.rows[1].entries[0].members, 37);
        assert_int_equal(classes.rows[2].entries[0].verdict, VERDICT_VARIES);
        assert_int_equal(letter(&classes, 2, 0), -1);
        assert_int_equal(letter(&classes, 2, 2), 0);
        classes_release(&classes);
    }
}

static void test_what_stands_for_nothing_is_dropped(void **state)
{
    struct classes classes = fixture_devices(5, 2);

    (void)state;
    fixture_add(&classes, 1, 0, 5, VERDICT_REPRODUCIBLE);
    fixture_add(&classes, 4, 0, 9, VERDICT_REPRODUCIBLE);
    classes.columns[0].members = classes.columns[2].members = 0;
    classes.columns[3].members = 0;
    classes_drop_empty(&classes);
    classes_settle(&classes, false);
    assert_int_equal(classes.column_count, 2);
    assert_string_equal(classes.columns[0].id, "GPU-0001");
    assert_string_equal(classes.columns[1].id, "GPU-0004");
    assert_int_equal(letter(&classes, 0, 0), 0);
    assert_int_equal(letter(&classes, 0, 1), 1);
    classes_release(&classes);
}

/* Of two camps that are equally large, the one with the smallest digest is folded; where
 * nobody shows what another shows, nobody is. */
static void test_camps_of_a_size(void **state)
{
    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        struct classes classes = fixture_devices(4, 1);
        struct classes alone = fixture_devices(3, 1);

        for (int i = 0; i < 4; i++) {
            int d = backwards ? 3 - i : i;

            fixture_add(&classes, d, 0, d < 2 ? 9 : 4, VERDICT_INCONCLUSIVE);
            fixture_add(&classes, d, 1, d < 2 ? 0 : 4, VERDICT_VARIES);
            if (d < 3) {
                fixture_add(&alone, d, 0, 4 + d, VERDICT_INCONCLUSIVE);
            }
        }
        snprintf(classes.columns[3].model, sizeof classes.columns[3].model, "another");
        classes_merge_majority(&classes);
        classes_settle(&classes, true);
        assert_int_equal(classes.column_count, 3);
        assert_string_equal(classes.columns[0].model, "");
        assert_string_equal(classes.columns[1].id, "GPU-0000");
        classes_merge_majority(&alone);
        assert_int_equal(alone.column_count, 3);
        assert_int_equal(alone.columns[0].hosts, 0);
        classes_release(&classes);
        classes_release(&alone);
    }
}

static void test_names(void **state)
{
    static const struct {
        int letter;
        const char *name;
    } names[] = { { 0, "A" }, { 25, "Z" }, { 26, "AA" }, { 701, "ZZ" }, { 702, "AAA" } };
    char name[CLASS_NAME_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_string_equal(classes_name(names[i].letter, name), names[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_letters_go_by_columns_not_by_arrival),
        cmocka_unit_test(test_what_varies_has_no_letter),
        cmocka_unit_test(test_rows_are_in_order),
        cmocka_unit_test(test_cases_that_differ_in_their_seed),
        cmocka_unit_test(test_hosts_that_agree_are_one_column),
        cmocka_unit_test(test_what_hosts_agree_about),
        cmocka_unit_test(test_ties_go_by_the_digest),
        cmocka_unit_test(test_what_most_show_is_one_column),
        cmocka_unit_test(test_what_stands_for_nothing_is_dropped),
        cmocka_unit_test(test_camps_of_a_size),
        cmocka_unit_test(test_what_fails_does_not_vary),
        cmocka_unit_test(test_what_was_measured_apart),
        cmocka_unit_test(test_devices_are_lettered_by_size),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
