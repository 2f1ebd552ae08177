#include "db/webhooks/webhooks.h"

#include <string.h>

#include "daemon/base/mem.h"
#include "db/tx.h"
#include "db/webhooks/deliveries.h"
#include "db/webhooks/outbox.h"

#define STATE_COUNT(state)                                                               \
    "(SELECT count(*) FROM webhook_delivery d WHERE d.webhook = w.number"                \
    " AND d.state = '" state "')"
#define WEBHOOK_COLUMNS(waiting, dead)                                                   \
    "w.id, w.name, w.url, w.secret, w.types, w.retry_ms, w.timeout_ms, w.configured,"    \
    " w.paused, w.disabled, w.created_ms, w.failing_ms, w.delivered_ms, w.delivered,"    \
    " w.failures, w.dropped, w.cause, " waiting ", " dead
#define COUNTED   WEBHOOK_COLUMNS(STATE_COUNT("waiting"), STATE_COUNT("dead"))
#define UNCOUNTED WEBHOOK_COLUMNS("0", "0")

static void take(struct query *q, struct webhook *w)
{
    *w = (struct webhook){ .types = 0 };
    query_take(q, w->id, w->name, w->url, w->secret);
    w->types = webhook_types_parse(query_borrow_text(q));
    query_take(q, &w->retry_ms, &w->timeout_ms, &w->configured, &w->paused, w->disabled,
               &w->created_ms, &w->failing_ms, &w->delivered_ms, &w->delivered,
               &w->failures, &w->dropped, w->cause, &w->waiting, &w->dead);
}

static enum err_code insert(struct tx *tx, const struct webhook *w, struct err *err)
{
    char types[WEBHOOK_TYPES_SIZE];

    webhook_types_text(w->types, types);
    return tx_run(tx, err,
                  "INSERT INTO webhook (id, name, url, secret, types, retry_ms,"
                  " timeout_ms, configured, created_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?,"
                  " ?)",
                  w->id, w->name, w->url, or_null(w->configured ? "" : w->secret), types,
                  w->retry_ms, w->timeout_ms, w->configured, w->created_ms);
}

enum err_code webhooks_insert(struct tx *tx, const struct webhook *w, struct err *err)
{
    char taken[ID_SIZE] = "";
    int64_t count = 0;

    if (tx_fetch(tx, TX_TARGETS(taken), err, "SELECT id FROM webhook WHERE name = ?",
                 w->name) != ERR_OK ||
        tx_fetch_int(tx, &count, err, "SELECT count(*) FROM webhook") != ERR_OK) {
        return err->code;
    }
    if (taken[0]) {
        return err_set(err, ERR_CONFLICT, "webhook %s has the name '%s' already", taken,
                       w->name);
    }
    if (count >= WEBHOOKS_MAX) {
        return err_set(err, ERR_BUSY, "there are %d webhooks already", WEBHOOKS_MAX);
    }
    /* What happened until now is for the others. */
    return outbox_take_all(tx, w->created_ms, err) == ERR_OK ? insert(tx, w, err)
                                                             : err->code;
}

static enum err_code drop(struct tx *tx, int64_t number, struct err *err)
{
    return tx_run(tx, err, "DELETE FROM webhook_delivery WHERE webhook = ?", number) ==
                       ERR_OK &&
                   tx_run(tx, err, "DELETE FROM webhook WHERE number = ?", number) ==
                       ERR_OK
               ? outbox_forget(tx, err)
               : err->code;
}

