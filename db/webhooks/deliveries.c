#include "db/webhooks/deliveries.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/mem.h"
#include "daemon/webhooks/retry.h"
#include "db/tx.h"

enum err_code deliveries_add(struct tx *tx, int64_t webhook,
                             const struct cloud_event *event, const char *body,
                             int64_t now_ms, int64_t *ret_delivery, struct err *err)
{
    *ret_delivery = 0;
    return tx_fetch_int(
        tx, ret_delivery, err,
        "INSERT INTO webhook_delivery (webhook, message, type, at_ms, body, created_ms,"
        " next_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6) ON CONFLICT (webhook, message)"
        " DO NOTHING RETURNING number",
        webhook, event->id, webhook_type_name(event->type), event->at_ms, body, now_ms);
}

/* How many of STATE there are beyond KEPT.  Counted first: to find the oldest costs more,
 * and what follows events is done for every one. */
static enum err_code count_beyond(struct tx *tx, int64_t webhook,
                                  enum delivery_state state, int kept, int64_t *ret_count,
                                  struct err *err)
{
    *ret_count = 0;
    return tx_fetch_int(tx, ret_count, err,
                        "SELECT max(count(*) - ?1, 0) FROM webhook_delivery"
                        " WHERE webhook = ?2 AND state = ?3",
                        kept, webhook, delivery_state_name(state));
}

/* The oldest of STATE beyond KEPT are deleted. */
static enum err_code trim(struct tx *tx, int64_t webhook, enum delivery_state state,
                          int kept, int64_t *ret_count, struct err *err)
{
    enum err_code code = count_beyond(tx, webhook, state, kept, ret_count, err);

    return code == ERR_OK && *ret_count
               ? tx_run(tx, err,
                        "DELETE FROM webhook_delivery WHERE number IN (SELECT number"
                        " FROM webhook_delivery WHERE webhook = ? AND state = ?"
                        " ORDER BY ended_ms, number LIMIT ?)",
                        webhook, delivery_state_name(state), *ret_count)
               : code;
}

static enum err_code bound_ended(struct tx *tx, int64_t webhook, struct err *err)
{
    int64_t forgotten, dropped;

    if (trim(tx, webhook, DELIVERY_DELIVERED, WEBHOOK_DELIVERED_KEPT, &forgotten, err) !=
            ERR_OK ||
        trim(tx, webhook, DELIVERY_DEAD, WEBHOOK_DEAD_MAX, &dropped, err) != ERR_OK) {
        return err->code;
    }
    return dropped ? tx_run(tx, err,
                            "UPDATE webhook SET dropped = dropped + ? WHERE number = ?",
                            dropped, webhook)
                   : ERR_OK;
}

enum err_code deliveries_bound(struct tx *tx, int64_t webhook, int64_t now_ms,
                               struct err *err)
{
    int64_t beyond;
    enum err_code code =
        count_beyond(tx, webhook, DELIVERY_WAITING, WEBHOOK_WAITING_MAX, &beyond, err);

    if (code == ERR_OK && beyond) {
        code =
            tx_run(tx, err,
                   "UPDATE webhook_delivery SET state = 'dead', ended_ms = ?1,"
                   " cause = ?2 WHERE number IN (SELECT number FROM webhook_delivery"
                   " WHERE webhook = ?3 AND state = 'waiting' ORDER BY number LIMIT ?4)",
                   now_ms, "too many others waited", webhook, beyond);
    }
    return code == ERR_OK ? bound_ended(tx, webhook, err) : code;
}

#define DELIVERY_COLUMNS                                                                 \
    "d.number, d.message, d.type, d.state, d.attempts, d.status, d.cause, d.at_ms,"      \
    " d.created_ms, d.tried_ms, d.next_ms, d.ended_ms, d.body"

static void take(struct query *q, struct delivery_row *row)
{
    *row = (struct delivery_row){ .number = query_take_int(q) };
    query_take_text(q, row->message, sizeof row->message);
    row->type = webhook_type_parse(query_borrow_text(q), NULL);
    row->state = delivery_state_parse(query_borrow_text(q));
    query_take(q, &row->attempts, &row->status, row->cause, &row->at_ms, &row->created_ms,
               &row->tried_ms, &row->next_ms, &row->ended_ms, &row->body);
}

