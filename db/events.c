#include "db/events.h"

#include "db/tx.h"

enum err_code events_each(struct tx *tx, int64_t after, int limit,
                          void (*visit)(void *arg, const struct event *event), void *arg,
                          struct err *err)
{
    struct query q;

    query_begin(
        &q, tx,
        "SELECT id, at_ms, kind, data FROM event WHERE id > ? ORDER BY id LIMIT ?");
    query_bind_int(&q, after);
    query_bind_int(&q, limit);
    while (query_step(&q)) {
        struct event event;

        event.id = query_take_int(&q);
        event.at_ms = query_take_int(&q);
        event.kind = query_borrow_text(&q);
        event.data = query_borrow_text(&q);
        visit(arg, &event);
    }
    return query_end(&q, err);
}

enum err_code events_last(struct tx *tx, int64_t *ret_id, struct err *err)
{
    struct query q;

    *ret_id = 0;
    query_begin(&q, tx, "SELECT max(id) FROM event");
    return query_fetch_int(&q, ret_id, err);
}

enum err_code events_trim(struct tx *tx, int64_t keep, struct err *err)
{
    struct query q;

    query_begin(&q, tx, "DELETE FROM event WHERE id <= (SELECT max(id) FROM event) - ?");
    query_bind_int(&q, keep > 1 ? keep : 1);
    return query_run(&q, err);
}
