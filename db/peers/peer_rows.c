#include "db/peers/peer_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/id.h"
#include "daemon/base/mem.h"
#include "db/integrity/witness.h"
#include "db/peers/peer_take.h"
#include "db/tx.h"

enum err_code peers_service(struct tx *tx, char ret_service[PEER_SERVICE_SIZE],
                            struct err *err)
{
    struct commits commits;

    if (commits_read(tx, &commits, err) != ERR_OK) {
        return err->code;
    }
    snprintf(ret_service, PEER_SERVICE_SIZE, "%016" PRIx64, (uint64_t)commits.lineage);
    return ERR_OK;
}

enum err_code peers_cursor(struct tx *tx, const char *name, char ret_cursor[ID_SIZE],
                           struct err *err)
{
    char cursor[ID_SIZE] = PEER_CURSOR_FIRST;

    if (tx_fetch(tx, TX_TARGETS(cursor), err, "SELECT cursor FROM peer WHERE name = ?",
                 name) != ERR_OK) {
        return err->code;
    }
    copy_text(ret_cursor, ID_SIZE, cursor);
    return ERR_OK;
}

struct page_taking {
    struct tx *tx;
    const char *name;
    const struct peer_page *page;
    int64_t now_ms;
    struct peer_taken *taken;
};

static enum err_code count_refused(const struct page_taking *p,
                                   const struct peer_run *run, struct err *err)
{
    p->taken->refused++;
    return tx_run(p->tx, err,
                  "INSERT INTO peer_refusal (peer, reason, runs, run, words, at_ms)"
                  " VALUES (?, ?, 1, ?, ?, ?) ON CONFLICT (peer, reason) DO UPDATE SET"
                  " runs = runs + 1, run = excluded.run, words = excluded.words,"
                  " at_ms = excluded.at_ms",
                  p->name, peer_refusal_name(run->refusal), run->run.id, run->words,
                  p->now_ms);
}

static enum err_code store_origin(const struct page_taking *p, int64_t *ret_origin,
                                  struct err *err)
{
    *ret_origin = 0;
    if (tx_fetch_int(p->tx, ret_origin, err,
                     "SELECT number FROM peer_origin WHERE peer = ? AND service = ?"
                     " AND reprod = ?",
                     p->name, p->page->service, p->page->reprod) != ERR_OK ||
        *ret_origin) {
        return *ret_origin ? ERR_OK : err->code;
    }
    return tx_fetch_int(p->tx, ret_origin, err,
                        "INSERT INTO peer_origin (peer, service, reprod, first_ms)"
                        " VALUES (?, ?, ?, ?) RETURNING number",
                        p->name, p->page->service, p->page->reprod, p->now_ms);
}

static enum err_code take_runs(const struct page_taking *p, struct err *err)
{
    int64_t origin = 0;

    if (p->page->count > 0 && store_origin(p, &origin, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < p->page->count; i++) {
        struct peer_run *run = &p->page->runs[i];
        bool known = false;

        if (run->refusal == PEER_TAKEN &&
            peer_take(p->tx, run, origin, p->name, p->page->service, p->now_ms, &known,
                      err) != ERR_OK) {
            return err->code;
        }
        if (run->refusal != PEER_TAKEN) {
            if (count_refused(p, run, err) != ERR_OK) {
                return err->code;
            }
        } else if (known) {
            p->taken->known++;
        } else {
            /* Who was handed what is up to it here still gets what we measure next. */
            id_follow(run->run.id);
            p->taken->taken++;
        }
    }
    return ERR_OK;
}

static enum err_code move_cursor(const struct page_taking *p, struct err *err)
{
    const struct peer_page *page = p->page;

