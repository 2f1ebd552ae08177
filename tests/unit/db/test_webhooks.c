/* From events to deliveries, and what becomes of these: nothing is lost, nothing is told
 * twice, and all of it is bounded. */
#include "tests/unit/db/cells_fixture.h"

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "daemon/webhooks/retry.h"
#include "db/events.h"
#include "db/tx.h"
#include "db/webhooks/deliveries.h"
#include "db/webhooks/notices.h"
#include "db/webhooks/outbox.h"
#include "db/webhooks/webhooks.h"

#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

enum { NOW = 5000000 };

static struct webhook made(int n, const char *name, unsigned types)
{
    struct webhook w = {
        .types = types, .retry_ms = 1000, .timeout_ms = 1000, .created_ms = NOW
    };

    fixture_id('W', n, w.id);
    copy_text(w.name, sizeof w.name, name);
    copy_text(w.url, sizeof w.url, "http://a/?key");
    copy_text(w.secret, sizeof w.secret, SECRET);
    return w;
}

static enum err_code insert(struct tx *tx, void *arg, struct err *err)
{
    return webhooks_insert(tx, arg, err);
}

static void add(struct fixture *f, int n, const char *name, unsigned types)
{
    struct webhook w = made(n, name, types);

    fixture_write(f, insert, &w);
}

static enum err_code execute(struct tx *tx, void *arg, struct err *err)
{
    int rc = sqlite3_exec(tx->db, arg, NULL, NULL, NULL);

    return rc == SQLITE_OK ? ERR_OK : tx_error(tx->db, rc, err);
}

static void run_sql(struct fixture *f, const char *sql)
{
    fixture_write(f, execute, (void *)(uintptr_t)sql);
}

static void add_event(struct fixture *f, const char *kind, const char *data)
{
    char *sql = xasprintf("INSERT INTO event (at_ms, kind, data) VALUES (7, '%s', '%s')",
                          kind, data);

    run_sql(f, sql);
    free(sql);
}

static enum err_code take(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return outbox_take_all(tx, NOW, err);
}

/* What is in a webhook's list: "type subject", newest first, a line each. */
struct shown {
    const char *id;
    enum delivery_state state;
    struct buf text;
    struct delivery_row first;
    char body[2048];
    int count;
};

static void show(void *arg, const struct delivery_row *row)
{
    struct shown *s = arg;
    const char *subject = strstr(row->body, "\"subject\":\"") + 11;

    if (s->count++ == 0) {
        s->first = *row;
        copy_text(s->body, sizeof s->body, row->body);
    }
    buf_printf(&s->text, "%s %.*s\n", webhook_type_name(row->type),
               (int)strcspn(subject, "\""), subject);
}

static enum err_code read_shown(struct tx *tx, void *arg, struct err *err)
{
    struct shown *s = arg;

    return deliveries_each(tx, s->id, s->state, 0, 20000, show, s, err);
}

static struct shown shown(struct fixture *f, int n, enum delivery_state state)
{
    static char id[ID_SIZE];
    struct shown s = { .id = id, .state = state };

    fixture_id('W', n, id);
    fixture_read(f, read_shown, &s);
    return s;
}

static void expect(struct fixture *f, int n, const char *wanted)
{
    struct shown s = shown(f, n, DELIVERY_STATES);

    if (strcmp(s.text.data ? s.text.data : "", wanted) != 0) {
        fail_msg("%s", s.text.data ? s.text.data : "nothing");
    }
    buf_release(&s.text);
}

static enum err_code read_list(struct tx *tx, void *arg, struct err *err)
{
    int count;

    return webhooks_list(tx, true, arg, &count, err);
}

static struct webhook the_first(struct fixture *f)
{
    struct webhook list[WEBHOOKS_MAX];

    fixture_read(f, read_list, list);
    return list[0];
}

static unsigned only(enum webhook_type type)
{
    return 1U << type | 1U << WEBHOOK_TEST;
}

