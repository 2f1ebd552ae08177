#include "db/recurring/unattended.h"

#include "db/case_keys.h"
#include "db/tx.h"

enum { RUNS_LOOKED_AT = 2000 };

/* Of cell c, in which devices disagree: the last run of those that are not named. */
#define AGREEING_LAST_MS                                                                 \
    "(SELECT max(d.last_ms) FROM cell_device d WHERE d.cell = c.id AND NOT EXISTS"       \
    " (SELECT 1 FROM cell_dissenter s WHERE s.cell = c.id AND s.device = d.device))"

static enum err_code find_environment(struct tx *tx, const char *device,
                                      const char *stack, int64_t *ret_number,
                                      struct err *err)
{
    *ret_number = 0;
    return tx_fetch_int(tx, ret_number, err,
                        "SELECT r.environment FROM (SELECT id, job, item, environment"
                        " FROM run WHERE device = ? ORDER BY id DESC LIMIT ?) AS r"
                        " JOIN job_item i ON i.job = r.job AND i.seq = r.item"
                        " WHERE i.stack = ? AND r.environment IS NOT NULL"
                        " ORDER BY r.id DESC LIMIT 1",
                        device, RUNS_LOOKED_AT, stack);
}

enum err_code unattended_cells(struct tx *tx, const char *device, const char *stack,
                               void (*visit)(void *arg,
                                             const struct background_cell *cell),
                               void *arg, struct err *err)
{
    struct query q;
    int64_t environment;

    if (find_environment(tx, device, stack, &environment, err) != ERR_OK ||
        environment == 0) {
        return err->code;
    }
    query_begin(&q, tx,
                "SELECT " CASE_KEY_COLUMNS
                ", k.is_control, iif(c.agreeing_runs > 0, c.agreeing_runs, c.completed),"
                " iif(c.agreeing_runs > 0, " AGREEING_LAST_MS
                ", c.last_completed_ms), c.vouched_ms,"
                " (SELECT avg(wall_ns) / 1000000 FROM (SELECT wall_ns FROM run"
                " WHERE cell = c.id AND wall_ns > 0 ORDER BY id DESC LIMIT 5))"
                " FROM cell c JOIN case_key k ON k.number = c.case_key"
                " WHERE c.environment = ? AND c.completed > 0 AND k.no_control = '' AND "
                "NOT k.challenge"
                " AND (k.is_control OR (c.verdict IN ('reproducible', 'inconclusive')"
                " AND (c.distinct_digests = 1 OR c.agreement = 'undecided'))"
                " OR (c.agreeing IN ('reproducible', 'inconclusive')"
                " AND NOT EXISTS (SELECT 1 FROM cell_dissenter s WHERE s.cell = c.id"
                " AND s.device = ?)))"
                " AND NOT EXISTS (SELECT 1 FROM case_key n WHERE n.workload = k.workload"
                " AND n.version > k.version) ORDER BY c.id",
                environment, device);
    while (query_step(&q)) {
        struct background_cell cell = { .completed = 0 };

        case_keys_take(&q, &cell.key);
        query_take(&q, &cell.is_control, &cell.completed, &cell.last_completed_ms,
                   &cell.vouched_ms, &cell.run_ms);
        cell.run_ms = cell.run_ms > 0 ? cell.run_ms : 1;
        visit(arg, &cell);
    }
    return query_end(&q, err);
}

enum err_code unattended_spent(struct tx *tx, const char *id, const char *device,
                               int64_t *ret_ms, struct err *err)
{
    *ret_ms = 0;
    return tx_fetch_int(tx, ret_ms, err,
                        "SELECT ifnull(sum(i.milliseconds), 0) FROM job j"
                        " JOIN job_item i ON i.job = j.number"
                        " WHERE j.id = ? AND i.device = ?",
                        id, device);
}
