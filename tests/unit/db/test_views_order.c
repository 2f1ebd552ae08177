/* Whatever the order in which results arrive, the views and drift are the same, byte for
 * byte.  Only the numbers of cells are the file's own. */
#include "tests/unit/db/cells_fixture.h"
#include "tests/unit/db/orders_fixture.h"

#include "api/render/classes.h"
#include "api/render/drift.h"
#include "daemon/base/buf.h"
#include "daemon/base/json_out.h"
#include "db/fleet.h"
#include "db/tx.h"
#include "db/views/classes.h"
#include "db/views/drift.h"

enum { RUNS = 22, ORDERS_FEW = 200, ORDERS = 1000 };

static const int64_t now_ms = 100000;

/* Environment 1 first, then environment 2, in which `ordered` has other bits, `free`
 * varies, and a second device disagrees. */
static const struct {
    int item, environment, digest, distinct;
} made[RUNS] = {
    { UNORDERED, 1, 10, 3 },   { UNORDERED, 1, 20, 3 }, { UNORDERED_B, 1, 30, 2 },
    { ORDERED, 1, 1, 1 },      { ORDERED, 1, 1, 1 },    { ORDERED, 1, 1, 1 },
    { ORDERED_B, 1, 1, 1 },    { ORDERED_B, 1, 1, 1 },  { FREE, 1, 5, 1 },
    { FREE, 1, 5, 1 },         { UNORDERED, 2, 40, 3 }, { UNORDERED, 2, 50, 3 },
    { UNORDERED_B, 2, 60, 1 }, { ORDERED, 2, 2, 1 },    { ORDERED, 2, 2, 1 },
    { ORDERED, 2, 2, 1 },      { ORDERED_B, 2, 3, 1 },  { ORDERED_B, 2, 3, 1 },
    { FREE, 2, 5, 1 },         { FREE, 2, 6, 1 },       { FREE, 2, 5, 2 },
    { UNORDERED_B, 2, 60, 2 },
};

struct order {
    int runs[RUNS];
    struct buf text;
};

static enum err_code finish(struct tx *tx, struct fixture_run *r, struct err *err)
{
    struct run_digest digests[FIXTURE_DISTINCT_MAX];
    struct run_record before;
    struct run_record run;
    char facts[64];
    struct run_result result = { .run = &run,
                                 .digests = digests,
                                 .environment_title = "this machine",
                                 .environment_json = facts,
                                 .libraries_json = "[]" };
    char id[ID_SIZE];

    snprintf(facts, sizeof facts, "{\"backend\":\"cpu\",\"driver\":\"%d\"}",
             550 + 10 * r->environment);
    fixture_id('R', r->n, id);
    if (runs_get(tx, id, &before, err) != ERR_OK) {
        return err->code;
    }
    run = fixture_result(r, before.device, digests, &result.digest_count);
    return runs_finish(tx, &result, &r->effect, err);
}

static void show_classes(const struct classes *classes, bool of_devices, struct buf *buf)
{
    struct classes_view view = { .classes = classes,
                                 .of_devices = of_devices,
                                 .environment = "e",
                                 .environment_title = "this machine",
                                 .count = classes->column_count,
                                 .as_of_ms = now_ms };
    struct json_out out = JSON_OUT_INIT;

    classes_text(&view, buf);
    classes_csv(&view, buf);
    classes_json(&view, &out);
    out_close(&out, '}');
    buf_add(buf, out.buf.data, out.buf.length);
    buf_release(&out.buf);
}

static void show_drift(struct drift *drift, struct buf *buf)
{
    struct json_out out = JSON_OUT_INIT;

    drift_settle(drift, NULL, 0);
    drift_text(drift, buf);
    drift_csv(drift, buf);
    drift_json(drift, &out);
    buf_add(buf, out.buf.data, out.buf.length);
    buf_release(&out.buf);
}

static void forget_numbers(struct buf *buf)
{
    static const char before[] = "/v1/cells/";
    char *to = buf->data;
    char *at = buf->data;

    while (*at) {
        bool is_href = strncmp(at, before, sizeof before - 1) == 0;

        *to++ = *at++;
        if (is_href) {
            memmove(to, at, sizeof before - 2);
            to += sizeof before - 2;
            at += sizeof before - 2;
            at += strspn(at, "0123456789");
        }
    }
    *to = '\0';
}

/* Stores all runs in that order, shows everything, and fails, so that nothing stays. */
static enum err_code arrive(struct tx *tx, void *arg, struct err *err)
{
    struct order *order = arg;
    static const char one[] = "00000000000000000000000000000001";
    static const char two[] = "00000000000000000000000000000002";
    const struct classes_filter filter = { .subject = SUBJECT_COUNT, .now_ms = now_ms };
    struct fixture_run runs[RUNS];
    struct classes classes;
    struct drift drift;
    const char *missing;

