#include "db/webhooks/outbox.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/id.h"
#include "daemon/base/json_out.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/verdict.h"
#include "daemon/webhooks/webhook.h"
#include "db/cells_rows.h"
#include "db/tx.h"
#include "db/webhooks/deliveries.h"

enum { EVENTS_AT_ONCE = 500, MESSAGES_OF_EVENT = 3, SOURCE_SIZE = 300 };

static char source[SOURCE_SIZE] = "reprod://unknown";

void outbox_set_source(const char *text)
{
    copy_text(source, sizeof source, text);
}

/* Each run and each step of a job is an event, too: these are nobody's. */
#define MAY_BE_WANTED                                                                    \
    " kind <> 'run' AND (kind <> 'job'"                                                  \
    " OR json_extract(data, '$.state') IN ('finished', 'cancelled'))"

/* An event as it is read. */
struct stored {
    int64_t id, at_ms;
    char kind[32];
    char *data;
};

struct message {
    enum webhook_type type;
    char id[MESSAGE_ID_SIZE], subject[256];
    char *data; /* NULL: that of the event */
};

struct messages {
    struct message items[MESSAGES_OF_EVENT];
    int count;
};

static struct message *add(struct messages *all, const struct stored *e,
                           enum webhook_type type)
{
    struct message *m = &all->items[all->count++];

    *m = (struct message){ .type = type };
    snprintf(m->id, sizeof m->id, "%" PRId64 "-%" PRId64 "-%s", e->id, e->at_ms,
             webhook_type_name(type));
    for (char *c = m->id; *c; c++) {
        *c = *c == '.' ? '-' : *c; /* which ends an id in what is signed */
    }
    return m;
}

/* A text or a number of the event; "" if it has none. */
static enum err_code member(struct tx *tx, const struct stored *e, const char *path,
                            char *ret_text, size_t size, struct err *err)
{
    struct query q;

    ret_text[0] = '\0';
    query_begin(&q, tx, "SELECT CAST(json_extract(?, ?) AS TEXT)", e->data, path);
    if (query_step(&q)) {
        query_take_text(&q, ret_text, size);
    }
    return query_end(&q, err);
}

static enum err_code add_subject(struct tx *tx, struct messages *all,
                                 const struct stored *e, enum webhook_type type,
                                 const char *folder, const char *path, struct err *err)
{
    char name[200];
    struct message *m = add(all, e, type);
    enum err_code code = member(tx, e, path, name, sizeof name, err);

    snprintf(m->subject, sizeof m->subject, "%s%s%s", folder, name[0] ? "/" : "", name);
    return code;
}

/* What a change of a cell's verdict is: as db/views/figures.h tells a regression, and
 * cells_each_broken_claim a finding.  A change without its time in the history is an
 * event of an older reprod. */
static enum err_code take_cell(struct tx *tx, struct messages *all,
                               const struct stored *e, struct err *err)
{
    bool regressed = false, found = false;
    int64_t id = 0;
    char *data = NULL;
    struct query q;
    enum err_code code;

    query_begin(
        &q, tx,
        "SELECT NOT k.is_control AND n.verdict NOT IN ('reproducible', 'unmeasured')"
        " AND b.at_ms IS NOT NULL"
        " AND (b.verdict = 'reproducible'"
        " OR (b.distinct_digests = 1 AND n.distinct_digests > 1 AND n.runs > ?1))"
        " AND (SELECT job FROM run WHERE id = b.run) IS NOT"
        " (SELECT job FROM run WHERE id = n.run)"
        " AND NOT " CELL_WAITS("n") ","
        " c.claimed > 0 AND c.claimed = c.completed AND c.checks_failed = 0"
        " AND n.distinct_digests > 1 AND ifnull(b.distinct_digests, 0) < 2,"
        " c.id, json_set(?2, '$.was', (SELECT p.verdict FROM cell_history p"
        " WHERE p.cell = n.cell AND p.at_ms < n.at_ms ORDER BY p.at_ms DESC LIMIT 1),"
        " '$.run', n.run, '$.href', '/v1/cells/' || c.id)"
        " FROM cell c JOIN case_key k ON k.number = c.case_key"
        " JOIN cell_history n ON n.cell = c.id"
        " AND n.at_ms = json_extract(?2, '$.history_ms')"
        " LEFT JOIN cell_history b ON b.cell = c.id AND b.at_ms ="
        " (SELECT max(p.at_ms) FROM cell_history p WHERE p.cell = n.cell"
        " AND p.at_ms < n.at_ms AND NOT " CELL_WAITS("p") ")"
        " WHERE c.id = json_extract(?2, '$.id') AND NOT k.challenge",
        (int)VERDICT_MIN_RUNS, e->data);
    if (query_step(&q)) {
        query_take(&q, &regressed, &found, &id);
        data = query_copy_text(&q);
    }
    code = query_end(&q, err);
    if (code != ERR_OK || !data) {
        free(data);
        return code;
    }
    add(all, e, WEBHOOK_CELL_CHANGED);
    if (regressed) {
        add(all, e, WEBHOOK_CELL_REGRESSED);
    }
    if (found) {
        add(all, e, WEBHOOK_FINDING_NEW);
    }
    for (int i = 0; i < all->count; i++) {
        all->items[i].data = xstrdup(data);
        snprintf(all->items[i].subject, sizeof all->items[i].subject, "cells/%" PRId64,
                 id);
    }
    free(data);
    return ERR_OK;
}