enum err_code deliveries_due(struct tx *tx, const char *id, int64_t now_ms,
                             struct delivery_row *ret_row, char **ret_body,
                             int64_t *ret_next_ms, struct err *err)
{
    struct query q;

    *ret_row = (struct delivery_row){ .number = 0 };
    *ret_body = NULL;
    *ret_next_ms = 0;
    query_begin(&q, tx,
                "SELECT " DELIVERY_COLUMNS
                " FROM webhook w JOIN webhook_delivery d"
                " ON d.webhook = w.number AND d.state = 'waiting' WHERE w.id = ?"
                " ORDER BY d.next_ms, d.number LIMIT 1",
                id);
    if (query_step(&q)) {
        struct delivery_row row;

        take(&q, &row);
        *ret_next_ms = row.next_ms;
        if (row.next_ms <= now_ms) {
            *ret_row = row;
            *ret_body = xstrdup(row.body);
            ret_row->body = NULL;
        }
    }
    return query_end(&q, err);
}

/* What is known of a delivery when a try of it ends. */
struct known {
    int64_t webhook, failing_ms;
    int attempts, retry_ms;
};

static enum err_code store_delivered(struct tx *tx, const struct known *k,
                                     const struct delivery_try *t, struct err *err)
{
    return tx_run(tx, err,
                  "UPDATE webhook_delivery SET state = 'delivered', attempts = attempts"
                  " + 1, tried_ms = ?1, ended_ms = ?1, status = ?2, cause = NULL"
                  " WHERE number = ?3",
                  t->now_ms, t->status, t->delivery) == ERR_OK &&
                   tx_run(tx, err,
                          "UPDATE webhook SET delivered = delivered + 1, delivered_ms ="
                          " ?1, failing_ms = NULL WHERE number = ?2",
                          t->now_ms, k->webhook) == ERR_OK
               ? ERR_OK
               : err->code;
}

/* Nothing got through for so long that what is as old has no better prospects. */
static enum err_code give_up_others(struct tx *tx, const struct known *k,
                                    struct delivery_try *t, struct err *err)
{
    int64_t before_ms = t->now_ms - RETRY_GIVE_UP_MS;

    if (!k->failing_ms || k->failing_ms > before_ms ||
        t->failures < RETRY_GIVE_UP_FAILURES) {
        return ERR_OK;
    }
    if (tx_run(tx, err,
               "UPDATE webhook_delivery SET state = 'dead', ended_ms = ?1, cause = ?2"
               " WHERE webhook = ?3 AND state = 'waiting' AND created_ms < ?4",
               t->now_ms, "the receiver took nothing for a day", k->webhook,
               before_ms) != ERR_OK) {
        return err->code;
    }
    t->given_up = sqlite3_changes(tx->db);
    return ERR_OK;
}

static enum err_code store_failed(struct tx *tx, const struct known *k,
                                  struct delivery_try *t, struct err *err)
{
    int64_t wait_ms = retry_wait_ms(k->attempts + 1, k->retry_ms, t->random);
    int64_t next_ms =
        t->now_ms + (wait_ms > t->retry_after_ms ? wait_ms : t->retry_after_ms);

    t->disabled = retry_gone(t->status);
    t->dead = !t->disabled && k->attempts + 1 >= RETRY_ATTEMPTS_MAX;
    if (tx_run(tx, err,
               "UPDATE webhook_delivery SET state = ?1, attempts = attempts + 1,"
               " tried_ms = ?2, next_ms = ?3, ended_ms = ?4, status = ?5, cause = ?6"
               " WHERE number = ?7 AND state = 'waiting'",
               delivery_state_name(t->dead ? DELIVERY_DEAD : DELIVERY_WAITING), t->now_ms,
               next_ms, or_null(t->dead ? t->now_ms : 0), or_null(t->status), t->cause,
               t->delivery) != ERR_OK ||
        tx_run(tx, err,
               "UPDATE webhook SET failures = failures + 1, cause = ?1, failing_ms ="
               " ifnull(failing_ms, ?2), disabled = ifnull(?3, disabled)"
               " WHERE number = ?4",
               t->cause, t->now_ms, or_null(t->disabled ? t->cause : ""),
               k->webhook) != ERR_OK) {
        return err->code;
    }
    return t->disabled ? ERR_OK : give_up_others(tx, k, t, err);
}

enum err_code deliveries_tried(struct tx *tx, struct delivery_try *t, struct err *err)
{
    struct known k = { .webhook = 0 };
    enum err_code code;