static void test_who_gets_what(void **state)
{
    struct fixture *f = *state;

    add_event(f, "host", "{\"host\":\"early\",\"state\":\"lost\"}");
    add(f, 1, "all", (1U << WEBHOOK_TYPES) - 1);
    add(f, 2, "some", only(WEBHOOK_HOST_LOST));
    add_event(f, "host", "{\"host\":\"h\",\"state\":\"lost\"}");
    add_event(f, "host", "{\"host\":\"h\",\"state\":\"back\"}");
    add_event(f, "dissent", "{\"device\":\"d\",\"state\":\"named\"}");
    add_event(f, "dissent", "{\"device\":\"d\",\"state\":\"cleared\"}");
    add_event(f, "device_screened", "{\"device\":\"d\"}");
    add_event(f, "change", "{\"host\":\"h\"}");
    add_event(f, "drift", "{\"host\":\"h\"}");
    add_event(f, "database", "{\"state\":\"damaged\"}");
    add_event(f, "database", "{\"state\":\"whole\"}");
    add_event(f, "run", "{}");
    add_event(f, "of another time", "{}");
    add_event(f, "cell", "{\"id\":7}");
    add_event(f, "job", "{\"id\":\"J\",\"state\":\"finished\"}");
    expect(f, 1, "");
    fixture_write(f, take, NULL);
    expect(f, 1,
           "database.whole database\ndatabase.damaged database\nhost.drift hosts/h\n"
           "host.changed hosts/h\ndevice.screened devices/d\ndevice.cleared devices/d\n"
           "device.dissents devices/d\nhost.back hosts/h\nhost.lost hosts/h\n");
    expect(f, 2, "host.lost hosts/h\n");
    fixture_write(f, take, NULL);
    expect(f, 2, "host.lost hosts/h\n");
}

static void insert_second_job(struct fixture *f)
{
    struct job_item items[2];
    struct fixture_job j = fixture_job(2, items, 2);

    items[0] = fixture_item("unordered", "cpu:a", 100);
    items[1] = fixture_item("ordered", "cpu:a", 100);
    fixture_write(f, fixture_insert_job, &j);
}

/* A cell that has one digest in one job, and another in the next. */
static void test_a_regression(void **state)
{
    struct fixture *f = *state;
    struct fixture_run other = completed(4, ORDERED);
    struct shown s;

    insert_job(f);
    insert_second_job(f);
    add(f, 1, "regressed", only(WEBHOOK_CELL_REGRESSED));
    add(f, 2, "changed", only(WEBHOOK_CELL_CHANGED));
    vary(f, 1);
    store(f, completed(2, ORDERED));
    assert_int_equal(store(f, completed(3, ORDERED)), VERDICT_REPRODUCIBLE);
    fixture_write(f, take, NULL);
    expect(f, 1, "");
    s = shown(f, 2, DELIVERY_STATES);
    assert_true(s.count > 1);
    assert_non_null(strstr(s.body, "\"verdict\":\"reproducible\""));
    assert_non_null(strstr(s.body, "\"href\":\"/v1/cells/"));
    buf_release(&s.text);
    other.digest = 9;
    other.job = 2;
    other.item = 1;
    store(f, other);
    fixture_write(f, take, NULL);
    s = shown(f, 1, DELIVERY_STATES);
    assert_int_equal(s.count, 1);
    assert_non_null(strstr(s.body, "\"was\":\"reproducible\""));
    assert_non_null(strstr(s.body, "\"type\":\"dev.reprod.cell.regressed\""));
    assert_null(strchr(s.first.message, '.'));
    buf_release(&s.text);
}

