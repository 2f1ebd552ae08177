#include "db/webhooks/notices.h"

#include "db/tx.h"

enum err_code notices_host(struct tx *tx, const char *host, const char *cause,
                           int64_t now_ms, struct err *err)
{
    int64_t since_ms = 0;
    enum err_code code =
        cause ? tx_fetch_int(tx, &since_ms, err,
                             "INSERT INTO host_lost (host, since_ms) VALUES (?, ?)"
                             " ON CONFLICT (host) DO NOTHING RETURNING since_ms",
                             host, now_ms)
              : tx_fetch_int(tx, &since_ms, err,
                             "DELETE FROM host_lost WHERE host = ? RETURNING since_ms",
                             host);

    return code == ERR_OK && since_ms
               ? tx_run(tx, err,
                        "INSERT INTO event (at_ms, kind, data) VALUES (?, 'host',"
                        " json_object('host', ?, 'state', ?, 'cause', ?, 'since_ms', ?))",
                        now_ms, host, cause ? "lost" : "back", cause, since_ms)
               : code;
}

enum err_code notices_database(struct tx *tx, const char *cause, int64_t now_ms,
                               struct err *err)
{
    return tx_run(tx, err,
                  "INSERT INTO event (at_ms, kind, data) VALUES (?, 'database',"
                  " json_object('state', ?, 'cause', ?))",
                  now_ms, cause ? "damaged" : "whole", cause);
}

enum err_code notices_each_lost(struct tx *tx, void (*visit)(void *arg, const char *host),
                                void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx, "SELECT host FROM host_lost ORDER BY host");
    while (query_step(&q)) {
        visit(arg, query_borrow_text(&q));
    }
    return query_end(&q, err);
}

enum err_code notices_damaged(struct tx *tx, bool *ret_damaged, struct err *err)
{
    *ret_damaged = false;
    return tx_fetch(tx, TX_TARGETS(ret_damaged), err,
                    "SELECT json_extract(data, '$.state') = 'damaged' FROM event"
                    " WHERE kind = 'database' ORDER BY id DESC LIMIT 1");
}
