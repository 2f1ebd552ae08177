#include "db/peers/peer_export.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/dissent/device_states.h"
#include "db/peers/peer_rows.h"
#include "db/runs.h"
#include "db/tx.h"

struct handed {
    char id[ID_SIZE];
    bool of_peer;
};

static enum err_code find_open(struct tx *tx, struct peer_page *page, struct err *err)
{
    return tx_fetch(tx, TX_TARGETS(page->waits_for), err,
                    "SELECT id FROM run WHERE outcome IS NULL ORDER BY id LIMIT 1");
}

/* In one statement: a run that begins meanwhile hides what is behind it, too.  One more
 * than LIMIT shows whether there are more. */
static enum err_code list_runs(struct tx *tx, const char *since, int limit,
                               struct handed *ret_runs, int *ret_count, struct err *err)
{
    struct query q;

    *ret_count = 0;
    query_begin(&q, tx,
                "SELECT r.id, EXISTS (SELECT 1 FROM peer_job p WHERE p.job = r.job)"
                " FROM run r WHERE r.id > ?1 AND r.id < ifnull((SELECT o.id FROM run o"
                " WHERE o.outcome IS NULL ORDER BY o.id LIMIT 1), '~')"
                " ORDER BY r.id LIMIT ?2",
                since, limit + 1);
    while (query_step(&q)) {
        struct handed *run = &ret_runs[(*ret_count)++];

        query_take(&q, run->id, &run->of_peer);
    }
    return query_end(&q, err);
}

static void add_digest(void *arg, const struct run_digest *digest)
{
    struct peer_run *run = arg;

    run->digests = xgrow(run->digests, run->digest_count, sizeof *run->digests);
    run->digests[run->digest_count++] = *digest;
}

/* What is stored of it elsewhere. */
static enum err_code load_rest(struct tx *tx, struct peer_run *run, bool *ret_refused,
                               struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT r.refused, j.iterations, j.created_ms, k.seed, k.is_control, k.kind,"
                " k.no_control, k.unseeded, i.options, ifnull(d.host, ''),"
                " ifnull(d.backend, ''), ifnull(d.model, ''), ifnull(d.attributes, '{}'),"
                " ifnull(h.boot_id, ''), (SELECT e.json FROM environment e"
                " WHERE e.number = r.environment), " DEVICE_STATE_OF("r.device", "r.id") ","
                " ifnull((SELECT max(s.since) FROM device_state s WHERE s.device = r.device"
                " AND s.since < r.id), '')"
                " FROM run r JOIN job j ON j.number = r.job"
                " JOIN job_item i ON i.job = r.job AND i.seq = r.item"
                " JOIN case_key k ON k.number = i.case_key"
                " LEFT JOIN device d ON d.id = r.device LEFT JOIN host h ON h.name = d.host"
                " WHERE r.id = ?",
                run->run.id);
    if (query_step(&q)) {
        query_take(&q, ret_refused, &run->asked, &run->job_created_ms);
        run->item_seed = (uint64_t)query_take_int(&q);
        query_take(&q, &run->is_control, run->kind, run->no_control, &run->unseeded,
                   run->options, run->device.host, run->device.backend,
                   run->device.model);
        run->attributes = query_copy_text(&q);
        query_take(&q, run->boot_id);
        run->environment = query_copy_text(&q);
        query_take(&q, run->state, run->state_since);
    }
    return query_end(&q, err);
}

/* Who takes a run judges its inputs. */
static enum err_code load_run(struct tx *tx, const char *id, struct peer_run *run,
                              struct err *err)
{
    bool refused = false;

    if (runs_get(tx, id, &run->run, err) != ERR_OK ||
        runs_each_digest(tx, id, add_digest, run, err) != ERR_OK ||
        load_rest(tx, run, &refused, err) != ERR_OK) {
        return err->code;
    }
    if (run->run.damaged) {
        peer_run_refuse(run, PEER_DAMAGED, "it is not what was stored");
    }
    if (refused) {
        run->run.outcome = OUTCOME_COMPLETED;
        run->run.cause[0] = '\0';
    }
    return ERR_OK;
}

static enum err_code count_folded(struct tx *tx, struct peer_page *page, struct err *err)
{
    page->folded = 0;
    return tx_fetch_int(
        tx, &page->folded, err,
        /* Mostly all of a summary are in between, or none. */
        "SELECT ifnull(sum(iif(first_run > ?1 AND last_run <= ?2, runs,"
        " (WITH RECURSIVE place (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM place"
        " WHERE n + 1 < s.runs) SELECT count(*) FROM place"
        " WHERE CAST(substr(s.ids, n * 26 + 1, 26) AS TEXT) > ?1"
        " AND CAST(substr(s.ids, n * 26 + 1, 26) AS TEXT) <= ?2))), 0)"
        " FROM run_summary s INDEXED BY run_summary_span"
        " WHERE last_run > ?1 AND first_run <= ?2"
        " AND NOT EXISTS (SELECT 1 FROM peer_job p WHERE p.job = s.job)",
        page->since, page->cursor);
}

static enum err_code hand_out(struct tx *tx, const struct handed *runs, int count,
                              bool (*visit)(void *arg, const struct peer_run *run),
                              void *arg, struct peer_page *page, int *ret_passed,
                              struct err *err)
{
    bool goes_on = true;

    for (*ret_passed = 0; *ret_passed < count && goes_on; ++*ret_passed) {
        const struct handed *each = &runs[*ret_passed];

        if (each->of_peer) {
            page->of_peers++;
        } else {
            struct peer_run *run = xcalloc(1, sizeof *run);
            enum err_code code = load_run(tx, each->id, run, err);

            goes_on = code == ERR_OK && visit(arg, run);
            peer_run_release(run);
            free(run);
            if (code != ERR_OK) {
                return code;
            }
        }
        copy_text(page->cursor, sizeof page->cursor, each->id);
    }
    return ERR_OK;
}

enum err_code peers_export(struct tx *tx, const char *since, int limit,
                           bool (*visit)(void *arg, const struct peer_run *run),
                           void *arg, struct peer_page *ret_page, struct err *err)
{
    struct handed *runs = xcalloc((size_t)limit + 1, sizeof *runs);
    struct peer_page *page = ret_page;
    enum err_code code;
    int count = 0, passed = 0;

    *page = (struct peer_page){ .count = 0 };
    copy_text(page->since, sizeof page->since, since);
    copy_text(page->cursor, sizeof page->cursor, since);
    code = peers_service(tx, page->service, err);
    if (code == ERR_OK) {
        code = find_open(tx, page, err);
    }
    if (code == ERR_OK) {
        code = list_runs(tx, since, limit, runs, &count, err);
    }
    if (code == ERR_OK) {
        code = hand_out(tx, runs, count > limit ? limit : count, visit, arg, page,
                        &passed, err);
    }
    free(runs);
    page->more = passed < count;
    return code == ERR_OK ? count_folded(tx, page, err) : code;
}