static void test_the_end_of_a_job_is_told_once(void **state)
{
    struct fixture *f = *state;
    static const char finish[] =
        "UPDATE job SET state = 'finished', finished_ms = 7 WHERE number = 1;"
        "INSERT INTO event (at_ms, kind, data) SELECT 7, 'job', json_object('id', id,"
        " 'state', state) FROM job WHERE number = 1;"
        "INSERT INTO event (at_ms, kind, data) SELECT 7, 'job', json_object('id', id,"
        " 'state', state) FROM job WHERE number = 1;"
        "INSERT INTO event (at_ms, kind, data) SELECT 8, 'job', json_object('id', id,"
        " 'state', state) FROM job WHERE number = 1;";
    struct shown s;

    insert_job(f);
    add(f, 1, "jobs", only(WEBHOOK_JOB_FINISHED));
    run_sql(f, finish);
    fixture_write(f, take, NULL);
    s = shown(f, 1, DELIVERY_STATES);
    assert_int_equal(s.count, 1);
    assert_non_null(strstr(s.first.message, "-finished"));
    buf_release(&s.text);
    run_sql(f,
            "DELETE FROM webhook_delivery; UPDATE job SET priority = 'background';"
            "UPDATE webhook_cursor SET event = 0");
    fixture_write(f, take, NULL);
    expect(f, 1, "");
    run_sql(f, "UPDATE job SET survey = 1; UPDATE webhook_cursor SET event = 0");
    fixture_write(f, take, NULL);
    s = shown(f, 1, DELIVERY_STATES);
    assert_int_equal(s.count, 1);
    buf_release(&s.text);
}

static enum err_code trim(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return events_trim(tx, 1, err);
}

static enum err_code advance(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return outbox_advance(tx, NOW, err);
}

static enum err_code count_events(struct tx *tx, void *arg, struct err *err)
{
    return tx_fetch_int(tx, (int64_t *)arg, err, "SELECT count(*) FROM event");
}

static int64_t events(struct fixture *f)
{
    int64_t count = 0;

    fixture_read(f, count_events, &count);
    return count;
}

static enum err_code delete_one(struct tx *tx, void *arg, struct err *err)
{
    return webhooks_delete(tx, arg, err);
}

struct look {
    int64_t after, last;
    bool found;
};

static enum err_code look(struct tx *tx, void *arg, struct err *err)
{
    struct look *l = arg;

    return outbox_look(tx, l->after, &l->found, &l->last, err);
}

static void test_no_event_is_trimmed_that_was_not_taken(void **state)
{
    struct fixture *f = *state;
    struct look l = { 0 };
    char id[ID_SIZE];

    fixture_id('W', 1, id);
    for (int i = 0; i < 5; i++) {
        add_event(f, "run", "{}");
    }
    fixture_write(f, trim, NULL);
    assert_int_equal(events(f), 1); /* of which nobody wants to know */
    fixture_write(f, advance, NULL);
    fixture_read(f, look, &l);
    assert_false(l.found);
    add(f, 1, "hosts", only(WEBHOOK_HOST_LOST));
    fixture_read(f, look, &l);
    assert_false(l.found);
    assert_int_equal(l.last, 5);
    add_event(f, "host", "{\"host\":\"h\",\"state\":\"lost\"}");
    for (int i = 0; i < 5; i++) {
        add_event(f, "run", "{}");
    }
    fixture_write(f, trim, NULL);
    assert_int_equal(events(f), 6);
    fixture_read(f, look, &l);
    assert_true(l.found);
    assert_int_equal(l.last, 11);
    l.after = 6;
    fixture_read(f, look, &l);
    assert_false(l.found);
    fixture_write(f, advance, NULL);
    fixture_write(f, trim, NULL);
    assert_int_equal(events(f), 1);
    expect(f, 1, "host.lost hosts/h\n");
    fixture_write(f, delete_one, id);
    for (int i = 0; i < 5; i++) {
        add_event(f, "host", "{}");
    }
    fixture_write(f, trim, NULL);
    assert_int_equal(events(f), 1);
}

struct due {
    char id[ID_SIZE];
    int64_t now_ms, next_ms;
    struct delivery_row row;
    char *body;
};

static enum err_code find_due(struct tx *tx, void *arg, struct err *err)
{
    struct due *d = arg;

    return deliveries_due(tx, d->id, d->now_ms, &d->row, &d->body, &d->next_ms, err);
}

static struct due due(struct fixture *f, int64_t now_ms)
{
    struct due d = { .now_ms = now_ms };

    fixture_id('W', 1, d.id);
    fixture_read(f, find_due, &d);
    free(d.body);
    return d;
}

static enum err_code tried(struct tx *tx, void *arg, struct err *err)
{
    return deliveries_tried(tx, arg, err);
}

