/* A control vouches for what ran under the same conditions. */
#include "tests/unit/db/cells_fixture.h"

static struct fixture_run digest(int n, int item, int digest)
{
    struct fixture_run r = completed(n, item);

    r.digest = digest;
    return r;
}

static void assert_reason(struct fixture *f, const char *part)
{
    struct cell cell = fixture_cell(f, "ordered");

    if (!strstr(cell.reason, part)) {
        fail_msg("\"%s\" lacks \"%s\"", cell.reason, part);
    }
    fixture_check_cells(f);
}

static void test_a_control_that_varied_under_load_vouches_for_loaded_runs(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    store(f, completed(1, ORDERED));
    store(f, completed(2, ORDERED));
    store(f, completed(3, UNORDERED));
    store(f, completed(4, UNORDERED_LOADED));
    assert_int_equal(store(f, digest(5, UNORDERED_LOADED, 7)), VERDICT_VARIES);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
    assert_reason(f, "varied with contention 4, and this variant completed 0 runs so");
    assert_int_equal(store(f, completed(6, ORDERED_LOADED)), VERDICT_INCONCLUSIVE);
    assert_reason(f, "completed 1 run so: at least 2");
    assert_int_equal(store(f, completed(7, ORDERED_LOADED)), VERDICT_REPRODUCIBLE);
    assert_reason(f, "in 4 runs");
    assert_reason(f, "varied with contention 4, as 2 of these runs were asked for");
    assert_int_equal(store(f, digest(8, UNORDERED, 9)), VERDICT_VARIES);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    assert_null(strstr(fixture_cell(f, "ordered").reason, "contention"));
    fixture_check_cells(f);
}

/* Load may hide a race as well as show it. */
static void test_loaded_runs_alone_do_not_face_a_quiet_race(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    vary(f, 1);
    store(f, completed(2, ORDERED_LOADED));
    assert_int_equal(store(f, completed(3, ORDERED_LOADED)), VERDICT_INCONCLUSIVE);
    assert_reason(f, "varied in plain runs, and this variant completed 0 runs so");
    store(f, completed(4, ORDERED));
    assert_int_equal(store(f, completed(5, ORDERED)), VERDICT_REPRODUCIBLE);
    fixture_check_cells(f);
}

static void test_what_was_asked_for_otherwise_is_no_variation(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    store(f, completed(1, ORDERED_ONES));
    store(f, completed(2, ORDERED_ONES));
    store(f, digest(3, UNORDERED_ONES, 1));
    assert_reason(f, "did not vary in 1 run");
    assert_int_equal(store(f, digest(4, UNORDERED_TWOS, 2)), VERDICT_VARIES);
    assert_false(fixture_cell(f, "unordered").evidence.varied);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
    assert_reason(f, "never among runs alike on one device");
    store(f, digest(5, UNORDERED_TWOS, 3)); /* it had two digests before */
    assert_reason(f, "memory-poison 22222222, and this variant completed 0 runs so");
    store(f, digest(6, UNORDERED_ONES, 3));
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    assert_reason(f, "memory-poison 11111111, as 2 of these runs");
}

/* A defective device is not a race. */
static void test_devices_that_disagree_are_no_variation(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    store(f, completed(1, ORDERED));
    store(f, completed(2, ORDERED_B));
    store(f, digest(3, UNORDERED, 1));
    store(f, digest(4, UNORDERED, 1));
    assert_int_equal(store(f, digest(5, UNORDERED_B, 2)), VERDICT_INCONCLUSIVE);
    assert_false(fixture_cell(f, "unordered").evidence.varied);
    assert_non_null(strstr(fixture_cell(f, "unordered").reason,
                           "no digest has a majority"
                           " of 2 devices in 3 runs"));
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
    assert_reason(f, "never among runs alike on one device");
    store(f, digest(6, UNORDERED_B, 3));
    assert_true(fixture_cell(f, "unordered").evidence.varied);
    assert_int_equal(verdict_of(f, "unordered"), VERDICT_INCONCLUSIVE);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
    assert_int_equal(store(f, digest(7, UNORDERED, 4)), VERDICT_VARIES);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    fixture_check_cells(f);
}

