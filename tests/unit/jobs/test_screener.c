/* Screenings are judged a few at a time, and all of them are, in whatever order their
 * jobs end. */
#include "daemon/screening.h"

#include <poll.h>

#include "db/fleet.h"
#include "db/jobs.h"
#include "db/screening/screenings.h"
#include "tests/unit/db/store_fixture.h"

enum { EARLY = 8, DEVICES = 40 }; /* 32 are judged at a time */

static void name_device(int n, struct job_item *item)
{
    char device[16];

    snprintf(device, sizeof device, "GPU-%d", n);
    *item = fixture_item("ordered", device, 5);
}

static enum err_code see_devices(struct tx *tx, void *arg, struct err *err)
{
    struct host host = { .name = "host-0", .boot_id = "boot", .last_seen_ms = 1 };
    enum err_code code = hosts_seen(tx, &host, err);

    (void)arg;
    for (int i = 0; i < DEVICES && code == ERR_OK; i++) {
        struct device device = { .host = "host-0",
                                 .backend = "cpu",
                                 .model = "imagined",
                                 .attributes_json = "{}",
                                 .last_seen_ms = 1 };
        struct screening_seen seen = { .device = &device, .facts = "{}" };

        snprintf(device.id, sizeof device.id, "GPU-%d", i);
        code = screenings_seen(tx, &seen, err);
    }
    return code;
}

/* A job of the first devices, and one of the others. */
static enum err_code plan(struct tx *tx, void *arg, struct err *err)
{
    struct job_item items[DEVICES];
    struct fixture_job first = fixture_job(1, items, EARLY);
    struct fixture_job second = fixture_job(2, items + EARLY, DEVICES - EARLY);

    (void)arg;
    for (int i = 0; i < DEVICES; i++) {
        name_device(i, &items[i]);
        items[i].seq = i < EARLY ? i : i - EARLY;
    }
    return screenings_plan(tx, &first.job, 1, 10, err) == ERR_OK
               ? screenings_plan(tx, &second.job, 1, 20, err)
               : err->code;
}

static enum err_code cancel(struct tx *tx, void *arg, struct err *err)
{
    char id[ID_SIZE];

    fixture_id('J', *(const int *)arg, id);
    return jobs_cancel(tx, id, 30, err);
}

static enum err_code count(struct tx *tx, void *arg, struct err *err)
{
    return screenings_count(tx, arg, err);
}

static int measuring(struct fixture *f)
{
    struct screening_figures figures;

    fixture_read(f, count, &figures);
    return (int)figures.measuring;
}

static const struct catalogue *catalogue(void *arg)
{
    return arg; /* there is one; nobody looks into it */
}

static int devices(void *arg, const struct device_stack **ret_devices)
{
    (void)arg;
    *ret_devices = NULL;
    return 0;
}

static bool yes(void *arg)
{
    (void)arg;
    return true;
}

static void nothing(void *arg)
{
    (void)arg;
}

/* As many steps as the service does in so many seconds, each to its end. */
static void step(struct fixture *f, struct screener *screener, int64_t *now, int steps)
{
    for (int i = 0; i < steps; i++) {
        screener_tick(screener, *now, *now);
        *now += 1000;
        for (int rest = 0; rest < 2; rest++) { /* a read, and perhaps a write */
            while (store_pending(f->store) > 0) {
                struct pollfd ready = { .fd = store_fd(f->store), .events = POLLIN };

                poll(&ready, 1, 100);
                store_dispatch(f->store);
            }
        }
    }
}

static void test_what_ends_behind_those_that_were_judged_is_judged(void **state)
{
    struct fixture *f = *state;
    int some_catalogue = 0, first = 1, second = 2;
    struct screener_hooks hooks = { .arg = &some_catalogue,
                                    .catalogue = catalogue,
                                    .devices = devices,
                                    .recorded = yes,
                                    .complete = yes,
                                    .nothing = nothing };
    struct screener *screener = screener_new(f->store, &hooks);
    int64_t now = 1000;

    fixture_write(f, see_devices, NULL);
    fixture_write(f, plan, NULL);
    fixture_write(f, cancel, &second);
    assert_int_equal(measuring(f), DEVICES);
    step(f, screener, &now, 1);
    assert_int_equal(measuring(f), EARLY);
    fixture_write(f, cancel, &first);
    step(f, screener, &now, 5);
    assert_int_equal(measuring(f), 0);
    screener_free(screener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_what_ends_behind_those_that_were_judged_is_judged),
    };

    return cmocka_run_group_tests_name("screener", tests, NULL, NULL);
}