static struct delivery_try try(struct fixture *f, int64_t delivery, int64_t now_ms,
                               int status, int64_t retry_after_ms)
{
    struct delivery_try t = { .delivery = delivery,
                              .now_ms = now_ms,
                              .status = status,
                              .failures = RETRY_GIVE_UP_FAILURES,
                              .retry_after_ms = retry_after_ms };

    fixture_id('W', 1, t.webhook);
    snprintf(t.cause, status == 204 ? 1 : sizeof t.cause, "it answered %d", status);
    fixture_write(f, tried, &t);
    return t;
}

static enum err_code test_one(struct tx *tx, void *arg, struct err *err)
{
    char id[ID_SIZE];

    fixture_id('W', 1, id);
    return outbox_test(tx, id, NOW, arg, err);
}

static int64_t add_test(struct fixture *f)
{
    int64_t delivery = 0;

    fixture_write(f, test_one, &delivery);
    assert_true(delivery > 0);
    return delivery;
}

static void test_tries(void **state)
{
    struct fixture *f = *state;
    struct delivery_try t;
    struct webhook w;
    int64_t first, second;

    add(f, 1, "a", only(WEBHOOK_HOST_LOST));
    assert_int_equal(due(f, NOW).next_ms, 0);
    first = add_test(f);
    second = add_test(f);
    assert_int_equal(due(f, NOW - 1).row.number, 0);
    assert_int_equal(due(f, NOW - 1).next_ms, NOW);
    assert_int_equal(due(f, NOW).row.number, first);
    try(f, first, NOW + 5, 500, 0);
    assert_int_equal(due(f, NOW + 900).row.number, second);
    try(f, second, NOW + 10, 204, 0);
    assert_int_equal(due(f, NOW + 804).row.number, 0);
    assert_int_equal(due(f, NOW + 805).row.number, first);
    w = the_first(f);
    assert_int_equal(w.delivered, 1);
    assert_int_equal(w.failures, 1);
    assert_int_equal(w.failing_ms, 0);
    assert_string_equal(w.cause, "it answered 500");
    try(f, first, NOW + 805, 0, 60000);
    assert_int_equal(due(f, NOW).next_ms, NOW + 60805);
    assert_int_equal(the_first(f).failing_ms, NOW + 805);
    for (int i = 2; i < RETRY_ATTEMPTS_MAX - 1; i++) {
        t = try(f, first, NOW + 60805, 500, 0);
        assert_false(t.dead);
    }
    t = try(f, first, NOW + 70000, 500, 0);
    assert_true(t.dead);
    assert_int_equal(the_first(f).dead, 1);
    assert_int_equal(the_first(f).waiting, 0);
    try(f, 4711, NOW, 500, 0); /* which is no longer there */
    /* 410: it waits, and nothing is sent. */
    first = add_test(f);
    t = try(f, first, NOW + 80000, 410, 0);
    assert_true(t.disabled && !t.dead);
    assert_string_equal(the_first(f).disabled, "it answered 410");
    assert_int_equal(the_first(f).waiting, 1);
}

static enum err_code pause(struct tx *tx, void *arg, struct err *err)
{
    char id[ID_SIZE];

    fixture_id('W', 1, id);
    return webhooks_pause(tx, id, *(bool *)arg, NOW, err);
}

static void test_a_resumed_one_begins_at_once(void **state)
{
    struct fixture *f = *state;
    bool paused = true;

    add(f, 1, "a", only(WEBHOOK_HOST_LOST));
    try(f, add_test(f), NOW, 410, 0);
    fixture_write(f, pause, &paused);
    assert_true(the_first(f).paused && the_first(f).disabled[0]);
    assert_int_equal(due(f, NOW).row.number, 0);
    paused = false;
    fixture_write(f, pause, &paused);
    assert_true(!the_first(f).paused && !the_first(f).disabled[0] &&
                !the_first(f).failing_ms);
    assert_true(due(f, NOW).row.number > 0);
}

/* In the order in which it happened, whatever was tried. */
static void test_a_resumed_one_gets_all_in_order(void **state)
{
    struct fixture *f = *state;
    bool paused = false;
    int64_t first, second;

    add(f, 1, "a", only(WEBHOOK_HOST_LOST));
    first = add_test(f);
    second = add_test(f);
    try(f, first, NOW, 429, RETRY_AFTER_MOST_MS);
    assert_int_equal(due(f, NOW).row.number, second);
    fixture_write(f, pause, &paused);
    assert_int_equal(due(f, NOW).row.number, first);
}

