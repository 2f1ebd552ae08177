#include "db/dissent/device_states.h"

#include "daemon/base/id.h"
#include "db/tx.h"

/* Values are cut so that a state has room in DEVICE_STATE_SIZE, whoever tells them. */
#define TOLD                                                                             \
    "SELECT key, iif(typeof(value) = 'text', substr(value, 1, 40), value)"               \
    " FROM json_each((SELECT attributes FROM device WHERE id = ?1))"                     \
    " WHERE key IN ('vbios', 'ecc_mode', 'clock_policy') AND atom IS NOT NULL"

/* A device of which nothing was known and nothing was measured has been so ever since.
 * Else its earlier runs, whose ids are smaller, keep theirs. */
enum err_code device_states_seen(struct tx *tx, const char *device, int64_t seen_ms,
                                 struct err *err)
{
    char now[ID_SIZE];

    id_first(seen_ms, now);
    return tx_run(
        tx, err,
        "WITH last (since, state) AS (SELECT since, state FROM device_state"
        " WHERE device = ?1 ORDER BY since DESC LIMIT 1),"
        " told (key, value) AS (" TOLD
        "),"
        " known (state) AS (SELECT json_group_object(key, value) FROM ("
        " SELECT key, value FROM told UNION ALL SELECT e.key, e.value FROM last,"
        " json_each(nullif(last.state, '')) e WHERE e.key NOT IN (SELECT key FROM told)"
        " ORDER BY 1))"
        " INSERT INTO device_state (device, since, state) SELECT ?1,"
        " iif(EXISTS (SELECT 1 FROM last) OR EXISTS (SELECT 1 FROM run"
        " WHERE device = ?1), max(?2, ifnull((SELECT since FROM last), ''),"
        " ifnull((SELECT max(id) FROM run WHERE device = ?1), '')), ''), state"
        " FROM known WHERE state <> '{}'"
        " AND state IS NOT (SELECT state FROM last)"
        " ON CONFLICT (device, since) DO UPDATE SET state = excluded.state",
        device, now);
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