static int64_t vouched_hours(struct fixture *f)
{
    fixture_check_cells(f);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    return fixture_cell(f, "ordered").vouched_ms / VERDICT_VOUCHED_STEP_MS;
}

/* Runs are numbered by the second of their end. */
static struct fixture_run digest_at(int hour, int item, int value)
{
    return digest(hour * 3600 + 1, item, value);
}

/* It varies where two runs differ, and that is as old as the earlier one. */
static void test_a_control_counts_from_when_it_last_varied(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    store(f, digest_at(1, UNORDERED, 1));
    store(f, digest_at(2, ORDERED, 0));
    store(f, digest_at(3, ORDERED, 0));
    store(f, digest_at(4, UNORDERED, 2));
    assert_int_equal(vouched_hours(f), 1);
    store(f, digest_at(6, UNORDERED, 2)); /* the same again shows nothing */
    assert_int_equal(vouched_hours(f), 1);
    store(f, digest_at(5, UNORDERED, 3)); /* comes late, lies between */
    assert_int_equal(vouched_hours(f), 5);
    store(f, digest_at(9, UNORDERED, 7));
    assert_int_equal(vouched_hours(f), 6);
    store(f, digest_at(10, UNORDERED_B, 5)); /* one of two devices may be wrong */
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
    store(f, digest_at(11, UNORDERED_B, 8)); /* both vary */
    assert_int_equal(vouched_hours(f), 10);
    store(f, varying(12 * 3600));
    assert_int_equal(vouched_hours(f), 12);
}

/* Under conditions that the variant did not run under, it may vary as it likes. */
static void test_variation_under_other_conditions_is_not_lately(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    store(f, digest_at(1, UNORDERED, 1));
    store(f, digest_at(2, UNORDERED, 2));
    store(f, digest_at(3, ORDERED, 0));
    store(f, digest_at(4, ORDERED, 0));
    store(f, digest_at(5, ORDERED_LOADED, 0));
    store(f, digest_at(6, UNORDERED_LOADED, 1));
    store(f, digest_at(7, UNORDERED_LOADED, 2));
    assert_int_equal(vouched_hours(f), 1);
    store(f, digest_at(8, ORDERED_LOADED, 0));
    assert_int_equal(vouched_hours(f), 6);
}

/* What varies under another workload's name is no news of this one's control. */
static void test_another_s_control_is_not_lately(void **state)
{
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 9),
                                fixture_item("ordered", "cpu:a", 9),
                                fixture_item("atomic", "cpu:a", 9),
                                fixture_item("sorted", "cpu:a", 9) };
    struct fixture_job j = fixture_job(1, items, 4);

    items[2].is_control = true;
    snprintf(items[2].key.workload, sizeof items[2].key.workload, "other");
    snprintf(items[3].key.workload, sizeof items[3].key.workload, "other");
    fixture_write(f, fixture_insert_job, &j);
    for (int i = 0; i < 2; i++) {
        store(f, digest_at(1 + i, 0, i));
        store(f, digest_at(3 + i, 1, 0));
        store(f, digest_at(5 + i, 2, i));
        store(f, digest_at(7 + i, 3, 0));
    }
    store(f, digest_at(9, 1, 0));
    assert_int_equal(vouched_hours(f), 1);
    assert_int_equal(fixture_cell(f, "sorted").vouched_ms / VERDICT_VOUCHED_STEP_MS, 5);
}

/* Of conditions with enough runs the first by text is told, else those with most runs. */
static void test_conditions_are_told_by_text_once_the_runs_suffice(void **state)
{
    struct fixture *f = *state;
    int n = 1;

    insert_job(f);
    for (int i = 0; i < 2; i++) {
        store(f, digest(n++, UNORDERED, i));
        store(f, digest(n++, UNORDERED_LOADED, i));
    }
    store(f, completed(n++, ORDERED_LOADED));
    store(f, completed(n++, ORDERED_ONES));
    assert_reason(f, "varied with contention 4, and this variant completed 1 run so");
    store(f, completed(n++, ORDERED_LOADED));
    store(f, completed(n++, ORDERED_LOADED));
    store(f, completed(n++, ORDERED));
    assert_reason(f, "varied with contention 4, as 3 of these runs");
    store(f, completed(n++, ORDERED));
    assert_reason(f, "in 6 runs");
    assert_null(strstr(fixture_cell(f, "ordered").reason, "contention"));
}

