/* Runs before and after a flash of a device are not compared with each other, nor is what
 * one device alone shows since: no healthy device is named. */
#include "tests/unit/db/orders_fixture.h"

#include "daemon/base/buf.h"
#include "daemon/base/id.h"
#include "db/fleet.h"
#include "db/tx.h"

enum { DEVICES = 8, BEFORE = 5, SINCE = 8 };

/* What the devices of a host say of themselves; DEVICE -1: of all. */
struct told {
    int device;
    const char *attributes;
};

static enum err_code tell(struct tx *tx, void *arg, struct err *err)
{
    const struct told *told = arg;
    const struct host host = { .name = "host-0", .boot_id = "boot", .last_seen_ms = 1 };

    if (hosts_seen(tx, &host, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < DEVICES; i++) {
        struct device device = { .host = "host-0",
                                 .backend = "cuda",
                                 .model = "imagined",
                                 .attributes_json = (char *)told->attributes,
                                 .last_seen_ms = 1 };

        snprintf(device.id, sizeof device.id, "GPU-%d", i);
        if ((told->device < 0 || told->device == i) &&
            devices_seen(tx, &device, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

static void say(struct fixture *f, int device, const char *attributes)
{
    struct told told = { device, attributes };

    fixture_write(f, tell, &told);
}

/* Items: the variant on each device, then its control. */
static void insert_job(struct fixture *f)
{
    struct job_item items[2 * DEVICES];
    struct fixture_job j = fixture_job(1, items, 2 * DEVICES);

    say(f, -1, "{\"ecc_mode\":true,\"serial\":\"1\",\"vbios\":\"96\"}");
    for (int i = 0; i < DEVICES; i++) {
        char device[16];

        snprintf(device, sizeof device, "GPU-%d", i);
        items[i] = fixture_item("ordered", device, 100);
        items[DEVICES + i] = fixture_item("unordered", device, 100);
    }
    fixture_write(f, fixture_insert_job, &j);
}

static void add_run(struct fixture *f, int n, int item, int digest)
{
    struct fixture_run r = { .n = n,
                             .job = 1,
                             .item = item,
                             .outcome = OUTCOME_COMPLETED,
                             .environment = 1,
                             .digest = digest,
                             .distinct = item < DEVICES ? 1 : 3 };

    fixture_write(f, fixture_whole_run, &r);
}

static int store_before(struct fixture *f)
{
    int n = 1;

    insert_job(f);
    for (int round = 0; round < BEFORE; round++) {
        for (int device = 0; device < DEVICES; device++) {
            add_run(f, n++, device, 5);
        }
    }
    return n;
}

static enum err_code count_named(struct tx *tx, void *arg, struct err *err)
{
    int64_t *named = arg;

    return tx_fetch_int(tx, named, err,
                        "SELECT count(*) FROM event WHERE kind = 'dissent'");
}

static void check_nobody_named(struct fixture *f)
{
    int64_t named = 0;

    fixture_read(f, count_named, &named);
    assert_int_equal(named, 0);
}

/* All devices are flashed, which changes their bits; they are measured one by one. */
static void test_the_first_of_a_flashed_fleet(void **state)
{
    struct fixture *f = *state;
    int n = store_before(f);

    say(f, -1, "{\"ecc_mode\":true,\"serial\":\"1\",\"vbios\":\"97\"}");
    for (int device = 0; device < DEVICES; device++) {
        for (int i = 0; i < SINCE; i++) {
            add_run(f, n++, device, 6);
            check_nobody_named(f);
            if (device == 0) {
                struct cell cell = fixture_cell(f, "ordered");

                assert_int_equal(cell.verdict, VERDICT_INCONCLUSIVE);
                assert_non_null(strstr(cell.reason, "GPU-0"));
                assert_non_null(strstr(cell.reason, "no other device was measured"));
            }
        }
    }
    fixture_check_cells(f);
}

/* One device is flashed; whether that or the device changed its bits cannot be told. */
static void test_the_only_one_that_was_flashed(void **state)
{
    struct fixture *f = *state;
    int n = store_before(f);

    say(f, 3, "{\"ecc_mode\":true,\"vbios\":\"97\"}");
    for (int i = 0; i < SINCE; i++) {
        for (int device = 0; device < DEVICES; device++) {
            add_run(f, n++, device, device == 3 ? 9 : 5);
            check_nobody_named(f);
        }
    }
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_INCONCLUSIVE);
    fixture_check_cells(f);
}

/* Once the others were flashed, too, it can. */
static void test_a_wrong_one_of_a_flashed_fleet(void **state)
{
    struct fixture *f = *state;
    int n = store_before(f);

    say(f, -1, "{\"vbios\":\"97\"}");
    for (int i = 0; i < SINCE; i++) {
        for (int device = 0; device < DEVICES; device++) {
            add_run(f, n++, device, device == 3 ? 9 : 5);
        }
    }
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_DEVICES_DISAGREE);
    assert_non_null(strstr(fixture_cell(f, "ordered").reason, "GPU-3"));
    fixture_check_cells(f);
}

/* What is not told for once, or is no condition, did not change. */
static void test_what_is_not_told_did_not_change(void **state)
{
    static const char *const said[] = { "{}", "{\"vbios\":\"96\"}",
                                        "{\"ecc_mode\":null,\"vbios\":\"96\"}",
                                        "{\"ecc_mode\":true,\"serial\":\"2\"}",
                                        "{\"pci_bus_id\":\"7\"}" };
    struct fixture *f = *state;
    int n = store_before(f);

    for (int i = 0; i < SINCE; i++) {
        say(f, 3, said[i % 5]);
        for (int device = 0; device < DEVICES; device++) {
            add_run(f, n++, device, device == 3 ? 9 : 5);
        }
    }
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_DEVICES_DISAGREE);
    fixture_check_cells(f);
}

static int add_rounds(struct fixture *f, int n, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        for (int device = 0; device < DEVICES; device++) {
            add_run(f, n++, device, device == 3 ? 9 : 5);
        }
    }
    return n;
}

static enum err_code count_dissenters(struct tx *tx, void *arg, struct err *err)
{
    int64_t *named = arg;

