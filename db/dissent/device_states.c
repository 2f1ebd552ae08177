#include "db/dissent/device_states.h"

#include <stdlib.h>

#include "daemon/base/id.h"
#include "daemon/base/mem.h"
#include "db/cells.h"
#include "db/tx.h"

/* What ATTRIBUTES_, an object, say of a state.  Values are cut so that a state has room
 * in DEVICE_STATE_SIZE, whoever tells them. */
#define TOLD_OF(attributes_)                                                             \
    "SELECT key, iif(typeof(value) = 'text', substr(value, 1, 40), value)"               \
    " FROM json_each(" attributes_                                                       \
    ") WHERE key IN ('vbios', 'ecc_mode', 'clock_policy') AND atom IS NOT NULL"

/* Of device ?1: the row that holds, and what it tells now, ?2. */
#define LAST_AND_TOLD                                                                    \
    "last (since, state) AS (SELECT since, nullif(state, '') FROM device_state"          \
    " WHERE device = ?1 ORDER BY since DESC LIMIT 1),"                                   \
    " told (key, value) AS (" TOLD_OF("?2") ")"

/* What is known of device ?1, and of what: it was not told last time, and is another
 * value now. */
#define CHANGED_SINCE_UNTOLD                                                             \
    "before (key) AS (SELECT key FROM (" TOLD_OF(TOLD_BEFORE)                            \
    ")), known (key, value, changed) AS (SELECT e.key, e.value,"                         \
    " e.key NOT IN (SELECT key FROM before) AND EXISTS (SELECT 1 FROM told t"            \
    " WHERE t.key = e.key AND t.value IS NOT e.value)"                                   \
    " FROM last, json_each(last.state) e)"
#define TOLD_BEFORE "(SELECT attributes FROM device WHERE id = ?1)"

/* From the id ?3 on, and not in any run of the device that began. */
#define SINCE_NOW                                                                        \
    "max(?3, ifnull((SELECT since FROM last), ''),"                                      \
    " ifnull((SELECT max(id) FROM run WHERE device = ?1), ''))"

/* A row that repeats the state before it says since when something of it is not told.
 * RET_SINCE "": all is, or nothing is known. */
static enum err_code find_untold(struct tx *tx, const char *device,
                                 char ret_since[ID_SIZE], struct err *err)
{
    struct query q;

    ret_since[0] = '\0';
    query_begin(&q, tx,
                "SELECT since FROM (SELECT since, state, lag(state) OVER w AS earlier,"
                " lead(state) OVER w AS later FROM device_state WHERE device = ?"
                " WINDOW w AS (ORDER BY since)) WHERE later IS NULL AND state = earlier",
                device);
    if (query_step(&q)) {
        query_take_text(&q, ret_since, ID_SIZE);
    }
    return query_end(&q, err);
}

struct cell_list {
    int64_t *cells;
    int count;
};

static enum err_code rebuild_since(struct tx *tx, const char *device, const char *since,
                                   int64_t now_ms, struct err *err)
{
    struct cell_list list = { NULL, 0 };
    enum err_code code;
    struct query q;

    query_begin(&q, tx,
                "SELECT DISTINCT cell FROM run WHERE device = ? AND id > ?"
                " AND outcome IS NOT NULL AND cell IS NOT NULL ORDER BY cell",
                device, since);
    while (query_step(&q)) {
        list.cells = xgrow(list.cells, list.count, sizeof *list.cells);
        list.cells[list.count++] = query_take_int(&q);
    }
    code = query_end(&q, err);
    for (int i = 0; i < list.count && code == ERR_OK; i++) {
        code = cells_rebuild(tx, list.cells[i], now_ms, err);
    }
    free(list.cells);
    return code;
}

/* What was not told when it was asked last, and is another value now, may have changed
 * then: it is not known what it was since UNTOLD.  Where all is told as it was, nothing
 * changed. */