/* The rule once more, from the list of runs alone. */
struct oracle {
    int runs[ITEMS];    /* completed */
    int digest[ITEMS];  /* of the first */
    bool varied[ITEMS]; /* an item is one device, asked in one way */
};

static bool earned(const struct oracle *o)
{
    static const int ordered[] = { ORDERED, ORDERED_B, ORDERED_LOADED, ORDERED_ONES };
    int faced;

    if (o->runs[UNORDERED_B] > 0 && !(o->varied[UNORDERED] && o->varied[UNORDERED_B])) {
        return false; /* one of two devices may be wrong */
    }
    for (int c = 0; c < ITEMS; c++) {
        faced = 0;
        for (int i = 0; i < 4; i++) {
            faced += strcmp(asked[ordered[i]].options, asked[c].options) == 0
                         ? o->runs[ordered[i]]
                         : 0;
        }
        if (o->varied[c] && faced >= VERDICT_MIN_RUNS) {
            return true;
        }
    }
    return false;
}

static struct fixture_run draw(struct oracle *o, int n)
{
    struct fixture_run r = completed(n, (int)(random() % ITEMS));
    bool control = strcmp(asked[r.item].variant, "unordered") == 0;

    r.distinct = control && random() % 8 == 0 ? 2 : 1;
    r.digest = control && random() % 3 == 0 ? 1 + (int)(random() % 2) * 5 : 0;
    o->varied[r.item] |=
        control &&
        (r.distinct > 1 || (o->runs[r.item] > 0 && o->digest[r.item] != r.digest));
    if (o->runs[r.item]++ == 0) {
        o->digest[r.item] = r.digest;
    }
    return r;
}

static void test_green_is_earned_whatever_comes(void **state)
{
    enum { SEQUENCES = 8, RUNS = 32 };
    int green = 0;

    (void)state;
    srandom(7);
    for (int s = 0; s < SEQUENCES; s++) {
        struct oracle oracle = { .runs = { 1, [UNORDERED_TWOS] = 1 } };
        struct fixture_run other = completed(900, UNORDERED_TWOS);
        struct fixture *f;
        void *own;

        fixture_setup(&own);
        f = own;
        insert_job(f);
        store(f, completed(1, UNORDERED));
        store(f, completed(2, ORDERED));
        oracle.runs[ORDERED] = 1;
        other.digest = oracle.digest[UNORDERED_TWOS] = 6;
        store(f, other); /* a second digest of the control passes */
        for (int n = 3; n < RUNS; n++) {
            store(f, draw(&oracle, n));
            assert_int_equal(verdict_of(f, "ordered"), earned(&oracle)
                                                           ? VERDICT_REPRODUCIBLE
                                                           : VERDICT_INCONCLUSIVE);
            green += earned(&oracle);
        }
        fixture_check_cells(f);
        fixture_free(f);
    }
    assert_true(green > 0 && green < SEQUENCES * (RUNS - 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_control_that_varied_under_load_vouches_for_loaded_runs),
        STORE_TEST(test_loaded_runs_alone_do_not_face_a_quiet_race),
        STORE_TEST(test_what_was_asked_for_otherwise_is_no_variation),
        STORE_TEST(test_devices_that_disagree_are_no_variation),
        STORE_TEST(test_a_control_counts_from_when_it_last_varied),
        STORE_TEST(test_variation_under_other_conditions_is_not_lately),
        STORE_TEST(test_another_s_control_is_not_lately),
        STORE_TEST(test_conditions_are_told_by_text_once_the_runs_suffice),
        cmocka_unit_test(test_green_is_earned_whatever_comes),
    };

    return cmocka_run_group_tests_name("cells_conditions", tests, NULL, NULL);
}
