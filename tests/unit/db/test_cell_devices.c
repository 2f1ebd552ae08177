/* Devices of a cell: what each showed, and who is named, in any order of arrival. */
#include "tests/unit/db/faults_fixture.h"
#include "tests/unit/db/fleet_fixture.h"
#include "tests/unit/db/orders_fixture.h"

#include "daemon/base/buf.h"
#include "db/dissent/cell_devices.h"
#include "db/dissent/device_list.h"
#include "db/recurring/unattended.h"
#include "db/tx.h"
#include "db/views/classes.h"

enum { ROUNDS = 9 };

/* The Nth run, of ROUNDS rounds over all devices: the control varies, and WRONG is wrong.
 */
static void store_nth(struct fixture *f, int n)
{
    int device = n % DEVICES, round = n / DEVICES;

    if (round < 2) {
        store(f, n + 1, device, true, 1 + device);
    } else {
        store(f, n + 1, device, false, device == WRONG ? 9 : 5);
    }
}

static const char *const tables[] = {
    "SELECT * FROM cell_device ORDER BY 1, 2, 3",
    "SELECT * FROM cell_device_digest ORDER BY 1, 2, 3, 4",
    "SELECT c.device, k.variant FROM cell_dissenter c JOIN cell x ON x.id = c.cell"
    " JOIN case_key k ON k.number = x.case_key ORDER BY 1",
    "SELECT verdict, reason, agreement, agreeing, agreeing_devices, agreeing_runs,"
    " agreeing_iterations FROM cell ORDER BY case_key",
    NULL,
};

static enum err_code print_tables(struct tx *tx, void *arg, struct err *err)
{
    return orders_print(tx, tables, arg, err);
}

static char *tables_of_order(uint32_t seed)
{
    enum { RUNS = DEVICES * ROUNDS };
    struct fixture *f = fixture_new();
    struct buf out = BUF_INIT;
    int order[RUNS];

    fixture_open(f);
    insert_fleet_job(f);
    orders_fill(order, RUNS, seed);
    for (int i = 0; i < RUNS; i++) {
        store_nth(f, order[i]);
    }
    fixture_check_cells(f);
    fixture_read(f, print_tables, &out);
    fixture_free(f);
    return buf_detach(&out, NULL);
}

static void test_any_order_gives_the_same(void **state)
{
    char *first = tables_of_order(0);

    (void)state;
    assert_non_null(strstr(first, "GPU-3|ordered|"));
    assert_non_null(strstr(first,
                           "devices_disagree|1 of 8 devices dissents: GPU-3 (7 of 7"
                           " runs); 7 agree, reproducible: 1 digest in 49 runs"));
    orders_check(tables_of_order, first);
    free(first);
}

static enum err_code count_events(struct tx *tx, void *arg, struct err *err)
{
    int64_t *counts = arg;

    return tx_fetch(tx, TX_TARGETS(&counts[0], &counts[1]), err,
                    "SELECT count(*) FILTER (WHERE json_extract(data, '$.state') ="
                    " 'named'), count(*) FILTER (WHERE json_extract(data, '$.state') ="
                    " 'cleared') FROM event WHERE kind = 'dissent'");
}

/* Named once, with an event; cleared once it is seen that the workload varies. */
static enum err_code rebuild_one(struct tx *tx, void *arg, struct err *err)
{
    return cells_rebuild(tx, *(int64_t *)arg, 5000, err);
}

static void test_named_and_cleared(void **state)
{
    struct fixture *f = *state;
    int64_t counts[2], cell;
    int n = 1;

    insert_fleet_job(f);
    for (; n < 1 + 2 * DEVICES; n++) {
        store(f, n, n % DEVICES, true, 1 + n % DEVICES);
    }
    for (int round = 0; round < 8; round++) {
        for (int device = 0; device < DEVICES; device++) {
            store(f, n++, device, false, device == WRONG ? 9 : 5);
        }
    }
    fixture_read(f, count_events, counts);
    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], 0);
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(fixture_cell(f, "ordered").agreeing.verdict, VERDICT_REPRODUCIBLE);
    assert_int_equal(fixture_cell(f, "ordered").agreeing.devices, 7);
    cell = fixture_cell(f, "ordered").id;
    fail_each_statement(f, true, rebuild_one, &cell, sizeof cell); /* whole or not */
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_DEVICES_DISAGREE);
    for (int device = 0; device < DEVICES; device++) {
        store(f, n++, device, false, 9);
        store(f, n++, device, false, 5);
    }
    fixture_read(f, count_events, counts);
    assert_int_equal(counts[1], 1);
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_VARIES);
    fixture_check_cells(f);
}

