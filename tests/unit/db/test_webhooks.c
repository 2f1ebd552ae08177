/* From events to deliveries: nothing is lost, and nothing is told twice. */
#include "tests/unit/db/webhooks_fixture.h"

#include "db/webhooks/notices.h"

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
    struct job_item items[3];
    struct fixture_job j = fixture_job(2, items, 3);

    items[0] = fixture_item("unordered", "cpu:a", 100);
    items[1] = fixture_item("ordered", "cpu:a", 100);
    items[2] = fixture_item("unordered", "cpu:b", 100);
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

static struct fixture_run of_second_job(int n, int item)
{
    struct fixture_run run = completed(n, item);

    run.job = 2;
    return run;
}

static int told(struct fixture *f)
{
    struct shown s;

    fixture_write(f, take, NULL);
    s = shown(f, 1, DELIVERY_STATES);
    buf_release(&s.text);
    return s.count;
}

/* A reproducible variant of the first job; then, in the second one, a second device whose
 * first run shows one digest of the control. */
static void insert_waiting(struct fixture *f)
{
    insert_job(f);
    insert_second_job(f);
    add(f, 1, "regressed", only(WEBHOOK_CELL_REGRESSED));
    vary(f, 1);
    store(f, completed(2, ORDERED));
    assert_int_equal(store(f, completed(3, ORDERED)), VERDICT_REPRODUCIBLE);
    assert_int_equal(store(f, of_second_job(4, 2)), VERDICT_INCONCLUSIVE);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
}

/* While it cannot be told whether the control varies, its variant is no worse; what then
 * shows that it is, is told, and once. */
static void test_a_proof_that_waits_is_no_regression(void **state)
{
    static const struct {
        enum outcome outcome;
        int digest;
        const char *claim;
        enum verdict verdict;
    } table[] = {
        { OUTCOME_CRASHED, 0, NULL, VERDICT_FAILING },
        { OUTCOME_COMPLETED, 9, NULL, VERDICT_VARIES },
        { OUTCOME_COMPLETED, 0, "non-deterministic", VERDICT_INCONCLUSIVE },
    };

    for (int i = 0; i < COUNT_OF(table); i++) {
        struct fixture *f = *state;
        struct fixture_run worse = of_second_job(5, 1);
        struct fixture_run crash = of_second_job(6, 1);

        insert_waiting(f);
        assert_int_equal(told(f), 0);
        worse.outcome = table[i].outcome;
        worse.digest = table[i].digest;
        worse.claim = table[i].claim;
        assert_int_equal(store(f, worse), table[i].verdict);
        assert_int_equal(told(f), 1);
        crash.outcome = OUTCOME_CRASHED;
        store(f, crash);
        assert_int_equal(told(f), 1);
        fixture_free(f);
        fixture_setup(state);
    }
}

/* However late it is looked at. */
static void test_a_proof_that_waited_was_no_regression(void **state)
{
    struct fixture *f = *state;
    struct fixture_run other = of_second_job(5, 2);

    insert_waiting(f);
    other.digest = 9;
    store(f, other);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    assert_int_equal(told(f), 0);
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
        STORE_TEST(test_a_proof_that_waits_is_no_regression),
        STORE_TEST(test_a_proof_that_waited_was_no_regression),
        STORE_TEST(test_the_end_of_a_job_is_told_once),
        STORE_TEST(test_no_event_is_trimmed_that_was_not_taken),
        STORE_TEST(test_replays),
        STORE_TEST(test_a_configuration),
        STORE_TEST(test_how_many_there_may_be),
        STORE_TEST(test_notices_are_told_once),
        STORE_TEST(test_a_clock_that_was_ahead),
        STORE_TEST(test_figures),
    };

    return cmocka_run_group_tests_name("webhooks", tests, NULL, NULL);
}