static bool is_listed(const struct webhook *list, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The number of the first that the configuration no longer has; 0: there is none. */
static enum err_code find_unlisted(struct tx *tx, const struct webhook *list, int count,
                                   int64_t *ret_number, struct err *err)
{
    struct query q;

    *ret_number = 0;
    query_begin(&q, tx, "SELECT number, name FROM webhook WHERE configured");
    while (!*ret_number && query_step(&q)) {
        int64_t number = query_take_int(&q);

        *ret_number = is_listed(list, count, query_borrow_text(&q)) ? 0 : number;
    }
    return query_end(&q, err);
}

static enum err_code drop_unlisted(struct tx *tx, const struct webhook *list, int count,
                                   int64_t *ret_dropped, struct err *err)
{
    enum err_code code;
    int64_t number;

    *ret_dropped = 0;
    while ((code = find_unlisted(tx, list, count, &number, err)) == ERR_OK && number) {
        int64_t waiting = 0;

        if (tx_fetch_int(tx, &waiting, err,
                         "SELECT count(*) FROM webhook_delivery WHERE webhook = ? AND"
                         " state = 'waiting'",
                         number) != ERR_OK ||
            drop(tx, number, err) != ERR_OK) {
            return err->code;
        }
        *ret_dropped += waiting;
    }
    return code;
}

/* What is known of a receiver says nothing of another one. */
static enum err_code begin_anew(struct tx *tx, int64_t number, int64_t now_ms,
                                struct err *err)
{
    return tx_run(tx, err,
                  "UPDATE webhook SET disabled = NULL, failing_ms = NULL"
                  " WHERE number = ?",
                  number) == ERR_OK
               ? deliveries_in_order(tx, number, true, now_ms, err)
               : err->code;
}

static enum err_code configure_one(struct tx *tx, const struct webhook *w, int64_t now_ms,
                                   struct err *err)
{
    struct webhook new = *w;
    char types[WEBHOOK_TYPES_SIZE], url[URL_SIZE] = "";
    int64_t number = 0;

    webhook_types_text(w->types, types);
    if (tx_fetch(tx, TX_TARGETS(&number, url), err,
                 "SELECT number, url FROM webhook WHERE name = ?", w->name) != ERR_OK) {
        return err->code;
    }
    if (number) {
        enum err_code code =
            strcmp(url, w->url) == 0 ? ERR_OK : begin_anew(tx, number, now_ms, err);

        return code == ERR_OK
                   ? tx_run(tx, err,
                            "UPDATE webhook SET url = ?, secret = NULL, types = ?,"
                            " retry_ms = ?, timeout_ms = ?, configured = 1"
                            " WHERE number = ?",
                            w->url, types, w->retry_ms, w->timeout_ms, number)
                   : code;
    }
    new.created_ms = now_ms;
    id_new(now_ms, new.id);
    return webhooks_insert(tx, &new, err);
}

enum err_code webhooks_configure(struct tx *tx, const struct webhook *list, int count,
                                 int64_t now_ms, int64_t *ret_dropped, struct err *err)
{
    enum err_code code = drop_unlisted(tx, list, count, ret_dropped, err);

    for (int i = 0; i < count && code == ERR_OK; i++) {
        code = configure_one(tx, &list[i], now_ms, err);
    }
    return code;
}

static enum err_code find(struct tx *tx, const char *id, int64_t *ret_number,
                          bool *ret_configured, struct err *err)
{
    *ret_number = 0;
    if (tx_fetch(tx, TX_TARGETS(ret_number, ret_configured), err,
                 "SELECT number, configured FROM webhook WHERE id = ?", id) != ERR_OK) {
        return err->code;
    }
    return *ret_number ? ERR_OK : err_set(err, ERR_NOT_FOUND, "no webhook %s", id);
}

enum err_code webhooks_delete(struct tx *tx, const char *id, struct err *err)
{
    int64_t number;
    bool configured;

    if (find(tx, id, &number, &configured, err) != ERR_OK) {
        return err->code;
    }
    return configured
               ? err_set(err, ERR_CONFLICT,
                         "webhook %s is one of the configuration: remove it there", id)
               : drop(tx, number, err);
}

enum err_code webhooks_pause(struct tx *tx, const char *id, bool paused, int64_t now_ms,
                             struct err *err)
{
    int64_t number;
    bool configured;

    if (find(tx, id, &number, &configured, err) != ERR_OK ||
        tx_run(tx, err,
               "UPDATE webhook SET paused = ?1, disabled = CASE WHEN ?1 THEN disabled"
               " END, failing_ms = CASE WHEN ?1 THEN failing_ms END WHERE number = ?2",
               paused, number) != ERR_OK) {
        return err->code;
    }
    return paused ? ERR_OK : deliveries_in_order(tx, number, true, now_ms, err);
}

enum err_code webhooks_get(struct tx *tx, const char *id, struct webhook *ret_webhook,
                           struct err *err)
{
    struct query q;
    bool found;

    query_begin(&q, tx, "SELECT " COUNTED " FROM webhook w WHERE w.id = ?", id);
    found = query_step(&q);
    if (found) {
        take(&q, ret_webhook);
    }
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    return found ? ERR_OK : err_set(err, ERR_NOT_FOUND, "no webhook %s", id);
}

enum err_code webhooks_list(struct tx *tx, bool counted,
                            struct webhook list[WEBHOOKS_MAX], int *ret_count,
                            struct err *err)
{
    struct query q;

    *ret_count = 0;
    query_begin(&q, tx,
                counted ? "SELECT " COUNTED " FROM webhook w ORDER BY w.name"
                        : "SELECT " UNCOUNTED " FROM webhook w ORDER BY w.name");
    while (*ret_count < WEBHOOKS_MAX && query_step(&q)) {
        take(&q, &list[(*ret_count)++]);
    }
    return query_end(&q, err);
}

enum err_code webhooks_figures(struct tx *tx, struct webhook_figures *f, struct err *err)
{
    *f = (struct webhook_figures){ 0 };
    return tx_fetch(
        tx,
        TX_TARGETS(&f->webhooks, &f->failing, &f->disabled, &f->delivered, &f->failures,
                   &f->dropped, &f->waiting, &f->dead),
        err,
        "SELECT count(*), count(failing_ms), count(disabled),"
        " ifnull(sum(delivered), 0), ifnull(sum(failures), 0),"
        " ifnull(sum(dropped), 0), ifnull(sum(" STATE_COUNT(
            "waiting") "), 0), ifnull(sum(" STATE_COUNT("dead") "), 0) FROM webhook w");
}
