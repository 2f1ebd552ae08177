/* Hosts, devices and environments in the database (db/fleet.c). */
#include "db/fleet.h"

#include "tests/unit/db/store_fixture.h"

struct seen {
    struct host hosts[4];
    struct device devices[4];
    char attributes[4][64];
    struct environment environments[4];
    int count;
};

static void collect_host(void *arg, const struct host *host)
{
    struct seen *s = arg;

    s->hosts[s->count++] = *host;
}

static void collect_device(void *arg, const struct device *device)
{
    struct seen *s = arg;

    snprintf(s->attributes[s->count], sizeof s->attributes[0], "%s",
             device->attributes_json);
    s->devices[s->count++] = *device;
}

static void collect_environment(void *arg, const struct environment *environment)
{
    struct seen *s = arg;

    s->environments[s->count++] = *environment;
}

static enum err_code see_host(struct tx *tx, void *arg, struct err *err)
{
    return hosts_seen(tx, arg, err);
}

static enum err_code see_device(struct tx *tx, void *arg, struct err *err)
{
    return devices_seen(tx, arg, err);
}

static enum err_code read_hosts(struct tx *tx, void *arg, struct err *err)
{
    return hosts_each(tx, collect_host, arg, err);
}

static enum err_code read_devices(struct tx *tx, void *arg, struct err *err)
{
    return devices_each(tx, collect_device, arg, err);
}

static enum err_code read_environments(struct tx *tx, void *arg, struct err *err)
{
    return environments_each(tx, 0, 0, 2, collect_environment, arg, err);
}

static void test_hosts_and_devices_are_refreshed(void **state)
{
    struct fixture *f = *state;
    struct host host = { .name = "a", .boot_id = "1", .last_seen_ms = 10 };
    struct device device = { .id = "cpu:a", .host = "a", .backend = "cpu", .model = "x" };
    struct seen hosts = { .count = 0 };
    struct seen devices = { .count = 0 };
    struct err err;

    assert_int_equal(store_write_sync(f->store, see_device, &device, &err), ERR_INVALID);
    fixture_write(f, see_host, &host);
    fixture_write(f, see_device, &device);
    snprintf(host.boot_id, sizeof host.boot_id, "2");
    host.last_seen_ms = 20;
    device.attributes_json = "{\"cores\":2}";
    fixture_write(f, see_host, &host);
    fixture_write(f, see_device, &device);
    fixture_read(f, read_hosts, &hosts);
    assert_int_equal(hosts.count, 1);
    assert_string_equal(hosts.hosts[0].boot_id, "2");
    assert_int_equal(hosts.hosts[0].first_seen_ms, 10);
    assert_int_equal(hosts.hosts[0].last_seen_ms, 20);
    fixture_read(f, read_devices, &devices);
    assert_int_equal(devices.count, 1);
    assert_string_equal(devices.devices[0].model, "x");
    assert_string_equal(devices.attributes[0], "{\"cores\":2}");
}

struct got {
    const char *id;
    struct environment environment;
    char *json;
};

static enum err_code get(struct tx *tx, void *arg, struct err *err)
{
    struct got *g = arg;

    return environments_get(tx, g->id, &g->environment, &g->json, err);
}

static void test_environments_come_with_runs(void **state)
{
    struct fixture *f = *state;
    struct job_item items[] = { fixture_item("unordered", "cpu:a", 9),
                                fixture_item("ordered", "cpu:a", 9) };
    struct fixture_job j = fixture_job(1, items, 2);
    struct fixture_run runs[] = {
        { .n = 1, .job = 1, .item = 0, .environment = 1 },
        { .n = 2, .job = 1, .item = 1, .environment = 1 },
        { .n = 3, .job = 1, .item = 1, .environment = 2 },
        { .n = 4, .job = 1, .item = 1, .environment = 1 },
    };
    struct got g = { .id = "" };
    struct seen s = { .count = 0 };
    struct err err;

    assert_int_equal(store_read_sync(f->store, get, &g, &err), ERR_NOT_FOUND);
    fixture_write(f, fixture_insert_job, &j);
    for (int i = 0; i < 4; i++) {
        fixture_write(f, fixture_whole_run, &runs[i]);
    }
    fixture_read(f, get, &g);
    assert_string_equal(g.environment.id, "00000000000000000000000000000001");
    assert_string_equal(g.environment.title, "this machine");
    assert_int_equal(g.environment.cells, 2);
    assert_int_equal(g.environment.first_seen_ms, 1000);
    assert_int_equal(g.environment.last_seen_ms, 4900);
    assert_string_equal(g.json, "{\"backend\":\"cpu\"}");
    free(g.json);
    g.id = "00000000000000000000000000000002";
    fixture_read(f, get, &g);
    assert_int_equal(g.environment.cells, 1);
    free(g.json);
    fixture_read(f, read_environments, &s);
    assert_int_equal(s.count, 2);
    assert_int_equal(s.environments[1].last_seen_ms, 3900);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_hosts_and_devices_are_refreshed),
        STORE_TEST(test_environments_come_with_runs),
    };

    return cmocka_run_group_tests_name("fleet_rows", tests, NULL, NULL);
}
