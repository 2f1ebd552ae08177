/* Webhooks and their deliveries in a store: made, taken, tried, and shown. */
#ifndef TESTS_UNIT_DB_WEBHOOKS_FIXTURE_H
#define TESTS_UNIT_DB_WEBHOOKS_FIXTURE_H

#include "tests/unit/db/cells_fixture.h"

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "daemon/webhooks/retry.h"
#include "db/events.h"
#include "db/tx.h"
#include "db/webhooks/deliveries.h"
#include "db/webhooks/outbox.h"
#include "db/webhooks/webhooks.h"

#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

enum { NOW = 5000000 };

static inline struct webhook made(int n, const char *name, unsigned types)
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

static inline enum err_code insert(struct tx *tx, void *arg, struct err *err)
{
    return webhooks_insert(tx, arg, err);
}

static inline void add(struct fixture *f, int n, const char *name, unsigned types)
{
    struct webhook w = made(n, name, types);

    fixture_write(f, insert, &w);
}

static inline enum err_code execute(struct tx *tx, void *arg, struct err *err)
{
    int rc = sqlite3_exec(tx->db, arg, NULL, NULL, NULL);

    return rc == SQLITE_OK ? ERR_OK : tx_error(tx->db, rc, err);
}

static inline void run_sql(struct fixture *f, const char *sql)
{
    fixture_write(f, execute, (void *)(uintptr_t)sql);
}

static inline void add_event(struct fixture *f, const char *kind, const char *data)
{
    char *sql = xasprintf("INSERT INTO event (at_ms, kind, data) VALUES (7, '%s', '%s')",
                          kind, data);

    run_sql(f, sql);
    free(sql);
}

static inline enum err_code take(struct tx *tx, void *arg, struct err *err)
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

static inline void show(void *arg, const struct delivery_row *row)
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

static inline enum err_code read_shown(struct tx *tx, void *arg, struct err *err)
{
    struct shown *s = arg;

    return deliveries_each(tx, s->id, s->state, 0, 20000, show, s, err);
}

static inline struct shown shown(struct fixture *f, int n, enum delivery_state state)
{
    static char id[ID_SIZE];
    struct shown s = { .id = id, .state = state };

    fixture_id('W', n, id);
    fixture_read(f, read_shown, &s);
    return s;
}

static inline void expect(struct fixture *f, int n, const char *wanted)
{
    struct shown s = shown(f, n, DELIVERY_STATES);

    if (strcmp(s.text.data ? s.text.data : "", wanted) != 0) {
        fail_msg("%s", s.text.data ? s.text.data : "nothing");
    }
    buf_release(&s.text);
}

static inline enum err_code read_list(struct tx *tx, void *arg, struct err *err)
{
    int count;

    return webhooks_list(tx, true, arg, &count, err);
}

static inline struct webhook the_first(struct fixture *f)
{
    struct webhook list[WEBHOOKS_MAX];

    fixture_read(f, read_list, list);
    return list[0];
}

static inline unsigned only(enum webhook_type type)
{
    return 1U << type | 1U << WEBHOOK_TEST;
}

struct due {
    char id[ID_SIZE];
    int64_t now_ms, next_ms;
    struct delivery_row row;
    char *body;
};

static inline enum err_code find_due(struct tx *tx, void *arg, struct err *err)
{
    struct due *d = arg;

    return deliveries_due(tx, d->id, d->now_ms, &d->row, &d->body, &d->next_ms, err);
}

static inline struct due due(struct fixture *f, int64_t now_ms)
{
    struct due d = { .now_ms = now_ms };

    fixture_id('W', 1, d.id);
    fixture_read(f, find_due, &d);
    free(d.body);
    return d;
}

static inline enum err_code tried(struct tx *tx, void *arg, struct err *err)
{
    return deliveries_tried(tx, arg, err);
}

static inline struct delivery_try try(struct fixture *f, int64_t delivery, int64_t now_ms,
                                      int status, int64_t retry_after_ms)
{
    struct delivery_try t = { .delivery = delivery,
                              .now_ms = now_ms,
                              .status = status,
                              .failures = RETRY_GIVE_UP_FAILURES,
                              .retry_after_ms = retry_after_ms };

    fixture_id('W', 1, t.webhook);
    if (status != 204) {
        snprintf(t.cause, sizeof t.cause, "it answered %d", status);
    }
    fixture_write(f, tried, &t);
    return t;
}

static inline enum err_code test_one(struct tx *tx, void *arg, struct err *err)
{
    char id[ID_SIZE];

    fixture_id('W', 1, id);
    return outbox_test(tx, id, NOW, arg, err);
}

static inline int64_t add_test(struct fixture *f)
{
    int64_t delivery = 0;

    fixture_write(f, test_one, &delivery);
    assert_true(delivery > 0);
    return delivery;
}

#endif
