/* Which environments a host had before a change and after it, by its runs, and where
 * these were folded away by the first and last one of each environment. */
#include "tests/unit/db/cells_fixture.h"

#include "daemon/base/mem.h"
#include "db/fleet.h"
#include "db/tx.h"
#include "db/views/drift.h"

/* Long before the runs of the fixture: of then only spans are known. */
#define BEGIN_MS INT64_C(1800000000000)

static enum err_code insert_hosts(struct tx *tx, void *arg, struct err *err)
{
    struct host host = { .name = "h", .last_seen_ms = 1 };
    struct device device = {
        .id = "cpu:a", .host = "h", .backend = "cpu", .last_seen_ms = 1
    };

    (void)arg;
    return hosts_seen(tx, &host, err) == ERR_OK ? devices_seen(tx, &device, err)
                                                : err->code;
}

struct folded {
    int environment;
    int64_t first_s, last_s;
};

static enum err_code set_span(struct tx *tx, void *arg, struct err *err)
{
    const struct folded *span = arg;
    char first[ID_SIZE], last[ID_SIZE];

    id_first(BEGIN_MS + span->first_s * 1000, first);
    id_first(BEGIN_MS + span->last_s * 1000, last);
    return tx_run(tx, err,
                  "UPDATE device_environment SET first_run = ?, last_run = ?"
                  " WHERE environment = (SELECT number FROM environment"
                  " WHERE CAST(id AS INTEGER) = ?)",
                  first, last, span->environment);
}

struct asked {
    int64_t since_s, until_s;
    struct drift_pair pairs[DRIFT_PAIRS_MAX];
    int count;
};

static enum err_code ask(struct tx *tx, void *arg, struct err *err)
{
    struct asked *a = arg;

    return drift_pairs(tx, "h", BEGIN_MS + a->since_s * 1000,
                       a->until_s ? BEGIN_MS + a->until_s * 1000 : 0, a->pairs, &a->count,
                       err);
}

/* Environment 1, then 2 for a while, then 1 again; 3 much later, of which runs are known.
 */
static void make(struct fixture *f)
{
    static struct folded spans[] = { { 1, 100, 600 }, { 2, 300, 400 } };

    insert_job(f);
    fixture_write(f, insert_hosts, NULL);
    for (int n = 1; n <= 3; n++) {
        struct fixture_run r = completed(n, ORDERED);

        r.environment = n;
        store(f, r);
    }
    for (int i = 0; i < 2; i++) {
        fixture_write(f, set_span, &spans[i]);
    }
}

static void test_ends_are_those_of_then(void **state)
{
    static const struct {
        int64_t since_s, until_s;
        int from, to; /* 0: nothing was measured; from 0: nor before */
    } table[] = {
        { 250, 450, 1, 2 }, /* not what the host has now, nor what it had first */
        { 450, 700, 2, 1 }, { 250, 700, 1, 1 }, { 250, 290, 1, 0 },
        { 450, 500, 2, 0 }, { 450, 0, 2, 3 },   { 50, 450, 0, 0 },
    };
    struct fixture *f = *state;

    make(f);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct asked a = { .since_s = table[i].since_s, .until_s = table[i].until_s };

        fixture_write(f, ask, &a);
        assert_int_equal(a.count, table[i].from != 0);
        if (a.count && (strtol(a.pairs[0].from, NULL, 10) != table[i].from ||
                        strtol(a.pairs[0].to, NULL, 10) != table[i].to)) {
            fail_msg("%zu: %s to '%s'", i, a.pairs[0].from, a.pairs[0].to);
        }
    }
}

static enum err_code read_unmeasured(struct tx *tx, void *arg, struct err *err)
{
    struct drift_pair pair;
    struct drift drift;
    enum err_code code;

    (void)arg;
    copy_text(pair.from, sizeof pair.from, "00000000000000000000000000000001");
    pair.to[0] = '\0';
    code = drift_read_pair(tx, &pair, "h", BEGIN_MS, BEGIN_MS + 1000, BEGIN_MS, 0, &drift,
                           err);
    assert_true(drift.unmeasured);
    assert_int_equal(drift.case_count, 0);
    assert_string_equal(drift.from.environment.id, pair.from);
    drift_release(&drift);
    return code;
}

static void test_what_was_not_measured_has_no_cases(void **state)
{
    struct fixture *f = *state;

    make(f);
    fixture_write(f, read_unmeasured, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_ends_are_those_of_then),
        STORE_TEST(test_what_was_not_measured_has_no_cases),
    };

    return cmocka_run_group_tests_name("ends of drift", tests, NULL, NULL);
}