/* Its end, once: what comes in of a run that was going on says the same state again.  Not
 * of jobs that nobody asked for. */
static enum err_code take_job(struct tx *tx, struct messages *all, const struct stored *e,
                              struct err *err)
{
    char id[ID_SIZE] = "";
    char *data = NULL;
    struct query q;
    enum err_code code;

    query_begin(&q, tx,
                "SELECT id, json_set(?1, '$.priority', priority, '$.note',"
                " json_extract(request, '$.note'), '$.href', '/v1/jobs/' || id)"
                " FROM job WHERE id = json_extract(?1, '$.id') AND finished_ms >= ?2"
                " AND state IN ('finished', 'cancelled')"
                " AND (priority <> 'background' OR survey = 1)",
                e->data, e->at_ms);
    if (query_step(&q)) {
        query_take(&q, id);
        data = query_copy_text(&q);
    }
    code = query_end(&q, err);
    if (code == ERR_OK && data) {
        struct message *m = add(all, e, WEBHOOK_JOB_FINISHED);

        snprintf(m->id, sizeof m->id, "job-%s-finished", id);
        snprintf(m->subject, sizeof m->subject, "jobs/%s", id);
        m->data = data;
        return ERR_OK;
    }
    free(data);
    return code;
}

/* Of two types, by what $.state says. */
static enum err_code take_either(struct tx *tx, struct messages *all,
                                 const struct stored *e, const char *state,
                                 enum webhook_type type, enum webhook_type other,
                                 const char *folder, const char *path, struct err *err)
{
    char said[32];

    return member(tx, e, "$.state", said, sizeof said, err) == ERR_OK
               ? add_subject(tx, all, e, strcmp(said, state) == 0 ? type : other, folder,
                             path, err)
               : err->code;
}

static enum err_code take_event(struct tx *tx, struct messages *all,
                                const struct stored *e, struct err *err)
{
    if (strcmp(e->kind, "cell") == 0) {
        return take_cell(tx, all, e, err);
    }
    if (strcmp(e->kind, "job") == 0) {
        return take_job(tx, all, e, err);
    }
    if (strcmp(e->kind, "dissent") == 0) {
        return take_either(tx, all, e, "named", WEBHOOK_DEVICE_DISSENTS,
                           WEBHOOK_DEVICE_CLEARED, "devices", "$.device", err);
    }
    if (strcmp(e->kind, "device_screened") == 0) {
        return add_subject(tx, all, e, WEBHOOK_DEVICE_SCREENED, "devices", "$.device",
                           err);
    }
    if (strcmp(e->kind, "change") == 0) {
        return add_subject(tx, all, e, WEBHOOK_HOST_CHANGED, "hosts", "$.host", err);
    }
    if (strcmp(e->kind, "drift") == 0) {
        return add_subject(tx, all, e, WEBHOOK_HOST_DRIFT, "hosts", "$.host", err);
    }
    if (strcmp(e->kind, "host") == 0) {
        return take_either(tx, all, e, "lost", WEBHOOK_HOST_LOST, WEBHOOK_HOST_BACK,
                           "hosts", "$.host", err);
    }
    if (strcmp(e->kind, "database") == 0) {
        return take_either(tx, all, e, "damaged", WEBHOOK_DATABASE_DAMAGED,
                           WEBHOOK_DATABASE_WHOLE, "database", "$.name", err);
    }
    return ERR_OK;
}

