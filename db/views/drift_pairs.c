/* Which environments the devices of a host had before and after a time. */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/tx.h"
#include "db/views/drift_parts.h"

/* Ids from BEGIN, below END. */
struct span {
    char begin[ID_SIZE], end[ID_SIZE];
};

/* The environment of the last run in SPAN of a device with a stack (of external ones with
 * their workload); "": there is none.  Runs may have been folded away: what is known of
 * them is the first and the last with each environment. */
static enum err_code last_environment(struct tx *tx, const struct drift_place *place,
                                      const struct span *span, char *ret_id,
                                      struct err *err)
{
    struct query q;

    ret_id[0] = '\0';
    query_begin(
        &q, tx,
        "SELECT e.id FROM (SELECT * FROM (SELECT r.id AS run, r.environment"
        " FROM run r INDEXED BY run_device JOIN job_item i ON i.job = r.job"
        " AND i.seq = r.item JOIN case_key k ON k.number = r.case_key"
        " WHERE r.device = ?1 AND r.id >= ?3 AND r.id < ?4 AND r.environment IS NOT NULL"
        " AND ifnull(r.device_read_back, r.device) = r.device AND i.stack || iif("
        "i.stack = 'external' OR i.stack GLOB 'external-*', '/' || k.workload, '') = ?2"
        " ORDER BY r.id DESC LIMIT 1)"
        " UNION ALL SELECT last_run, environment FROM device_environment"
        " WHERE device = ?1 AND stack = ?2 AND last_run >= ?3 AND last_run < ?4"
        " UNION ALL SELECT first_run, environment FROM device_environment"
        " WHERE device = ?1 AND stack = ?2 AND first_run >= ?3 AND first_run < ?4) x"
        " JOIN environment e ON e.number = x.environment ORDER BY x.run DESC LIMIT 1",
        place->device, place->stack, span->begin, span->end);
    if (query_step(&q)) {
        query_take_text(&q, ret_id, DIGEST_TEXT_SIZE);
    }
    return query_end(&q, err);
}

static enum err_code read_places(struct tx *tx, const char *host,
                                 struct drift_place **ret_places, int *ret_count,
                                 struct err *err)
{
    struct query q;

    *ret_places = NULL;
    *ret_count = 0;
    query_begin(&q, tx,
                "SELECT DISTINCT x.device, x.stack FROM device d"
                " JOIN device_environment x ON x.device = d.id WHERE d.host = ?"
                " ORDER BY x.device, x.stack",
                host);
    while (query_step(&q)) {
        struct drift_place *place;

        *ret_places = xgrow(*ret_places, *ret_count, sizeof **ret_places);
        place = &(*ret_places)[(*ret_count)++];
        *place = (struct drift_place){ .suspect = false };
        query_take(&q, place->device, place->stack);
    }
    return query_end(&q, err);
}

/* What matters first: environments that differ, then what was measured. */
static int rank(const struct drift_pair *pair)
{
    return !pair->to[0] ? 2 : strcmp(pair->from, pair->to) == 0 ? 1 : 0;
}

struct pairs {
    struct drift_pair *list;
    int count, rank;
};

static void add_pair(struct pairs *pairs, const struct drift_pair *pair)
{
    if (pairs->count > 0 && rank(pair) != pairs->rank) {
        if (rank(pair) > pairs->rank) {
            return;
        }
        pairs->count = 0;
    }
    pairs->rank = rank(pair);
    for (int i = 0; i < pairs->count; i++) {
        if (strcmp(pairs->list[i].from, pair->from) == 0 &&
            strcmp(pairs->list[i].to, pair->to) == 0) {
            return;
        }
    }
    if (pairs->count < DRIFT_PAIRS_MAX) {
        pairs->list[pairs->count++] = *pair;
    }
}

enum err_code drift_pairs(struct tx *tx, const char *host, int64_t since_ms,
                          int64_t until_ms, struct drift_pair ret_pairs[DRIFT_PAIRS_MAX],
                          int *ret_count, struct err *err)
{
    struct pairs pairs = { ret_pairs, 0, 0 };
    struct span before = { "", "" };
    struct span after = { "", "~" }; /* sorts behind all ids */
    struct drift_place *places;
    int count;
    enum err_code code = read_places(tx, host, &places, &count, err);

    id_first(since_ms, before.end);
    id_first(since_ms, after.begin);
    if (until_ms) {
        id_first(until_ms, after.end);
    }
    for (int i = 0; i < count && code == ERR_OK; i++) {
        struct drift_pair pair = { "", "" };

        code = last_environment(tx, &places[i], &before, pair.from, err);
        code = code == ERR_OK ? last_environment(tx, &places[i], &after, pair.to, err)
                              : code;
        if (!pair.to[0] && !until_ms) {
            copy_text(pair.to, sizeof pair.to, pair.from);
        }
        if (code == ERR_OK && pair.from[0]) {
            add_pair(&pairs, &pair);
        }
    }
    *ret_count = pairs.count;
    free(places);
    return code;
}

enum err_code drift_read_pair(struct tx *tx, const struct drift_pair *pair,
                              const char *host, int64_t since_ms, int64_t until_ms,
                              int64_t now_ms, int64_t stale_after_ms,
                              struct drift *ret_drift, struct err *err)
{
    const char *missing;

    if (strcmp(pair->from, pair->to) == 0) {
        return drift_read_since(tx, pair->to, host, since_ms, until_ms, ret_drift, err);
    }
    if (pair->to[0]) {
        return drift_read(tx, pair->from, pair->to, now_ms, stale_after_ms, ret_drift,
                          &missing, err);
    }
    *ret_drift =
        (struct drift){ .since_ms = since_ms, .until_ms = until_ms, .unmeasured = true };
    copy_text(ret_drift->since_host, sizeof ret_drift->since_host, host);
    return drift_read_facts(tx, pair->from, &ret_drift->from, err);
}

enum err_code drift_next_change(struct tx *tx, const char *host, int64_t at_ms,
                                int64_t *ret_ms, struct err *err)
{
    *ret_ms = 0;
    return tx_fetch_int(tx, ret_ms, err,
                        "SELECT ifnull(min(at_ms), 0) FROM change WHERE host = ?"
                        " AND at_ms > ?",
                        host, at_ms);
}