    /* What a run is asked to check depends on what is known when it begins. */
    for (int n = 0; n < RUNS; n++) {
        runs[n] = completed(n + 1, made[n].item);
        runs[n].environment = made[n].environment;
        runs[n].digest = made[n].digest;
        runs[n].distinct = made[n].distinct;
        assert_int_equal(fixture_begin(tx, &runs[n], err), ERR_OK);
    }
    for (int i = 0; i < RUNS; i++) {
        if (finish(tx, &runs[order->runs[i]], err) != ERR_OK) {
            fail_msg("run %d: %s", order->runs[i], err->message);
        }
    }
    assert_int_equal(classes_read_environments(tx, &filter, &classes, err), ERR_OK);
    assert_int_equal(classes.column_count, 2);
    show_classes(&classes, false, &order->text);
    classes_release(&classes);
    assert_int_equal(classes_read_devices(tx, &filter, two, &classes, err), ERR_OK);
    show_classes(&classes, true, &order->text);
    classes_release(&classes);
    assert_int_equal(drift_read(tx, one, two, now_ms, 0, &drift, &missing, err), ERR_OK);
    show_drift(&drift, &order->text);
    drift_release(&drift);
    forget_numbers(&order->text);
    return err_set(err, ERR_BUSY, "rolled back");
}

static enum err_code insert_hosts(struct tx *tx, void *arg, struct err *err)
{
    static const char *const devices[] = { "cpu:a", "cpu:b" };
    struct host host = { .name = "h", .last_seen_ms = 1 };
    enum err_code code = hosts_seen(tx, &host, err);

    (void)arg;
    for (int i = 0; i < 2 && code == ERR_OK; i++) {
        struct device device = { .host = "h", .backend = "cpu", .last_seen_ms = 1 };

        snprintf(device.id, sizeof device.id, "%s", devices[i]);
        code = devices_seen(tx, &device, err);
    }
    return code;
}

static void shuffle(struct order *order, unsigned *random)
{
    for (int i = RUNS - 1; i > 0; i--) {
        int kept = order->runs[i];
        int other;

        *random = *random * 1103515245 + 12345;
        other = (int)(*random >> 16) % (i + 1);
        order->runs[i] = order->runs[other];
        order->runs[other] = kept;
    }
}

static void test_every_order_gives_the_same_bytes(void **state)
{
    struct fixture *f = *state;
    struct order order = { .text = BUF_INIT };
    unsigned random = 14;
    int orders = how_many(ORDERS_FEW, ORDERS);
    char *first = NULL;

    insert_job(f);
    fixture_write(f, insert_hosts, NULL);
    for (int i = 0; i < RUNS; i++) {
        order.runs[i] = i;
    }
    for (int n = 0; n < orders; n++) {
        struct err err;

        assert_int_equal(store_write_sync(f->store, arrive, &order, &err), ERR_BUSY);
        if (n == 0) {
            first = strdup(order.text.data);
            assert_non_null(strstr(first, "driver 560 → 570 on h"));
            assert_non_null(strstr(first, "Vary now (1)"));
        } else if (strcmp(order.text.data, first) != 0) {
            fail_msg("order %d shows:\n%s\ninstead of:\n%s", n, order.text.data, first);
        }
        buf_release(&order.text);
        shuffle(&order, &random);
    }
    free(first);
}

/* A cell that somebody edited shows no digest, and is not green. */
static enum err_code look_at_edited(struct tx *tx, void *arg, struct err *err)
{
    const struct classes_filter filter = { .subject = SUBJECT_COUNT, .now_ms = now_ms };
    static const char one[] = "00000000000000000000000000000001";
    struct classes classes;
    enum err_code code;

    (void)arg;
    code = tx_run(tx, err,
                  "UPDATE cell SET verdict = 'reproducible', distinct_digests = 1,"
                  " iterations = iterations + 1");
    if (code != ERR_OK) {
        return code;
    }
    for (int of_devices = 0; of_devices < 2; of_devices++) {
        assert_int_equal(of_devices
                             ? classes_read_devices(tx, &filter, one, &classes, err)
                             : classes_read_environments(tx, &filter, &classes, err),
                         ERR_OK);
        assert_true(classes.row_count > 0);
        for (int r = 0; r < classes.row_count; r++) {
            assert_int_equal(classes.rows[r].digest_count, 0);
            assert_int_equal(classes.rows[r].entries[0].verdict, VERDICT_INCONCLUSIVE);
            assert_false(classes.rows[r].varies || classes.rows[r].differs);
        }
        classes_release(&classes);
    }
    return ERR_OK;
}

static void test_edited_cells_show_no_digest(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    fixture_write(f, insert_hosts, NULL);
    vary(f, 1);
    store(f, completed(2, ORDERED));
    store(f, completed(3, ORDERED));
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    fixture_write(f, look_at_edited, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_every_order_gives_the_same_bytes),
        STORE_TEST(test_edited_cells_show_no_digest),
    };

    return cmocka_run_group_tests_name("order of arrival", tests, NULL, NULL);
}