static enum err_code count_dissents(struct tx *tx, void *arg, struct err *err)
{
    struct device_dissents *devices = arg;
    int count = 0;

    while (devices[count].device) {
        count++;
    }
    return dissenters_of_devices(tx, devices, count, err);
}

/* Each device has its own counts, whoever is asked for with it. */
static void test_dissents_of_devices_at_once(void **state)
{
    struct fixture *f = *state;
    struct device_dissents none[] = { { .device = NULL } };
    struct device_dissents wrong[] = { { .device = "GPU-3" }, { .device = NULL } };
    struct device_dissents all[] = { { .device = "A" },     { .device = "GPU-0" },
                                     { .device = "GPU-3" }, { .device = "GPU-4" },
                                     { .device = "GPU-5" }, { .device = "GPU-50" },
                                     { .device = "GPU-7" }, { .device = "Z" },
                                     { .device = NULL } };

    insert_fleet_job(f);
    for (int n = 0; n < (ROUNDS + 2) * DEVICES; n++) {
        if (n / DEVICES < 2 || n % DEVICES != 4) {
            store_nth(f, n); /* the fifth computes the control only */
        }
    }
    fixture_read(f, count_dissents, none);
    fixture_read(f, count_dissents, wrong);
    assert_int_equal(wrong[0].cells, 2);
    assert_int_equal(wrong[0].dissents, 1);
    fixture_read(f, count_dissents, all);
    for (int i = 0; all[i].device; i++) {
        bool known = strncmp(all[i].device, "GPU-", 4) == 0 && strlen(all[i].device) == 5;

        assert_int_equal(all[i].cells, !known ? 0 : all[i].device[4] == '4' ? 1 : 2);
        assert_int_equal(all[i].dissents, strcmp(all[i].device, "GPU-3") == 0);
    }
}

/* Faults of one device of a control are no race. */
static void test_a_wrong_device_is_no_control(void **state)
{
    struct fixture *f = *state;
    int n = 1;

    insert_fleet_job(f);
    for (int round = 0; round < 3; round++) {
        for (int device = 0; device < DEVICES; device++) {
            struct fixture_run control = { .n = n++,
                                           .job = 1,
                                           .item = 2 * device,
                                           .outcome = OUTCOME_COMPLETED,
                                           .environment = 1,
                                           .digest = 5 };

            control.digest = device == WRONG ? 20 + round : 5;
            fixture_write(f, fixture_whole_run, &control);
            store(f, n++, device, false, 5);
        }
    }
    assert_int_equal(fixture_cell(f, "unordered").verdict, VERDICT_INCONCLUSIVE);
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_INCONCLUSIVE);
    fixture_check_cells(f);
}

/* Nor are those of one of two devices, where nobody can say which one is wrong; and what
 * the variant had earned with the first one alone is taken back. */
static void test_one_of_two_devices_is_no_control(void **state)
{
    struct fixture *f = *state;
    int n = 1;

    insert_fleet_job(f);
    for (int round = 0; round < 3; round++) {
        store(f, n++, 0, true, 20 + round);
        store(f, n++, 0, false, 5);
    }
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_REPRODUCIBLE);
    for (int device = 1; device < 4; device++) {
        for (int round = 0; round < 2; round++) {
            struct fixture_run control = { .n = n++,
                                           .job = 1,
                                           .item = 2 * device,
                                           .outcome = OUTCOME_COMPLETED,
                                           .environment = 1,
                                           .digest = 5 };

            fixture_write(f, fixture_whole_run, &control);
            assert_int_equal(fixture_cell(f, "unordered").verdict, VERDICT_INCONCLUSIVE);
            assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_INCONCLUSIVE);
            fixture_check_cells(f);
        }
    }
}

/* What most devices show is out of bound of the reference: those that differ from it are
 * not named. */
static void test_a_wrong_majority_names_nobody(void **state)
{
    struct fixture *f = *state;
    int64_t counts[2];
    int n = 1;

    insert_fleet_job(f);
    for (int round = 0; round < 10; round++) {
        for (int device = 0; device < 5; device++) {
            struct fixture_run r = { .n = n++,
                                     .job = 1,
                                     .item = 2 * device + 1,
                                     .outcome = OUTCOME_COMPLETED,
                                     .environment = 1,
                                     .digest = device < 3 ? 5 : 9,
                                     .check = device < 3 ? CHECK_FAILED : CHECK_PASSED };

            fixture_write(f, fixture_whole_run, &r);
        }
    }
    fixture_read(f, count_events, counts);
    assert_int_equal(counts[0], 0);
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_FAILING);
    fixture_check_cells(f);
}