/* A service that was off has not tried. */
static void test_few_tries_give_nothing_up(void **state)
{
    struct fixture *f = *state;
    struct delivery_try t = { .delivery = 2,
                              .now_ms = NOW + 3 * RETRY_GIVE_UP_MS,
                              .status = 500,
                              .failures = RETRY_GIVE_UP_FAILURES - 1 };

    add(f, 1, "a", only(WEBHOOK_HOST_LOST));
    add_test(f);
    add_test(f);
    try(f, 1, NOW, 500, 0);
    fixture_id('W', 1, t.webhook);
    fixture_write(f, tried, &t);
    assert_int_equal(t.given_up, 0);
    t.failures++;
    fixture_write(f, tried, &t);
    assert_int_equal(t.given_up, 2);
}

/* A receiver that takes nothing for a day. */
static void test_what_waits_for_a_dead_receiver_is_given_up(void **state)
{
    struct fixture *f = *state;
    struct delivery_try t;
    struct shown s;

    add(f, 1, "a", only(WEBHOOK_HOST_LOST));
    for (int i = 0; i < 3; i++) {
        add_test(f);
    }
    try(f, 1, NOW, 500, 0);
    t = try(f, 1, NOW + RETRY_GIVE_UP_MS, 500, 0);
    assert_int_equal(t.given_up, 0);
    run_sql(f,
            "UPDATE webhook_delivery SET created_ms = created_ms + 5 WHERE number = 3");
    t = try(f, 1, NOW + RETRY_GIVE_UP_MS + 1, 500, 0);
    assert_int_equal(t.given_up, 2);
    s = shown(f, 1, DELIVERY_DEAD);
    assert_int_equal(s.count, 2);
    assert_string_equal(s.first.cause, "the receiver took nothing for a day");
    buf_release(&s.text);
    s = shown(f, 1, DELIVERY_WAITING);
    assert_int_equal(s.count, 1);
    buf_release(&s.text);
}

static void test_bounds(void **state)
{
    static const char many[] =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
        " INSERT INTO webhook_delivery (webhook, message, type, at_ms, body, created_ms,"
        " next_ms, state, ended_ms) SELECT 1, '%s' || i, 'webhook.test', 1,"
        " '{\"subject\":\"x\"}', 1, 1,"
        " '%s', 1 FROM n";
    struct fixture *f = *state;
    char *sql;

    add(f, 1, "a", only(WEBHOOK_HOST_LOST));
    sql = xasprintf(many, WEBHOOK_WAITING_MAX, "w", "waiting");
    run_sql(f, sql);
    free(sql);
    sql = xasprintf(many, WEBHOOK_DEAD_MAX, "d", "dead");
    run_sql(f, sql);
    free(sql);
    sql = xasprintf(many, WEBHOOK_DELIVERED_KEPT + 7, "k", "delivered");
    run_sql(f, sql);
    free(sql);
    add_test(f);
    assert_int_equal(the_first(f).waiting, WEBHOOK_WAITING_MAX);
    assert_int_equal(the_first(f).dead, WEBHOOK_DEAD_MAX);
    assert_int_equal(the_first(f).dropped, 1);
    {
        struct shown s = shown(f, 1, DELIVERY_STATES);

        assert_int_equal(s.count,
                         WEBHOOK_WAITING_MAX + WEBHOOK_DEAD_MAX + WEBHOOK_DELIVERED_KEPT);
        buf_release(&s.text);
    }
}

struct replay {
    int64_t delivery, since_ms, until_ms, count;
};

static enum err_code replay(struct tx *tx, void *arg, struct err *err)
{
    struct replay *r = arg;
    char id[ID_SIZE];

    fixture_id('W', 1, id);
    return r->until_ms
               ? outbox_replay(tx, id, r->since_ms, r->until_ms, NOW, &r->count, err)
               : deliveries_replay(tx, id, r->delivery, NOW, &r->count, err);
}