    t->dead = t->disabled = false;
    t->given_up = 0;
    code =
        tx_fetch(tx, TX_TARGETS(&k.webhook, &k.failing_ms, &k.attempts, &k.retry_ms), err,
                 "SELECT w.number, w.failing_ms, d.attempts, w.retry_ms FROM webhook w"
                 " JOIN webhook_delivery d ON d.webhook = w.number WHERE w.id = ? AND "
                 "d.number = ?",
                 t->webhook, t->delivery);
    if (code != ERR_OK || !k.webhook) {
        return code;
    }
    code = retry_delivered(t->status) ? store_delivered(tx, &k, t, err)
                                      : store_failed(tx, &k, t, err);
    return code == ERR_OK ? bound_ended(tx, k.webhook, err) : code;
}

static enum err_code find(struct tx *tx, const char *id, int64_t *ret_number,
                          struct err *err)
{
    *ret_number = 0;
    if (tx_fetch_int(tx, ret_number, err, "SELECT number FROM webhook WHERE id = ?",
                     id) != ERR_OK) {
        return err->code;
    }
    return *ret_number ? ERR_OK : err_set(err, ERR_NOT_FOUND, "no webhook %s", id);
}

enum err_code deliveries_each(struct tx *tx, const char *id, enum delivery_state state,
                              int64_t before, int limit,
                              void (*visit)(void *arg, const struct delivery_row *row),
                              void *arg, struct err *err)
{
    int64_t webhook;
    struct query q;

    if (find(tx, id, &webhook, err) != ERR_OK) {
        return err->code;
    }
    query_begin(&q, tx,
                "SELECT " DELIVERY_COLUMNS
                " FROM webhook_delivery d WHERE d.webhook = ?1"
                " AND (?2 IS NULL OR d.state = ?2) AND d.number < ?3"
                " ORDER BY d.number DESC LIMIT ?4",
                webhook,
                or_null(state == DELIVERY_STATES ? "" : delivery_state_name(state)),
                before ? before : INT64_MAX, limit);
    while (query_step(&q)) {
        struct delivery_row row;

        take(&q, &row);
        visit(arg, &row);
    }
    return query_end(&q, err);
}

#define ONCE_MORE                                                                        \
    "UPDATE webhook_delivery SET state = 'waiting', attempts = 0, created_ms = ?1,"      \
    " next_ms = min(at_ms, ?1), ended_ms = NULL WHERE webhook = ?2"                      \
    " AND state <> 'waiting'"

enum err_code deliveries_again(struct tx *tx, int64_t webhook, int64_t since_ms,
                               int64_t until_ms, int64_t now_ms, int64_t *ret_count,
                               struct err *err)
{
    enum err_code code = tx_run(tx, err, ONCE_MORE " AND at_ms >= ?3 AND at_ms < ?4",
                                now_ms, webhook, since_ms, until_ms);

    *ret_count = sqlite3_changes(tx->db);
    return code;
}

enum err_code deliveries_replay(struct tx *tx, const char *id, int64_t delivery,
                                int64_t now_ms, int64_t *ret_count, struct err *err)
{
    int64_t webhook, known = 0;

    *ret_count = 0;
    if (find(tx, id, &webhook, err) != ERR_OK ||
        tx_fetch_int(tx, &known, err,
                     "SELECT 1 FROM webhook_delivery WHERE webhook = ? AND number = ?",
                     webhook, delivery) != ERR_OK) {
        return err->code;
    }
    if (delivery && !known) {
        return err_set(err, ERR_NOT_FOUND, "webhook %s has no delivery %" PRId64, id,
                       delivery);
    }
    if (tx_run(tx, err,
               ONCE_MORE " AND CASE WHEN ?3 THEN number = ?3 ELSE state = 'dead' END",
               now_ms, webhook, delivery) != ERR_OK) {
        return err->code;
    }
    *ret_count = sqlite3_changes(tx->db);
    return ERR_OK;
}

enum err_code deliveries_in_order(struct tx *tx, int64_t webhook, bool failed,
                                  int64_t now_ms, struct err *err)
{
    return tx_run(tx, err,
                  "UPDATE webhook_delivery SET next_ms = min(at_ms, ?1)"
                  " WHERE webhook = ?2 AND state = 'waiting' AND (?3 OR attempts = 0)",
                  now_ms, webhook, failed);
}

enum err_code deliveries_settle(struct tx *tx, int64_t now_ms, struct err *err)
{
    return tx_run(tx, err,
                  "UPDATE webhook_delivery SET next_ms = ?1 WHERE state = 'waiting'"
                  " AND next_ms > ?2",
                  now_ms, now_ms + RETRY_AFTER_MOST_MS);
}