    return tx_fetch_int(tx, named, err, "SELECT count(*) FROM cell_dissenter");
}

static void check_named(struct fixture *f, bool is_named)
{
    struct cell cell = fixture_cell(f, "ordered");
    int64_t named = 0;

    fixture_read(f, count_dissenters, &named);
    assert_int_equal(named, is_named);
    assert_int_equal(cell.verdict,
                     is_named ? VERDICT_DEVICES_DISAGREE : VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(cell.reason, "GPU-3"));
    fixture_check_cells(f);
}

/* A device was flashed and did not tell its VBIOS at first: once it does, what it showed
 * meanwhile is of no known state, and it is named no more. */
static void test_a_flash_that_is_told_late(void **state)
{
    struct fixture *f = *state;
    int n = store_before(f);

    say(f, 3, "{\"ecc_mode\":true}");
    n = add_rounds(f, n, SINCE);
    check_named(f, true);
    say(f, 3, "{}"); /* and still does not */
    n = add_rounds(f, n, 1);
    say(f, 3, "{\"ecc_mode\":true,\"vbios\":\"97\"}");
    check_named(f, false);
    n = add_rounds(f, n, SINCE);
    check_named(f, false);
    say(f, -1, "{\"ecc_mode\":true,\"vbios\":\"97\"}");
    add_rounds(f, n, SINCE); /* beside others that were flashed, too, it is wrong */
    check_named(f, true);
}

/* What is told again as it was is no doubt, and neither is another value that was told.
 */
static void test_what_is_told_again_clears_nobody(void **state)
{
    static const char *const said[] = { "{\"ecc_mode\":true,\"vbios\":\"96\"}",
                                        "{\"ecc_mode\":true}",
                                        "{\"ecc_mode\":false,\"vbios\":\"96\"}",
                                        "{\"ecc_mode\":false,\"vbios\":\"97\"}" };
    struct fixture *f = *state;
    int n = store_before(f);

    say(f, 3, "{\"ecc_mode\":true}");
    n = add_rounds(f, n, SINCE);
    for (int i = 0; i < 4; i++) {
        say(f, 3, said[i]);
        check_named(f, true);
        n = add_rounds(f, n, 1);
        check_named(f, true);
    }
}

/* Any order of arrival gives the same, also where devices were flashed in between. */

static const char *const tables[] = {
    "SELECT * FROM cell_device ORDER BY 1, 2, 3, 4",
    "SELECT * FROM cell_device_digest ORDER BY 1, 2, 3, 4, 5",
    "SELECT cell, device FROM cell_dissenter ORDER BY 1, 2",
    ("SELECT verdict, reason, agreement, agreeing, agreeing_devices, agreeing_runs"
     " FROM cell ORDER BY case_key"),
    NULL,
};

static enum err_code print_tables(struct tx *tx, void *arg, struct err *err)
{
    return orders_print(tx, tables, arg, err);
}

/* The flash of each device lies between its runs, whenever their results arrive. */
static enum err_code flash_in_between(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return tx_run(tx, err,
                  "INSERT INTO device_state (device, since, state) SELECT id,"
                  " printf('01R%023d', 40 + 3 * substr(id, 5)), '{\"vbios\":\"97\"}'"
                  " FROM device");
}

static char *tables_of_order(uint32_t seed)
{
    enum { ROUNDS = 12, RUNS = DEVICES * ROUNDS };
    struct fixture *f = fixture_new();
    struct buf out = BUF_INIT;
    int order[RUNS];

    fixture_open(f);
    insert_job(f);
    fixture_write(f, flash_in_between, NULL);
    orders_fill(order, RUNS, seed);
    for (int i = 0; i < RUNS; i++) {
        int n = order[i] + 1, device = order[i] % DEVICES;

        add_run(f, n, device, n <= 40 + 3 * device ? 5 : device == 6 ? 9 : 6);
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
    assert_non_null(strstr(first, "GPU-6"));
    orders_check(tables_of_order, first);
    free(first);
}

/* Runs beside other processes are measured where that is configured.  That a device
 * departs only then is said beside its name. */
static void add_run_beside(struct fixture *f, int n, int item, int digest, bool beside)
{
    struct fixture_run r = {
        .n = n,
        .job = 1,
        .item = item,
        .outcome = OUTCOME_COMPLETED,
        .environment = 1,
        .digest = digest,
        .telemetry_start = n % 2 && beside ? "{\"foreign_processes\":[\"47 python3\"]}"
                                           : "{\"foreign_processes\":[]}",
        .telemetry_end =
            n % 2 || !beside ? NULL : "{\"foreign_processes\":[\"47 python3\"]}",
    };

    fixture_write(f, fixture_whole_run, &r);
}

static void test_a_dissent_beside_others_says_so(void **state)
{
    static const char only[] = "seen only while others used the device";
    struct fixture *f = *state;
    int n = 1;

    insert_job(f);
    for (int i = 0; i < SINCE; i++) {
        for (int device = 0; device < DEVICES; device++) {
            add_run_beside(f, n++, device, device == 3 ? 9 : 5, device == 3 || i == 2);
        }
        add_run_beside(f, n++, 3, 5, false); /* alone it is right */
    }
    for (int i = 0; i < 3 * SINCE; i++) {
        add_run_beside(f, n++, 3, 9, true);
    }
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_DEVICES_DISAGREE);
    assert_non_null(strstr(fixture_cell(f, "ordered").reason, "GPU-3"));
    assert_non_null(strstr(fixture_cell(f, "ordered").reason, only));
    fixture_check_cells(f);
    add_run_beside(f, n++, 3, 9, false);
    assert_null(strstr(fixture_cell(f, "ordered").reason, only));
    assert_non_null(strstr(fixture_cell(f, "ordered").reason, "GPU-3"));
    fixture_check_cells(f);
}

static enum err_code tell_late(struct tx *tx, void *arg, struct err *err)
{
    const struct host host = { .name = "host-0", .boot_id = "boot", .last_seen_ms = 1 };
    struct device device = { .id = "GPU-0",
                             .host = "host-0",
                             .backend = "cuda",
                             .model = "imagined",
                             .attributes_json = arg,
                             .last_seen_ms = INT64_C(4000000000000) };