static void test_replays(void **state)
{
    struct fixture *f = *state;
    struct replay r = { .until_ms = 8, .since_ms = 6 };
    struct err err;

    add_event(f, "host", "{\"host\":\"early\",\"state\":\"lost\"}");
    run_sql(f, "UPDATE event SET at_ms = 6");
    add(f, 1, "a", only(WEBHOOK_HOST_LOST));
    add_event(f, "host", "{\"host\":\"h\",\"state\":\"lost\"}");
    fixture_write(f, take, NULL);
    try(f, 1, NOW, 204, 0);
    fixture_write(f, replay, &r);
    assert_int_equal(r.count, 2);
    expect(f, 1, "host.lost hosts/early\nhost.lost hosts/h\n");
    assert_string_equal(due(f, NOW).row.message, "1-6-host-lost"); /* it was first */
    r = (struct replay){ .until_ms = 6, .since_ms = 1 };
    fixture_write(f, replay, &r);
    assert_int_equal(r.count, 0);
    run_sql(f, "UPDATE webhook_delivery SET state = 'dead', ended_ms = 9");
    r = (struct replay){ .delivery = 1 };
    fixture_write(f, replay, &r);
    assert_int_equal(r.count, 1);
    r = (struct replay){ .delivery = 0 };
    fixture_write(f, replay, &r);
    assert_int_equal(r.count, 1);
    fixture_write(f, replay, &r);
    assert_int_equal(r.count, 0);
    r = (struct replay){ .delivery = 99 };
    assert_int_equal(store_write_sync(f->store, replay, &r, &err), ERR_NOT_FOUND);
}

struct list {
    struct webhook webhooks[2];
    int count;
    int64_t dropped;
};

static enum err_code configure(struct tx *tx, void *arg, struct err *err)
{
    struct list *l = arg;

    return webhooks_configure(tx, l->webhooks, l->count, NOW, &l->dropped, err);
}

static void test_a_configuration(void **state)
{
    struct fixture *f = *state;
    struct list l = { .count = 2 };
    struct err err;
    char id[ID_SIZE];

    add(f, 1, "a", only(WEBHOOK_HOST_LOST));
    add_test(f);
    l.webhooks[0] = made(8, "a", only(WEBHOOK_HOST_BACK));
    l.webhooks[1] = made(9, "b", only(WEBHOOK_HOST_BACK));
    l.webhooks[0].configured = l.webhooks[1].configured = true;
    fixture_write(f, configure, &l);
    fixture_id('W', 1, id);
    assert_string_equal(the_first(f).id, id); /* what waits goes on to wait */
    assert_int_equal(the_first(f).waiting, 1);
    assert_int_equal(the_first(f).types, only(WEBHOOK_HOST_BACK));
    assert_string_equal(the_first(f).secret, "");
    assert_int_equal(store_write_sync(f->store, delete_one, id, &err), ERR_CONFLICT);
    /* Another URL is another receiver: nothing is known of it. */
    try(f, 1, NOW, 410, 0);
    fixture_write(f, configure, &l);
    assert_true(the_first(f).disabled[0] && the_first(f).failing_ms);
    copy_text(l.webhooks[0].url, URL_SIZE, "http://other/");
    fixture_write(f, configure, &l);
    assert_true(!the_first(f).disabled[0] && !the_first(f).failing_ms);
    assert_string_equal(the_first(f).url, "http://other/");
    assert_int_equal(due(f, NOW).row.number, 1);
    l.webhooks[0] = l.webhooks[1];
    l.count = 1;
    fixture_write(f, configure, &l);
    assert_int_equal(l.dropped, 1);
    assert_string_equal(the_first(f).name, "b");
    assert_int_equal(store_write_sync(f->store, delete_one, id, &err), ERR_NOT_FOUND);
    l.count = 0;
    fixture_write(f, configure, &l);
    assert_int_equal(l.dropped, 0);
}

static void test_how_many_there_may_be(void **state)
{
    struct fixture *f = *state;
    struct webhook w = made(1, "a", 1);
    struct err err;

    add(f, 1, "a", 1);
    fixture_id('W', 2, w.id);
    assert_int_equal(store_write_sync(f->store, insert, &w, &err), ERR_CONFLICT);
    for (int i = 2; i <= WEBHOOKS_MAX; i++) {
        char name[16];

        snprintf(name, sizeof name, "%d", i);
        add(f, i, name, 1);
    }
    w = made(99, "z", 1);
    assert_int_equal(store_write_sync(f->store, insert, &w, &err), ERR_BUSY);
}

