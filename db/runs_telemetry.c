#include "db/runs_telemetry.h"

#include <stdlib.h>

#include "daemon/base/mem.h"
#include "db/tx.h"

enum err_code runs_store_telemetry(struct tx *tx, const char *id,
                                   const struct run_result *result, struct err *err)
{
    struct query q;

    if (!result->telemetry_start && !result->telemetry_end) {
        return ERR_OK;
    }
    query_begin(&q, tx,
                "INSERT INTO run_telemetry (run, at_start, at_end) VALUES (?, ?, ?)");
    query_bind_text(&q, id);
    query_bind_text(&q, result->telemetry_start);
    query_bind_text(&q, result->telemetry_end);
    return query_run(&q, err) == ERR_OK ? ERR_OK
                                        : err_wrap(err, "telemetry of run %s", id);
}

static char *take_json(struct query *q)
{
    const char *text = query_borrow_text(q);

    return *text ? xstrdup(text) : NULL;
}

enum err_code runs_telemetry(struct tx *tx, const char *id, char **ret_start,
                             char **ret_end, struct err *err)
{
    struct query q;

    *ret_start = NULL;
    *ret_end = NULL;
    query_begin(&q, tx, "SELECT at_start, at_end FROM run_telemetry WHERE run = ?");
    query_bind_text(&q, id);
    if (query_step(&q)) {
        *ret_start = take_json(&q);
        *ret_end = take_json(&q);
    }
    return query_end(&q, err);
}
