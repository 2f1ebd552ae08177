#include "db/views/figures.h"

#include "db/case_keys.h"
#include "db/cells_rows.h"
#include "db/tx.h"

/* What is not what was stored is no verdict, as everywhere (cell_rows_distrust). */
enum err_code figures_of_cells(struct tx *tx, int64_t now_ms, int64_t stale_after_ms,
                               struct cell_figures *ret_figures, struct err *err)
{
    struct cell_figures *f = ret_figures;
    struct query q;

    *f = (struct cell_figures){ .iterations = 0 };
    query_begin(&q, tx,
                "SELECT c.verdict, c.last_completed_ms, c.vouched_ms, " CELL_INTACT
                ", c.iterations, c.completed, c.unsupported, c.timeout, c.crashed,"
                " c.out_of_memory, c.lost, c.infra, c.cancelled, c.invalid"
                " FROM cell c JOIN case_key k ON k.number = c.case_key"
                " WHERE NOT k.challenge");
    while (query_step(&q)) {
        static const enum outcome order[] = { OUTCOME_COMPLETED,     OUTCOME_UNSUPPORTED,
                                              OUTCOME_TIMEOUT,       OUTCOME_CRASHED,
                                              OUTCOME_OUT_OF_MEMORY, OUTCOME_LOST,
                                              OUTCOME_INFRA,         OUTCOME_CANCELLED,
                                              OUTCOME_INVALID };
        enum verdict verdict = cell_rows_take_verdict(&q);
        int64_t last_ms, vouched_ms, iterations;
        bool intact;

        query_take(&q, &last_ms, &vouched_ms, &intact, &iterations);
        verdict = intact
                      ? verdict_at(verdict, last_ms, vouched_ms, now_ms, stale_after_ms)
                      : VERDICT_INCONCLUSIVE;
        f->cells[verdict]++;
        f->iterations += iterations;
        for (int i = 0; i < OUTCOME_COUNT; i++) {
            f->runs[order[i]] += query_take_int(&q);
        }
    }
    return query_end(&q, err);
}

/* A host without known stacks has a row without one. */
#define CONFIGURED                                                                       \
    "WITH configured (host, stack) AS MATERIALIZED (SELECT j.key, s.value"               \
    " FROM json_each(?1) j LEFT JOIN json_each(j.value) s)"

/* x.device shows x.environment.  "external/NAME" is of stack "external". */
#define IN_USE                                                                           \
    " device_stack_environment x JOIN device d ON d.id = x.device"                       \
    " JOIN host h ON h.name = d.host AND d.last_seen_ms >= h.last_seen_ms"               \
    " JOIN configured f ON f.host = d.host AND (f.stack IS NULL"                         \
    " OR f.stack = substr(x.stack, 1, instr(x.stack || '/', '/') - 1))"

/* A cell that became worse.  Of what happened to it, n follows b; that its proof waited
 * is nothing that happened. */
#define WORSE                                                                            \
    ", worse AS MATERIALIZED (SELECT c.id, c.changed_ms, c.environment, c.verdict,"      \
    " c.case_key FROM cell c JOIN case_key k ON k.number = c.case_key"                   \
    " WHERE NOT k.challenge AND NOT k.is_control"                                        \
    " AND c.verdict NOT IN ('reproducible', 'unmeasured')"                               \
    " AND NOT " CELL_WAITS("c")                                                          \
    " AND EXISTS (SELECT 1 FROM cell_history n JOIN cell_history b"                      \
    " ON b.cell = n.cell AND b.at_ms = (SELECT max(p.at_ms)"                             \
    " FROM cell_history p WHERE p.cell = n.cell AND p.at_ms < n.at_ms"                   \
    " AND NOT " CELL_WAITS("p") ") WHERE n.cell = c.id AND NOT " CELL_WAITS("n")         \
    " AND ((b.verdict = 'reproducible' AND n.verdict <> 'reproducible')"                 \
    " OR (b.distinct_digests = 1 AND n.distinct_digests > 1 AND n.runs > ?2))"           \
    " AND (SELECT job FROM run WHERE id = b.run) IS NOT"                                 \
    " (SELECT job FROM run WHERE id = n.run)))"

