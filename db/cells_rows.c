#include "db/cells_rows.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/tx.h"

enum verdict cell_rows_take_verdict(struct query *q)
{
    enum verdict verdict;

    return verdict_parse(query_borrow_text(q), &verdict) == 0 ? verdict
                                                              : VERDICT_UNMEASURED;
}

enum subject cell_rows_take_subject(struct query *q)
{
    enum subject subject;

    return subject_parse(query_borrow_text(q), &subject) == 0 ? subject
                                                              : SUBJECT_FRAMEWORK;
}

#define TAKE_INTEGER(column, member, what) ret_row->member = query_take_int(q);
#define TAKE_TEXT(column, member, what)                                                  \
    query_take_text(q, ret_row->member, sizeof ret_row->member);

void cell_rows_take(struct query *q, struct cell_row *ret_row)
{
    struct cell *cell = &ret_row->cell;

    cell->id = query_take_int(q);
    case_keys_take(q, &cell->key);
    query_take(q, &cell->is_control, ret_row->no_control);
    cell->subject = cell_rows_take_subject(q);
    query_take(q, cell->subject_name, cell->environment, &ret_row->case_key,
               &ret_row->environment);
    cell->verdict = cell_rows_take_verdict(q);
    query_take(q, cell->reason, &cell->evidence.varied, &cell->vouched_ms,
               &cell->changed_ms, &cell->evidence.checks.has_reference, &ret_row->damaged,
               &cell->evidence.unseeded);
    cell->evidence.contested[0] = '\0';
    cell->evidence.agreement = (struct agreement){ .state = DISSENT_NONE };
    cell->agreement = dissent_state_parse(query_borrow_text(q));
    cell->agreeing.verdict = cell_rows_take_verdict(q);
    query_take(q, &cell->agreeing.devices, &cell->agreeing.runs,
               &cell->agreeing.iterations);
    CELL_INTEGERS(TAKE_INTEGER)
    CELL_TEXTS(TAKE_TEXT)
}

void cell_rows_distrust(struct cell_row *row)
{
    if (row->damaged) {
        row->cell.verdict = VERDICT_INCONCLUSIVE;
        row->cell.agreeing.verdict = VERDICT_UNMEASURED;
        row->cell.vouched_ms = 0;
        copy_text(
            row->cell.reason, sizeof row->cell.reason,
            "its row in the database is not what was stored: see /readyz and the log");
    }
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
                " JOIN environment e ON e.number = c.environment WHERE c.id = ?",
                id);
    found = query_step(&q);
    if (found) {
        cell_rows_take(&q, ret_row);
    }
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    return found ? ERR_OK : err_set(err, ERR_NOT_FOUND, "no cell %" PRId64, id);
}

#define SET_COLUMN(column, member, what)   #column " = :" #column ", "
#define SET_COLUMNS                        CELL_INTEGERS(SET_COLUMN) CELL_TEXTS(SET_COLUMN)
#define SUM_COLUMN(column, member, what)   ", :" #column
#define BIND_INTEGER(column, member, what) query_bind(&q, row->member);
#define BIND_TEXT(column, member, what)    query_bind(&q, or_null(row->member));

/* In the order of CELL_SUM. */
enum err_code cell_rows_store(struct tx *tx, const struct cell_row *row,
                              const struct judgement *judgement, int64_t changed_ms,
                              struct err *err)
{
    struct query q;

    query_begin(
        &q, tx,
        "UPDATE cell SET " SET_COLUMNS
        "verdict = :verdict, reason = :reason, vouched_ms = :vouched_ms,"
        " changed_ms = :changed_ms, agreement = :agreement, agreeing = :agreeing,"
        " agreeing_devices = :agreeing_devices, agreeing_runs = :agreeing_runs,"
        " agreeing_iterations = :agreeing_iterations, sum = reprod_sum(id, case_key, environment, subject,"
        " subject_name, has_reference" CELL_INTEGERS(SUM_COLUMN) CELL_TEXTS(
            SUM_COLUMN) ", :verdict, :reason, :vouched_ms, :changed_ms,"
        " :agreement, :agreeing, :agreeing_devices, :agreeing_runs, :agreeing_iterations)"
        " WHERE id = :id");
    CELL_INTEGERS(BIND_INTEGER)
    CELL_TEXTS(BIND_TEXT)
    query_bind(&q, verdict_name(judgement->verdict), judgement->reason,
               judgement->vouched_ms, changed_ms,
               dissent_state_name(judgement->agreement),
               verdict_name(judgement->agreeing.verdict), judgement->agreeing.devices,
               judgement->agreeing.runs, judgement->agreeing.iterations, row->cell.id);
    return query_run(&q, err);
}

enum err_code cells_times_add(struct tx *tx, int64_t cell, int64_t median_ns,
                              struct err *err)
{
    return median_ns < 1
               ? ERR_OK
               : cells_times_add_many(tx, cell, times_bucket(median_ns), 1, err);
}

enum err_code cells_times_add_many(struct tx *tx, int64_t cell, int bucket, int64_t runs,
                                   struct err *err)
{
    return tx_run(tx, err,
                  "INSERT INTO cell_time (cell, bucket, runs) VALUES (?, ?, ?)"
                  " ON CONFLICT (cell, bucket) DO UPDATE SET runs = runs + excluded.runs",
                  cell, bucket, runs);
}

enum err_code cells_times_stored(struct tx *tx, int64_t cell, int64_t *ret_counts,
                                 struct err *err)
{
    struct query q;

    memset(ret_counts, 0, TIMES_BUCKETS * sizeof *ret_counts);
    query_begin(&q, tx, "SELECT bucket, runs FROM cell_time WHERE cell = ?", cell);
    while (query_step(&q)) {
        int64_t bucket = query_take_int(&q);
        bool is_one = bucket >= 0 && bucket < TIMES_BUCKETS; /* else a damaged file */

        ret_counts[is_one ? bucket : TIMES_BUCKETS - 1] += query_take_int(&q);
    }
    return query_end(&q, err);
}

enum err_code cells_times_load(struct tx *tx, struct cell *cell, struct err *err)
{
    int64_t counts[TIMES_BUCKETS];

    if (cells_times_stored(tx, cell->id, counts, err) != ERR_OK) {
        return err->code;
    }
    cell->times = times_quartiles(counts);
    return ERR_OK;
}
