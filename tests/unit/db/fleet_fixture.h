/* What tests of a fleet share: its devices, one of which is wrong, and runs of a job that
 * has a control and a variant on each. */
#ifndef TESTS_UNIT_DB_FLEET_FIXTURE_H
#define TESTS_UNIT_DB_FLEET_FIXTURE_H

#include "tests/unit/db/store_fixture.h"

#include "db/fleet.h"

enum { DEVICES = 8, WRONG = 3 };

static inline enum err_code insert_fleet(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    for (int i = 0; i < DEVICES; i++) {
        struct host host = { .boot_id = "boot", .last_seen_ms = 1 };
        struct device device = { .backend = "cpu",
                                 .attributes_json = "{}",
                                 .last_seen_ms = 1 };

        snprintf(host.name, sizeof host.name, "host-%d", i / 4);
        snprintf(device.id, sizeof device.id, "GPU-%d", i);
        snprintf(device.host, sizeof device.host, "%s", host.name);
        snprintf(device.model, sizeof device.model, "imagined");
        if (hosts_seen(tx, &host, err) != ERR_OK ||
            devices_seen(tx, &device, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

/* Items: a control and a variant on each device. */
static inline void insert_fleet_job_on(struct fixture *f, const char *stack)
{
    struct job_item items[2 * DEVICES];
    struct fixture_job j = fixture_job(1, items, 2 * DEVICES);

    fixture_write(f, insert_fleet, NULL);
    for (int i = 0; i < DEVICES; i++) {
        char device[16];

        snprintf(device, sizeof device, "GPU-%d", i);
        items[2 * i] = fixture_item("unordered", device, 100);
        items[2 * i + 1] = fixture_item("ordered", device, 100);
        snprintf(items[2 * i].stack, sizeof items[2 * i].stack, "%s", stack);
        snprintf(items[2 * i + 1].stack, sizeof items[2 * i + 1].stack, "%s", stack);
    }
    fixture_write(f, fixture_insert_job, &j);
}

static inline void insert_fleet_job(struct fixture *f)
{
    insert_fleet_job_on(f, "cpu");
}

static inline enum verdict store(struct fixture *f, int n, int device, bool control,
                                 int digest)
{
    struct fixture_run r = { .n = n,
                             .job = 1,
                             .item = 2 * device + !control,
                             .outcome = OUTCOME_COMPLETED,
                             .environment = 1,
                             .digest = digest,
                             .distinct = control ? 3 : 1 };

    fixture_write(f, fixture_whole_run, &r);
    return r.effect.verdict;
}

#endif