    return hosts_seen(tx, &host, err) == ERR_OK ? devices_seen(tx, &device, err)
                                                : err->code;
}

/* A clock that was ahead when a device told its state: the next start makes later ids. */
static void test_runs_after_a_clock_that_was_ahead(void **state)
{
    char since[ID_SIZE], id[ID_SIZE], attributes[] = "{\"vbios\":\"97\"}";
    struct fixture *f = *state;

    id_first(INT64_C(4000000000000), since);
    say(f, 0, "{\"vbios\":\"96\"}");
    fixture_write(f, tell_late, attributes);
    fixture_close(f);
    fixture_open(f);
    id_new(INT64_C(1800000000000), id);
    assert_true(strcmp(id, since) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_the_first_of_a_flashed_fleet),
        STORE_TEST(test_the_only_one_that_was_flashed),
        STORE_TEST(test_a_wrong_one_of_a_flashed_fleet),
        STORE_TEST(test_what_is_not_told_did_not_change),
        STORE_TEST(test_a_flash_that_is_told_late),
        STORE_TEST(test_what_is_told_again_clears_nobody),
        STORE_TEST(test_a_dissent_beside_others_says_so),
        STORE_TEST(test_runs_after_a_clock_that_was_ahead),
        cmocka_unit_test(test_any_order_gives_the_same),
    };

    return cmocka_run_group_tests_name("device states", tests, NULL, NULL);
}