static void challenge(struct fixture *f, int n, int device, bool control, int digest)
{
    struct fixture_run r = { .n = n,
                             .job = 1,
                             .item = 2 * device + !control,
                             .outcome = OUTCOME_COMPLETED,
                             .environment = 1,
                             .digest = digest,
                             .input = 700 + n,
                             .seed = 1000 + (uint64_t)n };

    fixture_write(f, fixture_whole_run, &r);
    assert_true(r.is_challenge);
}

/* A command is challenged on the device that turns out to be wrong: the others have not
 * been. */
static void test_a_challenge_of_a_dissenter_is_none_of_the_others(void **state)
{
    struct fixture *f = *state;
    int n = 1;

    insert_fleet_job_on(f, "external");
    store(f, n++, WRONG, true, 1);
    store(f, n++, WRONG, false, 9);
    challenge(f, n++, WRONG, true, 500);
    challenge(f, n++, WRONG, false, 600);
    for (int round = 0; round < 8; round++) {
        for (int device = 0; device < DEVICES; device++) {
            store(f, n++, device, true, 1 + round);
            store(f, n++, device, false, device == WRONG ? 9 : 5);
        }
    }
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(fixture_cell(f, "ordered").agreeing.verdict, VERDICT_INCONCLUSIVE);
    challenge(f, n++, 1, false, 5); /* the digest that it always gives */
    assert_int_equal(fixture_cell(f, "ordered").agreeing.verdict, VERDICT_INCONCLUSIVE);
    challenge(f, n++, 1, false, 800);
    assert_int_equal(fixture_cell(f, "ordered").agreeing.verdict, VERDICT_REPRODUCIBLE);
    fixture_check_cells(f);
}

/* A run of the ordered variant that is one of the few only if its cell needs a challenge.
 */
struct asked {
    int n, device;
    bool is_challenge;
};

static enum err_code ask(struct tx *tx, void *arg, struct err *err)
{
    struct asked *asked = arg;
    struct run_intent intent = { .item = 2 * asked->device + 1,
                                 .intent_ms = 1000 * asked->n,
                                 .offer = { .seed = 77, .needed = true, .draw = 1 } };
    enum err_code code;

    fixture_id('R', asked->n, intent.id);
    fixture_id('J', 1, intent.job);
    code = runs_begin(tx, &intent, err);
    asked->is_challenge = intent.challenge != 0;
    return code;
}

static bool is_challenged(struct fixture *f, int n, int device)
{
    struct asked asked = { .n = n, .device = device };

    fixture_write(f, ask, &asked);
    return asked.is_challenge;
}

/* While devices disagree, each has to be challenged itself: the one that was may be the
 * wrong one. */
static void test_devices_that_disagree_are_challenged_each(void **state)
{
    struct fixture *f = *state;
    int n = 1;

    insert_fleet_job_on(f, "external");
    for (int device = 0; device < DEVICES; device++) {
        store(f, n++, device, true, 1 + device);
    }
    store(f, n++, WRONG, false, 9);
    assert_true(is_challenged(f, 90, 1));
    challenge(f, n++, WRONG, false, 600);
    assert_false(is_challenged(f, 91, 1)); /* as far as is known, they agree */
    store(f, n++, 1, false, 5);
    assert_false(is_challenged(f, 92, WRONG));
    assert_true(is_challenged(f, 93, 1));
    challenge(f, n++, 1, false, 800);
    assert_false(is_challenged(f, 94, 1));
}

/* The runs that background evidence of DEVICE finds of the variant; -1: none. */
struct found {
    const char *device;
    int64_t runs, last_ms;
};

static void find_ordered(void *arg, const struct background_cell *cell)
{
    struct found *found = arg;

    if (strcmp(cell->key.variant, "ordered") == 0) {
        found->runs = cell->completed;
        found->last_ms = cell->last_completed_ms;
    }
}

static enum err_code find_in_background(struct tx *tx, void *arg, struct err *err)
{
    struct found *found = arg;

    found->runs = -1;
    return unattended_cells(tx, found->device, "cpu", find_ordered, found, err);
}

/* What cannot be told yet, and what the others earn beside a dissenter, goes on being
 * measured while nobody asks. */