static enum err_code lose(struct tx *tx, void *arg, struct err *err)
{
    return notices_host(tx, "h", arg, NOW, err);
}

static enum err_code doubt(struct tx *tx, void *arg, struct err *err)
{
    return notices_database(tx, arg, NOW, err);
}

static void note_lost(void *arg, const char *host)
{
    buf_puts(arg, host);
}

static enum err_code read_lost(struct tx *tx, void *arg, struct err *err)
{
    return notices_each_lost(tx, note_lost, arg, err);
}

static void test_notices_are_told_once(void **state)
{
    struct fixture *f = *state;
    struct buf lost = BUF_INIT;
    char gone[] = "gone", again[] = "gone again", page[] = "a page";

    add(f, 1, "a", webhook_types_usual());
    fixture_write(f, lose, NULL);
    fixture_write(f, lose, gone);
    fixture_write(f, lose, again);
    fixture_read(f, read_lost, &lost);
    assert_string_equal(lost.data, "h");
    fixture_write(f, lose, NULL);
    fixture_write(f, lose, NULL);
    fixture_write(f, doubt, page);
    fixture_write(f, doubt, NULL);
    fixture_write(f, take, NULL);
    expect(f, 1,
           "database.whole database\ndatabase.damaged database\nhost.back hosts/h\n"
           "host.lost hosts/h\n");
    buf_release(&lost);
}

static enum err_code settle(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return deliveries_settle(tx, NOW, err);
}

static void test_a_clock_that_was_ahead(void **state)
{
    struct fixture *f = *state;

    add(f, 1, "a", 1);
    add_test(f);
    run_sql(f, "UPDATE webhook_delivery SET next_ms = 5000000 + 86400000");
    fixture_write(f, settle, NULL);
    assert_int_equal(due(f, NOW).row.number, 0);
    run_sql(f, "UPDATE webhook_delivery SET next_ms = 5000001 + 86400000");
    fixture_write(f, settle, NULL);
    assert_int_equal(due(f, NOW).row.number, 1);
}

static enum err_code read_figures(struct tx *tx, void *arg, struct err *err)
{
    return webhooks_figures(tx, arg, err);
}

static void test_figures(void **state)
{
    struct fixture *f = *state;
    struct webhook_figures figures;

    fixture_read(f, read_figures, &figures);
    assert_int_equal(figures.webhooks + figures.waiting + figures.dropped, 0);
    add(f, 1, "a", 1);
    add(f, 2, "b", 1);
    add_test(f);
    try(f, 1, NOW, 410, 0);
    fixture_read(f, read_figures, &figures);
    assert_int_equal(figures.webhooks, 2);
    assert_int_equal(figures.failing, 1);
    assert_int_equal(figures.disabled, 1);
    assert_int_equal(figures.waiting, 1);
    assert_int_equal(figures.failures, 1);
    assert_int_equal(figures.dead + figures.delivered, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_who_gets_what),
        STORE_TEST(test_a_regression),
        STORE_TEST(test_the_end_of_a_job_is_told_once),
        STORE_TEST(test_no_event_is_trimmed_that_was_not_taken),
        STORE_TEST(test_tries),
        STORE_TEST(test_a_resumed_one_begins_at_once),
        STORE_TEST(test_a_resumed_one_gets_all_in_order),
        STORE_TEST(test_few_tries_give_nothing_up),
        STORE_TEST(test_what_waits_for_a_dead_receiver_is_given_up),
        STORE_TEST(test_bounds),
        STORE_TEST(test_replays),
        STORE_TEST(test_a_configuration),
        STORE_TEST(test_how_many_there_may_be),
        STORE_TEST(test_notices_are_told_once),
        STORE_TEST(test_a_clock_that_was_ahead),
        STORE_TEST(test_figures),
    };

    return cmocka_run_group_tests_name("webhooks", tests, NULL, NULL);
}
