#include "db/views/spread.h"

#include <stdlib.h>

#include "daemon/base/mem.h"
#include "daemon/jobs/job.h"
#include "db/runs.h"
#include "db/tx.h"
#include "db/upkeep/summaries.h"

struct values {
    struct spread_value *list;
    int count;
};

static void add_value(struct values *values, const char *bits, int64_t runs)
{
    if (bits[0]) {
        values->list = xgrow(values->list, values->count, sizeof *values->list);
        values->list[values->count++] =
            (struct spread_value){ strtoull(bits, NULL, 16), runs };
    }
}

/* What is looked at: a row for each run, and for those that were folded together. */
#define SHOWN                                                                            \
    "WITH shown (weight_sum, loss, runs) AS MATERIALIZED ("                              \
    "SELECT r.weight_sum, r.loss, 1 FROM"                                                \
    " (SELECT id FROM run INDEXED BY run_cell WHERE cell = ?1 ORDER BY id DESC"          \
    " LIMIT ?2) newest CROSS JOIN run r ON r.id = newest.id"                             \
    " WHERE r.outcome = 'completed' AND NOT " RUN_DAMAGED_R                              \
    " UNION ALL SELECT weight_sum, loss, runs FROM"                                      \
    " (SELECT * FROM run_summary INDEXED BY run_summary_cell WHERE cell = ?1"            \
    " ORDER BY number DESC LIMIT ?2) WHERE NOT refused AND sum IS " SUMMARY_SUM ")"

static enum err_code read_sums(struct tx *tx, int64_t id, struct cell_spread *ret,
                               struct err *err)
{
    struct values sums = { NULL, 0 }, losses = { NULL, 0 };
    struct query q;

    query_begin(&q, tx,
                SHOWN
                " SELECT 0, weight_sum, sum(runs) FROM shown GROUP BY 2"
                " UNION ALL SELECT 1, loss, sum(runs) FROM shown GROUP BY 2",
                id, CELL_SPREAD_ROWS_MAX);
    while (query_step(&q)) {
        bool is_loss = query_take_int(&q) == 1;
        char bits[BITS_TEXT_SIZE];
        int64_t runs;

        query_take(&q, bits, &runs);
        add_value(is_loss ? &losses : &sums, bits, runs);
        ret->runs += is_loss ? 0 : runs;
    }
    spread_of(sums.list, sums.count, &ret->weight_sum);
    spread_of(losses.list, losses.count, &ret->loss);
    free(sums.list);
    free(losses.list);
    return query_end(&q, err);
}

/* Both runs of a difference are of the same item, and so of one environment. */
static enum err_code read_elements(struct tx *tx, int64_t id, struct cell_spread *ret,
                                   struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT j.id, l.search, l.difference FROM localisation l"
                " CROSS JOIN job_item i ON i.job = l.job AND i.seq = ?2"
                " CROSS JOIN job j ON j.number = l.job"
                " WHERE l.state = 'localised' AND l.difference IS NOT NULL"
                " AND i.case_key = (SELECT case_key FROM cell WHERE id = ?1)"
                " AND 2 = (SELECT count(*) FROM run r WHERE r.cell = ?1"
                " AND json_valid(l.difference)"
                " AND r.id IN (l.difference ->> '$.a', l.difference ->> '$.b'))"
                " ORDER BY l.job DESC LIMIT 1",
                id, LOCALISATION_CAPTURE);
    if (query_step(&q)) {
        query_take(&q, ret->localisation);
        ret->search = query_copy_text(&q);
        ret->difference = query_copy_text(&q);
    }
    return query_end(&q, err);
}

enum err_code cell_spread_read(struct tx *tx, int64_t id, struct cell_spread *ret_spread,
                               struct err *err)
{
    *ret_spread = (struct cell_spread){ .runs = 0 };
    if (read_sums(tx, id, ret_spread, err) == ERR_OK &&
        read_elements(tx, id, ret_spread, err) == ERR_OK) {
        return ERR_OK;
    }
    cell_spread_release(ret_spread);
    return err->code;
}

void cell_spread_release(struct cell_spread *spread)
{
    free(spread->search);
    free(spread->difference);
}