static void test_background_evidence_of_devices_that_disagree(void **state)
{
    struct fixture *f = *state;
    struct found found = { .device = "GPU-1" };
    struct found wrong = { .device = "GPU-3" };
    int n = 1;

    insert_fleet_job(f);
    for (int device = 0; device < DEVICES; device++) {
        store(f, n++, device, true, 1);
        store(f, n++, device, false, device == WRONG ? 9 : 5);
    }
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_INCONCLUSIVE);
    fixture_read(f, find_in_background, &found);
    assert_int_equal(found.runs, DEVICES);
    fixture_read(f, find_in_background, &wrong);
    assert_int_equal(wrong.runs, DEVICES);
    for (int round = 1; round < 8; round++) {
        for (int device = 0; device < DEVICES; device++) {
            store(f, n++, device, true, 1);
            store(f, n++, device, false, device == WRONG ? 9 : 5);
        }
    }
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_DEVICES_DISAGREE);
    store(f, n++, WRONG, false, 9);
    fixture_read(f, find_in_background, &found);
    assert_int_equal(found.runs, 8 * (DEVICES - 1)); /* those that agree */
    assert_true(found.last_ms < fixture_cell(f, "ordered").evidence.last_completed_ms);
    fixture_read(f, find_in_background, &wrong);
    assert_int_equal(wrong.runs, -1);
}

/* How many columns of the variant have each verdict at a time. */
struct viewed {
    int64_t now_ms, stale_after_ms;
    int columns[VERDICT_COUNT];
};

static enum err_code view_devices(struct tx *tx, void *arg, struct err *err)
{
    struct viewed *viewed = arg;
    const struct classes_filter filter = { .subject = SUBJECT_COUNT,
                                           .now_ms = viewed->now_ms,
                                           .stale_after_ms = viewed->stale_after_ms };
    struct classes classes;
    enum err_code code = classes_read_devices(
        tx, &filter, "00000000000000000000000000000001", &classes, err);

    memset(viewed->columns, 0, sizeof viewed->columns);
    for (int r = 0; r < classes.row_count; r++) {
        for (int c = 0; c < classes.column_count; c++) {
            viewed->columns[classes.rows[r].entries[c].verdict] +=
                !classes.rows[r].is_control;
        }
    }
    classes_release(&classes);
    return code;
}

/* Two devices are measured again after two days; that makes no other one fresh, nor what
 * the others earned beside one that dissents. */
static void test_devices_grow_stale_by_themselves(void **state)
{
    struct fixture *f = *state;
    struct viewed viewed = { .now_ms = 0 };
    int n = 1;

    insert_fleet_job(f);
    for (int round = 0; round < 8; round++) {
        for (int device = 0; device < DEVICES; device++) {
            store(f, n++, device, true, 1 + round);
            store(f, n++, device, false, device == WRONG ? 9 : 5);
        }
    }
    n += 50 * 3600;
    for (int device = 0; device < 2; device++) {
        store(f, n++, device, true, 1);
        store(f, n++, device, true, 3);
        store(f, n++, device, false, 5);
    }
    viewed.now_ms = n * 1000;
    fixture_read(f, view_devices, &viewed);
    assert_true(viewed.columns[VERDICT_REPRODUCIBLE] > 0);
    assert_int_equal(viewed.columns[VERDICT_DEVICES_DISAGREE], 1);
    assert_int_equal(viewed.columns[VERDICT_STALE], 0);
    viewed.stale_after_ms = 24 * 3600 * 1000;
    fixture_read(f, view_devices, &viewed);
    assert_int_equal(viewed.columns[VERDICT_REPRODUCIBLE], 2);
    assert_int_equal(viewed.columns[VERDICT_STALE], 2); /* GPU-2, and a host whole */
    assert_int_equal(viewed.columns[VERDICT_DEVICES_DISAGREE], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order_gives_the_same),
        STORE_TEST(test_named_and_cleared),
        STORE_TEST(test_dissents_of_devices_at_once),
        STORE_TEST(test_a_wrong_device_is_no_control),
        STORE_TEST(test_one_of_two_devices_is_no_control),
        STORE_TEST(test_background_evidence_of_devices_that_disagree),
        STORE_TEST(test_a_wrong_majority_names_nobody),
        STORE_TEST(test_a_challenge_of_a_dissenter_is_none_of_the_others),
        STORE_TEST(test_devices_that_disagree_are_challenged_each),
        STORE_TEST(test_devices_grow_stale_by_themselves),
    };

    return cmocka_run_group_tests_name("cell devices", tests, NULL, NULL);
}