/* Who there is. */
struct receivers {
    struct {
        int64_t number;
        unsigned types;
    } items[WEBHOOKS_MAX];
    int count;
};

/* ID: that one only; NULL: all. */
static enum err_code read_receivers(struct tx *tx, const char *id,
                                    struct receivers *receivers, struct err *err)
{
    struct query q;

    receivers->count = 0;
    query_begin(&q, tx, "SELECT number, types FROM webhook WHERE ?1 IS NULL OR id = ?1",
                id);
    while (receivers->count < WEBHOOKS_MAX && query_step(&q)) {
        int i = receivers->count++;

        receivers->items[i].number = query_take_int(&q);
        receivers->items[i].types = webhook_types_parse(query_borrow_text(&q));
    }
    return query_end(&q, err);
}

/* One event for all who want it. */
static enum err_code deliver(struct tx *tx, const struct stored *e,
                             const struct receivers *receivers, int64_t now_ms,
                             int64_t *ret_count, struct err *err)
{
    struct messages all = { .count = 0 };
    enum err_code code = take_event(tx, &all, e, err);

    for (int i = 0; i < all.count; i++) {
        struct message *m = &all.items[i];
        const struct cloud_event event = { .id = m->id,
                                           .source = source,
                                           .subject = m->subject,
                                           .data = m->data ? m->data : e->data,
                                           .type = m->type,
                                           .at_ms = e->at_ms };
        struct buf body = BUF_INIT;

        cloud_event_body(&event, &body);
        for (int n = 0; n < receivers->count && code == ERR_OK; n++) {
            int64_t number = 0;

            if (receivers->items[n].types & 1U << m->type) {
                code = deliveries_add(tx, receivers->items[n].number, &event, body.data,
                                      now_ms, &number, err);
                *ret_count += number > 0;
            }
        }
        buf_release(&body);
        free(m->data);
    }
    return code;
}

static enum err_code cursor(struct tx *tx, int64_t *ret_event, struct err *err)
{
    *ret_event = -1;
    return tx_fetch_int(tx, ret_event, err, "SELECT event FROM webhook_cursor");
}

enum err_code outbox_look(struct tx *tx, int64_t after, bool *ret_found,
                          int64_t *ret_last, struct err *err)
{
    int64_t from;

    *ret_found = false;
    *ret_last = after;
    if (cursor(tx, &from, err) != ERR_OK) {
        return err->code;
    }
    if (from < 0) {
        return ERR_OK; /* there is no webhook */
    }
    from = from > after ? from : after;
    *ret_last = from;
    return tx_fetch(tx, TX_TARGETS(ret_last, ret_found), err,
                    "SELECT max(?1, ifnull((SELECT max(id) FROM event), 0)),"
                    " EXISTS (SELECT 1 FROM event WHERE id > ?1 AND" MAY_BE_WANTED ")",
                    from);
}

static enum err_code set_cursor(struct tx *tx, int64_t event, struct err *err)
{
    return tx_run(tx, err,
                  "INSERT INTO webhook_cursor (number, event) VALUES (1, ?1)"
                  " ON CONFLICT (number) DO UPDATE SET event = ?1",
                  event);
}

static void stored_take(struct query *q, struct stored *e)
{
    query_take(q, &e->id, &e->at_ms, e->kind);
    e->data = query_copy_text(q);
    e->data = e->data ? e->data : xstrdup("{}");
}