    return tx_run(p->tx, err,
                  "INSERT INTO peer (name, service, reprod, cursor, taken, known, folded,"
                  " of_peers, pulled_ms, caught_up_ms, waits_for)"
                  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, iif(?10, 0, ?9), ?11)"
                  " ON CONFLICT (name) DO UPDATE SET service = ?2, reprod = ?3,"
                  " cursor = ?4, taken = taken + ?5, known = known + ?6,"
                  " folded = folded + ?7, of_peers = of_peers + ?8, pulled_ms = ?9,"
                  " caught_up_ms = iif(?10, caught_up_ms, ?9), waits_for = ?11",
                  p->name, page->service, page->reprod, page->cursor, p->taken->taken,
                  p->taken->known, page->folded, page->of_peers, p->now_ms, page->more,
                  page->waits_for);
}

/* Its cursor says nothing of another service's runs: what that one has begins anew. */
static enum err_code begin_anew(const struct page_taking *p, struct err *err)
{
    p->taken->reset = true;
    return tx_run(p->tx, err,
                  "UPDATE peer SET service = ?, reprod = ?, cursor = ?, caught_up_ms = 0,"
                  " waits_for = '' WHERE name = ?",
                  p->page->service, p->page->reprod, PEER_CURSOR_FIRST, p->name);
}

enum err_code peers_take(struct tx *tx, const char *name, const struct peer_page *page,
                         int64_t now_ms, struct peer_taken *ret_taken, struct err *err)
{
    const struct page_taking p = { tx, name, page, now_ms, ret_taken };
    char own[PEER_SERVICE_SIZE], service[PEER_SERVICE_SIZE] = "";
    char cursor[ID_SIZE] = PEER_CURSOR_FIRST;

    *ret_taken = (struct peer_taken){ .reset = false };
    if (peers_service(tx, own, err) != ERR_OK ||
        tx_fetch(tx, TX_TARGETS(service, cursor), err,
                 "SELECT service, cursor FROM peer WHERE name = ?", name) != ERR_OK) {
        return err->code;
    }
    if (strcmp(own, page->service) == 0) {
        return err_set(err, ERR_UNSUPPORTED,
                       "it is this service, or one with a copy of its database");
    }
    if (service[0] && strcmp(service, page->service) != 0) {
        return begin_anew(&p, err);
    }
    if (strcmp(cursor, page->since) != 0) {
        return err_set(err, ERR_CONFLICT,
                       "peer %s: its cursor is %s, the page begins at %s", name, cursor,
                       page->since);
    }
    return take_runs(&p, err) == ERR_OK ? move_cursor(&p, err) : err->code;
}

enum err_code peers_each(struct tx *tx,
                         void (*visit)(void *arg, const struct peer_progress *progress),
                         void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT name, service, reprod, cursor, waits_for, taken, known, folded,"
                " of_peers, pulled_ms, caught_up_ms FROM peer ORDER BY name");
    while (query_step(&q)) {
        struct peer_progress p;

        query_take(&q, p.name, p.service, p.reprod, p.cursor, p.waits_for, &p.taken,
                   &p.known, &p.folded, &p.of_peers, &p.pulled_ms, &p.caught_up_ms);
        visit(arg, &p);
    }
    return query_end(&q, err);
}

enum err_code peers_each_refusal(struct tx *tx, const char *name,
                                 void (*visit)(void *arg,
                                               const struct peer_refused *refused),
                                 void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT reason, run, words, runs, at_ms FROM peer_refusal WHERE peer = ?"
                " ORDER BY reason",
                name);
    while (query_step(&q)) {
        struct peer_refused r;

        query_take(&q, &r.reason, &r.run, &r.words, &r.runs, &r.at_ms);
        visit(arg, &r);
    }
    return query_end(&q, err);
}

enum err_code peers_origin(struct tx *tx, const char *id, struct peer_origin *ret_origin,
                           struct err *err)
{
    struct peer_origin *o = ret_origin;

    *o = (struct peer_origin){ .peer = "" };
    return tx_fetch(tx, TX_TARGETS(o->peer, o->service, o->reprod), err,
                    "SELECT o.peer, o.service, o.reprod FROM run r"
                    " JOIN peer_job p ON p.job = r.job"
                    " JOIN peer_origin o ON o.number = p.origin WHERE r.id = ?",
                    id);
}