static enum err_code settle_untold(struct tx *tx, const char *device,
                                   const char *attributes, const char *untold,
                                   int64_t now_ms, struct err *err)
{
    int64_t unknown = 0;

    if (tx_fetch_int(tx, &unknown, err,
                     "WITH " LAST_AND_TOLD ", " CHANGED_SINCE_UNTOLD
                     " UPDATE device_state SET state ="
                     " (SELECT json_group_object(key, value) FROM (SELECT key,"
                     " iif(changed, NULL, value) AS value FROM known ORDER BY 1))"
                     " WHERE device = ?1 AND since = ?3"
                     " AND EXISTS (SELECT 1 FROM known WHERE changed) RETURNING 1",
                     device, attributes, untold) != ERR_OK) {
        return err->code;
    }
    return unknown ? rebuild_since(tx, device, untold, now_ms, err)
                   : tx_run(tx, err,
                            "WITH " LAST_AND_TOLD
                            " DELETE FROM device_state WHERE device = ?1 AND since = ?3"
                            " AND NOT EXISTS (SELECT 1 FROM last, json_each(last.state) e"
                            " WHERE e.atom IS NOT NULL AND NOT EXISTS (SELECT 1 FROM told"
                            " t WHERE t.key = e.key AND t.value IS e.value))",
                            device, attributes, untold);
}

/* A device of which nothing was known and nothing was measured has been so ever since.
 * Else its earlier runs, whose ids are smaller, keep theirs. */
static enum err_code store_told(struct tx *tx, const char *device, const char *attributes,
                                const char *now, struct err *err)
{
    return tx_run(
        tx, err,
        "WITH " LAST_AND_TOLD
        ", known (state) AS (SELECT json_group_object(key, value)"
        " FROM (SELECT key, value FROM told UNION ALL SELECT e.key, e.value FROM last,"
        " json_each(last.state) e WHERE e.key NOT IN (SELECT key FROM told)"
        " ORDER BY 1))"
        " INSERT INTO device_state (device, since, state) SELECT ?1,"
        " iif(EXISTS (SELECT 1 FROM last) OR EXISTS (SELECT 1 FROM run"
        " WHERE device = ?1), " SINCE_NOW
        ", ''), state"
        " FROM known WHERE state <> '{}'"
        " AND state IS NOT (SELECT state FROM last)"
        " ON CONFLICT (device, since) DO UPDATE SET state = excluded.state",
        device, attributes, now);
}

static enum err_code store_untold(struct tx *tx, const char *device,
                                  const char *attributes, const char *now,
                                  struct err *err)
{
    return tx_run(tx, err,
                  "WITH " LAST_AND_TOLD
                  " INSERT INTO device_state (device, since, state)"
                  " SELECT ?1, " SINCE_NOW
                  ", last.state FROM last WHERE EXISTS (SELECT 1"
                  " FROM json_each(last.state) e WHERE e.atom IS NOT NULL"
                  " AND e.key NOT IN (SELECT key FROM told))"
                  " ON CONFLICT (device, since) DO NOTHING",
                  device, attributes, now);
}

enum err_code device_states_seen(struct tx *tx, const char *device,
                                 const char *attributes, int64_t seen_ms, struct err *err)
{
    char now[ID_SIZE], untold[ID_SIZE];

    id_first(seen_ms, now);
    if (find_untold(tx, device, untold, err) != ERR_OK ||
        (untold[0] &&
         settle_untold(tx, device, attributes, untold, seen_ms, err) != ERR_OK) ||
        store_told(tx, device, attributes, now, err) != ERR_OK ||
        find_untold(tx, device, untold, err) != ERR_OK) {
        return err->code;
    }
    return untold[0] ? ERR_OK : store_untold(tx, device, attributes, now, err);
}

enum err_code device_state_load(struct tx *tx, const char *device, const char *run,
                                char ret_state[DEVICE_STATE_SIZE], struct err *err)
{
    struct query q;

    ret_state[0] = '\0';
    query_begin(&q, tx, "SELECT " DEVICE_STATE_OF("?1", "?2"), device, run);
    if (query_step(&q)) {
        query_take_text(&q, ret_state, DEVICE_STATE_SIZE);
    }
    return query_end(&q, err);
}