/* Deliveries of a receiver stay within bounds. */
static enum err_code bound(struct tx *tx, const struct receivers *receivers,
                           int64_t now_ms, struct err *err)
{
    for (int i = 0; i < receivers->count; i++) {
        if (deliveries_bound(tx, receivers->items[i].number, now_ms, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

enum err_code outbox_take(struct tx *tx, int64_t now_ms, bool *ret_more, struct err *err)
{
    struct receivers receivers;
    struct query q;
    int64_t from, last = 0, made = 0;
    int count = 0;
    enum err_code code = ERR_OK;

    *ret_more = false;
    if (cursor(tx, &from, err) != ERR_OK ||
        tx_fetch_int(tx, &last, err, "SELECT ifnull(max(id), 0) FROM event") != ERR_OK ||
        read_receivers(tx, NULL, &receivers, err) != ERR_OK) {
        return err->code;
    }
    if (from < 0) { /* the first webhook is being made */
        return set_cursor(tx, last, err);
    }
    query_begin(&q, tx,
                "SELECT id, at_ms, kind, data FROM event WHERE id > ? AND" MAY_BE_WANTED
                " ORDER BY id LIMIT ?",
                from, (int)EVENTS_AT_ONCE);
    while (code == ERR_OK && query_step(&q)) {
        struct stored e;

        stored_take(&q, &e);
        from = e.id;
        count++;
        code = deliver(tx, &e, &receivers, now_ms, &made, err);
        free(e.data);
    }
    if (query_close(&q, code, err) != ERR_OK) {
        return err->code;
    }
    *ret_more = count == EVENTS_AT_ONCE;
    code = set_cursor(tx, *ret_more || from > last ? from : last, err);
    return code == ERR_OK && made ? bound(tx, &receivers, now_ms, err) : code;
}

enum err_code outbox_take_all(struct tx *tx, int64_t now_ms, struct err *err)
{
    bool more = true;
    enum err_code code = ERR_OK;

    while (more && code == ERR_OK) {
        code = outbox_take(tx, now_ms, &more, err);
    }
    return code;
}

enum err_code outbox_advance(struct tx *tx, int64_t now_ms, struct err *err)
{
    int64_t from;

    if (cursor(tx, &from, err) != ERR_OK) {
        return err->code;
    }
    return from < 0 ? ERR_OK : outbox_take_all(tx, now_ms, err);
}

enum err_code outbox_forget(struct tx *tx, struct err *err)
{
    return tx_run(tx, err,
                  "DELETE FROM webhook_cursor WHERE NOT EXISTS (SELECT 1 FROM webhook)");
}

enum err_code outbox_replay(struct tx *tx, const char *id, int64_t since_ms,
                            int64_t until_ms, int64_t now_ms, int64_t *ret_count,
                            struct err *err)
{
    struct receivers receivers;
    enum err_code code = ERR_OK;
    struct query q;

    *ret_count = 0;
    /* First what is not taken yet: it would be made once more. */
    if (read_receivers(tx, id, &receivers, err) != ERR_OK ||
        outbox_take_all(tx, now_ms, err) != ERR_OK) {
        return err->code;
    }
    if (receivers.count == 0) {
        return err_set(err, ERR_NOT_FOUND, "no webhook %s", id);
    }
    if (deliveries_again(tx, receivers.items[0].number, since_ms, until_ms, now_ms,
                         ret_count, err) != ERR_OK) {
        return err->code;
    }
    query_begin(&q, tx,
                "SELECT id, at_ms, kind, data FROM (SELECT * FROM event WHERE at_ms >= ?"
                " AND at_ms < ? AND" MAY_BE_WANTED
                " ORDER BY id DESC LIMIT ?)"
                " ORDER BY id",
                since_ms, until_ms, (int)WEBHOOK_WAITING_MAX);
    while (code == ERR_OK && query_step(&q)) {
        struct stored e;

        stored_take(&q, &e);
        code = deliver(tx, &e, &receivers, now_ms, ret_count, err);
        free(e.data);
    }
    return query_close(&q, code, err) == ERR_OK &&
                   bound(tx, &receivers, now_ms, err) == ERR_OK
               ? deliveries_in_order(tx, receivers.items[0].number, false, now_ms, err)
               : err->code;
}

enum err_code outbox_test(struct tx *tx, const char *id, int64_t now_ms,
                          int64_t *ret_delivery, struct err *err)
{
    struct receivers receivers;
    char message[MESSAGE_ID_SIZE], ulid[ID_SIZE];
    const struct cloud_event event = {
        .id = message,
        .source = source,
        .subject = "webhooks",
        .data = "{\"text\":\"a test: somebody asked whether this arrives\"}",
        .type = WEBHOOK_TEST,
        .at_ms = now_ms
    };
    struct buf body = BUF_INIT;
    enum err_code code;

    if (read_receivers(tx, id, &receivers, err) != ERR_OK) {
        return err->code;
    }
    if (receivers.count == 0) {
        return err_set(err, ERR_NOT_FOUND, "no webhook %s", id);
    }
    id_new(now_ms, ulid);
    snprintf(message, sizeof message, "test-%s", ulid);
    cloud_event_body(&event, &body);
    code = deliveries_add(tx, receivers.items[0].number, &event, body.data, now_ms,
                          ret_delivery, err);
    buf_release(&body);
    return code == ERR_OK ? bound(tx, &receivers, now_ms, err) : code;
}