enum err_code figures_each_regressed(struct tx *tx, const char *stacks,
                                     void (*visit)(void *arg,
                                                   const struct regressed_cell *cell),
                                     void *arg, struct err *err)
{
    struct query q;

    /* Few are worse, and thousands of devices in use: who is in use is asked last. */
    query_begin(&q, tx,
                CONFIGURED WORSE
                "SELECT w.id, w.changed_ms, e.id, w.verdict, " CASE_KEY_COLUMNS
                " FROM worse w CROSS JOIN case_key k ON k.number = w.case_key"
                " CROSS JOIN environment e ON e.number = w.environment"
                " WHERE w.environment IN (SELECT x.environment FROM" IN_USE
                ")"
                " AND NOT (w.verdict = 'devices_disagree'"
                " AND EXISTS (SELECT 1 FROM cell_dissenter o WHERE o.cell = w.id)"
                " AND NOT EXISTS (SELECT 1 FROM cell_dissenter o JOIN" IN_USE
                " WHERE o.cell = w.id AND x.device = o.device"
                " AND x.environment = w.environment))"
                " ORDER BY w.id",
                stacks, (int)VERDICT_MIN_RUNS);
    while (query_step(&q)) {
        struct regressed_cell cell;

        query_take(&q, &cell.cell, &cell.since_ms, cell.environment);
        cell.verdict = cell_rows_take_verdict(&q);
        case_keys_take(&q, &cell.key);
        visit(arg, &cell);
    }
    return query_end(&q, err);
}

enum err_code figures_each_dissenter(struct tx *tx, const char *stacks,
                                     void (*visit)(void *arg, const char *device,
                                                   int64_t cells),
                                     void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                CONFIGURED
                "SELECT o.device, count(*) FROM cell_dissenter o"
                " CROSS JOIN cell c ON c.id = o.cell"
                " CROSS JOIN case_key k ON k.number = c.case_key"
                " WHERE NOT k.challenge AND EXISTS (SELECT 1 FROM" IN_USE
                " WHERE x.device = o.device AND x.environment = c.environment)"
                " GROUP BY o.device ORDER BY 2 DESC, o.device",
                stacks);
    while (query_step(&q)) {
        const char *device = query_borrow_text(&q);

        visit(arg, device, query_take_int(&q));
    }
    return query_end(&q, err);
}

enum err_code figures_each_reported(struct tx *tx,
                                    void (*visit)(void *arg,
                                                  const struct reported_change *change),
                                    void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT host, reports, at_ms FROM change WHERE number IN (SELECT"
                " max(number) FROM change WHERE state = 'reported' GROUP BY host)"
                " ORDER BY host");
    while (query_step(&q)) {
        struct reported_change change;

        query_take(&q, &change.host, &change.reports, &change.at_ms);
        visit(arg, &change);
    }
    return query_end(&q, err);
}

enum err_code figures_open_changes(struct tx *tx, int64_t *ret_seen,
                                   int64_t *ret_measuring, struct err *err)
{
    *ret_seen = *ret_measuring = 0;
    return tx_fetch(tx, TX_TARGETS(ret_seen, ret_measuring), err,
                    "SELECT ifnull(sum(state = 'seen'), 0),"
                    " ifnull(sum(state = 'measuring'), 0)"
                    " FROM change INDEXED BY change_open WHERE state <> 'reported'");
}

#define FIRST_ON_HOST                                                                    \
    "(SELECT min(x.first_run) FROM environment e JOIN device_environment x"              \
    " ON x.environment = e.number JOIN device d ON d.id = x.device"                      \
    " WHERE d.host = ? AND e.id = ?)"

enum err_code figures_went_back(struct tx *tx, const char *host, const char *from,
                                const char *to, bool *ret_back, struct err *err)
{
    int64_t back = 0;

    if (tx_fetch_int(tx, &back, err,
                     "SELECT ifnull(" FIRST_ON_HOST " < " FIRST_ON_HOST ", 0)", host, to,
                     host, from) != ERR_OK) {
        return err->code;
    }
    *ret_back = back != 0;
    return ERR_OK;
}
