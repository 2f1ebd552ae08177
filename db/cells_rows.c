#include "db/cells_rows.h"

#include <inttypes.h>

#include "db/case_keys.h"
#include "db/jobs.h"
#include "db/tx.h"

/* The table's CHECK keeps other names out. */
static enum verdict parse_verdict(const char *name)
{
    enum verdict verdict;

    return verdict_parse(name, &verdict) == 0 ? verdict : VERDICT_UNMEASURED;
}

static void take_evidence(struct query *q, struct evidence *ret_evidence)
{
    static const enum outcome order[] = {
        OUTCOME_COMPLETED, OUTCOME_UNSUPPORTED,   OUTCOME_TIMEOUT,
        OUTCOME_CRASHED,   OUTCOME_OUT_OF_MEMORY, OUTCOME_LOST,
        OUTCOME_INFRA,     OUTCOME_CANCELLED,     OUTCOME_INVALID,
    };

    _Static_assert(sizeof order / sizeof order[0] == OUTCOME_COUNT, "a column each");
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        ret_evidence->runs[order[i]] = query_take_int(q);
    }
    ret_evidence->iterations = query_take_int(q);
    ret_evidence->distinct_digests = query_take_int(q);
    ret_evidence->devices = query_take_int(q);
    ret_evidence->disturbed = query_take_int(q);
    ret_evidence->contended = query_take_int(q);
    ret_evidence->claimed = query_take_int(q);
    ret_evidence->warned = query_take_int(q);
    ret_evidence->completed_since_failure = query_take_int(q);
    ret_evidence->last_completed_ms = query_take_int(q);
}

void cell_rows_take(struct query *q, struct cell_row *ret_row)
{
    struct cell *cell = &ret_row->cell;

    cell->id = query_take_int(q);
    case_keys_take(q, &cell->key);
    cell->is_control = query_take_int(q);
    query_take_text(q, cell->environment, sizeof cell->environment);
    take_evidence(q, &cell->evidence);
    cell->verdict = parse_verdict(query_borrow_text(q));
    query_take_text(q, cell->reason, sizeof cell->reason);
    cell->changed_ms = query_take_int(q);
    cell->first_ms = query_take_int(q);
    cell->last_ms = query_take_int(q);
    cell->min_ns = query_take_int(q);
    cell->max_ns = query_take_int(q);
    cell->median_ns_sum = query_take_int(q);
    query_take_text(q, cell->digest, sizeof cell->digest);
    ret_row->case_key = query_take_int(q);
    ret_row->environment = query_take_int(q);
    query_take_text(q, ret_row->no_control, sizeof ret_row->no_control);
    query_take_text(q, ret_row->last_failed_run, sizeof ret_row->last_failed_run);
    ret_row->digest_runs = query_take_int(q);
    ret_row->digest_iterations = query_take_int(q);
}

enum err_code cell_rows_load(struct tx *tx, int64_t id, struct cell_row *ret_row,
                             struct err *err)
{
    struct query q;
    bool found;

    query_begin(&q, tx,
                "SELECT " CELL_ROW_COLUMNS
                " FROM cell c"
                " JOIN case_key k ON k.number = c.case_key"
                " JOIN environment e ON e.number = c.environment WHERE c.id = ?");
    query_bind_int(&q, id);
    found = query_step(&q);
    if (found) {
        cell_rows_take(&q, ret_row);
    }
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    return found ? ERR_OK : err_set(err, ERR_NOT_FOUND, "no cell %" PRId64, id);
}

static void bind_control(struct query *q, const struct cell_row *row)
{
    query_bind_int(q, row->environment);
    query_bind_text(q, row->cell.key.workload);
    query_bind_int(q, row->cell.key.version);
    query_bind_text(q, row->cell.key.size);
    query_bind_text(q, row->cell.key.dtype);
    query_bind_int(q, (int64_t)row->cell.key.seed);
}

static enum err_code load_control(struct tx *tx, const struct cell_row *row,
                                  struct control *ret_control, struct err *err)
{
    struct query q;

    query_begin(
        &q, tx,
        "SELECT sum(c.completed), max(c.distinct_digests > 1)"
        " FROM case_key k JOIN cell c ON c.environment = ? AND c.case_key = k.number"
        " WHERE k.workload = ? AND k.version = ? AND k.size = ? AND k.dtype = ?"
        " AND k.seed = ? AND k.is_control");
    bind_control(&q, row);
    if (query_step(&q)) {
        ret_control->runs = query_take_int(&q);
        ret_control->differed = query_take_int(&q);
    }
    return query_end(&q, err);
}

/* How the control was asked for where it varied: so that ROW's cell faced it, if there is
 * such a way. */
static enum err_code load_alike(struct tx *tx, const struct cell_row *row,
                                struct control *ret_control, char *ret_alike, size_t size,
                                struct err *err)
{
    struct query q;

    query_begin(
        &q, tx,
        "SELECT a.options, ifnull(own.runs, 0)"
        " FROM case_key k JOIN cell c ON c.environment = ?1 AND c.case_key = k.number"
        " JOIN cell_alike a ON a.cell = c.id AND a.varied"
        " LEFT JOIN cell_alike own ON own.cell = ?7 AND own.options = a.options"
        " WHERE k.workload = ?2 AND k.version = ?3 AND k.size = ?4 AND k.dtype = ?5"
        " AND k.seed = ?6 AND k.is_control ORDER BY min(ifnull(own.runs, 0), ?8) DESC,"
        " a.options LIMIT 1");
    bind_control(&q, row);
    query_bind_int(&q, row->cell.id);
    query_bind_int(&q, VERDICT_MIN_RUNS);
    if (query_step(&q)) {
        ret_control->varied = true;
        query_take_text(&q, ret_alike, size);
        ret_control->alike = ret_alike;
        ret_control->faced = query_take_int(&q);
    }
    return query_end(&q, err);
}

enum err_code cell_rows_judge(struct tx *tx, const struct cell_row *row,
                              struct judgement *ret_judgement, struct err *err)
{
    char alike[JOB_OPTIONS_SIZE];
    struct control control = {
        .is_control = row->cell.is_control,
        .no_control = row->no_control[0] ? row->no_control : NULL,
    };

    if (!control.is_control && !control.no_control &&
        (load_control(tx, row, &control, err) != ERR_OK ||
         (control.differed &&
          load_alike(tx, row, &control, alike, sizeof alike, err) != ERR_OK))) {
        return err->code;
    }
    *ret_judgement = verdict_judge(&row->cell.evidence, &control);
    return ERR_OK;
}
