#include "db/events.h"

#include "db/tx.h"

enum err_code events_each(struct tx *tx, int64_t after, int limit,
                          void (*visit)(void *arg, const struct event *event), void *arg,
                          struct err *err)
{
    struct query q;

    query_begin(
        &q, tx,
        "SELECT id, at_ms, kind, data FROM event WHERE id > ? ORDER BY id LIMIT ?", after,
        limit);
    while (query_step(&q)) {
        struct event event;

        query_take(&q, &event.id, &event.at_ms, &event.kind, &event.data);
        visit(arg, &event);
    }
    return query_end(&q, err);
}

enum err_code events_last(struct tx *tx, int64_t *ret_id, struct err *err)
{
    *ret_id = 0;
    return tx_fetch_int(tx, ret_id, err, "SELECT max(id) FROM event");
}

enum err_code events_trim(struct tx *tx, int64_t keep, struct err *err)
{
    return tx_run(tx, err,
                  "DELETE FROM event WHERE id <= (SELECT max(id) FROM event) - ?"
                  " AND id <= ifnull((SELECT event FROM webhook_cursor), id)",
                  keep > 1 ? keep : 1);
}
