/* What the database knows of names: cases that were asked for, devices that were seen. */
#include "tests/unit/db/cells_fixture.h"

#include "daemon/base/id.h"
#include "db/fleet.h"
#include "db/runs.h"

struct look {
    enum name_kind kind;
    const char *of, *name;
    bool has;
    int listed; /* by names_list */
};

static enum err_code look_up(struct tx *tx, void *arg, struct err *err)
{
    struct look *look = arg;
    struct choices choices = { .count = 0 };

    if (runs_names_has(tx, look->kind, look->of, look->name, &look->has, err) != ERR_OK ||
        look->kind == NAME_JOB) {
        return err->code;
    }
    runs_names_list(tx, look->kind, look->of, &choices, err);
    for (int i = 0; i < choices.count; i++) {
        assert_true(choices.names[i][0] != '\0');
    }
    look->listed = choices.count;
    choices_release(&choices);
    return err->code;
}

static enum err_code see_device(struct tx *tx, void *arg, struct err *err)
{
    struct host host = { .name = "a", .boot_id = "b", .last_seen_ms = 1 };
    struct device device = { .id = "cpu:a",
                             .host = "a",
                             .backend = "cpu",
                             .model = "m",
                             .attributes_json = "{}",
                             .last_seen_ms = 1 };

    (void)arg;
    if (hosts_seen(tx, &host, err) != ERR_OK) {
        return err->code;
    }
    return devices_seen(tx, &device, err);
}

static void expect(struct fixture *f, enum name_kind kind, const char *of,
                   const char *name, bool has, int listed)
{
    struct look look = { .kind = kind, .of = of, .name = name };

    fixture_read(f, look_up, &look);
    assert_int_equal(look.has, has);
    assert_int_equal(look.listed, listed);
}

static void test_names_of_cases_that_were_asked_for(void **state)
{
    struct fixture *f = *state;

    expect(f, NAME_WORKLOAD, "", "conv_wgrad", false, 0);
    insert_job(f);
    expect(f, NAME_WORKLOAD, "", "conv_wgrad", true, 1);
    expect(f, NAME_WORKLOAD, "", "conv_wgra", false, 1);
    expect(f, NAME_VARIANT, "", "ordered", true, 3);
    expect(f, NAME_VARIANT, "conv_wgrad", "free", true, 3);
    expect(f, NAME_VARIANT, "conv_wgrad", "orderd", false, 3);
    expect(f, NAME_VARIANT, "reduce_sum", "ordered", false, 0);
}

static void test_devices_that_were_seen(void **state)
{
    struct fixture *f = *state;

    expect(f, NAME_DEVICE, "", "cpu:a", false, 0);
    fixture_write(f, see_device, NULL);
    expect(f, NAME_DEVICE, "", "cpu:a", true, 1);
    expect(f, NAME_DEVICE, "", "cpu:b", false, 1);
}

static void test_jobs(void **state)
{
    struct fixture *f = *state;
    char id[ID_SIZE];

    insert_job(f);
    fixture_id('J', 1, id);
    expect(f, NAME_JOB, "", id, true, 0);
    expect(f, NAME_JOB, "", "01ARZ3NDEKTSV4RRFFQ69G5FAV", false, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_names_of_cases_that_were_asked_for),
        STORE_TEST(test_devices_that_were_seen),
        STORE_TEST(test_jobs),
    };

    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
