#include "db/views/cell_witness.h"

#include <string.h>

#include "daemon/evidence/verdict.h"
#include "db/cells.h"
#include "db/cells_judge.h"
#include "db/tx.h"

/* The cells in which the variant of a cell ?1 is a control, or which vouch for it. */
#define OWN_CONTROLS                                                                     \
    "(SELECT ?1 AS id WHERE ?2 UNION ALL"                                                \
    " SELECT x.control FROM cell_control x WHERE x.cell = ?1 AND x.vouches)"

static bool may_have_one(const struct cell *cell)
{
    return cell->subject == SUBJECT_FRAMEWORK && cell->verdict == VERDICT_INCONCLUSIVE &&
           strncmp(cell->reason, VERDICT_CONTROL_SILENT,
                   sizeof VERDICT_CONTROL_SILENT - 1) == 0 &&
           cell->evidence.distinct_digests == 1 &&
           cell->evidence.runs[OUTCOME_COMPLETED] >= VERDICT_MIN_RUNS;
}

/* The first candidate that is right. */
static enum err_code find(struct tx *tx, const struct cell *cell, int64_t *ret_id,
                          char ret_conditions[RUN_OPTIONS_SIZE], struct err *err)
{
    enum err_code code = ERR_OK;
    bool right = false;
    struct query q;

    query_begin(&q, tx,
                "SELECT c.id, a.options FROM cell own"
                " JOIN case_key own_key ON own_key.number = own.case_key"
                " JOIN cell c ON c.environment = own.environment AND c.id <> own.id"
                " AND c.subject = own.subject AND c.subject_name = own.subject_name"
                " AND c.verdict = 'varies'"
                " JOIN case_key k ON k.number = c.case_key AND k.is_control"
                " AND NOT k.challenge AND k.kind = own_key.kind"
                " AND k.workload <> own_key.workload AND k.size = own_key.size"
                " AND k.dtype = own_key.dtype"
                " JOIN cell_alike a ON a.cell = c.id AND a.varied"
                " JOIN cell_alike mine ON mine.cell = own.id"
                " AND mine.options = a.options AND mine.runs >= ?3"
                " WHERE own.id = ?1 AND k.variant IN (SELECT o.variant FROM " OWN_CONTROLS
                " i JOIN cell d ON d.id = i.id JOIN case_key o ON o.number = d.case_key)"
                " AND NOT EXISTS (SELECT 1 FROM " OWN_CONTROLS
                " i JOIN cell_alike b ON b.cell = i.id AND b.varied)"
                " ORDER BY c.distinct_digests * 1.0 / c.completed DESC, k.workload,"
                " k.size, k.dtype, k.seed, k.version, a.options",
                cell->id, cell->is_control, VERDICT_MIN_RUNS);
    while (code == ERR_OK && !right && query_step(&q)) {
        *ret_id = query_take_int(&q);
        query_take_text(&q, ret_conditions, RUN_OPTIONS_SIZE);
        code = cells_right_control(tx, *ret_id, &right, err);
    }
    *ret_id = right ? *ret_id : 0;
    return query_end(&q, err) == ERR_OK ? code : err->code;
}

enum err_code cell_witness_of(struct tx *tx, const struct cell *cell, bool *ret_found,
                              struct cell_witness *ret_witness, struct err *err)
{
    int64_t id = 0;

    *ret_found = false;
    if (!may_have_one(cell)) {
        return ERR_OK;
    }
    if (find(tx, cell, &id, ret_witness->conditions, err) != ERR_OK ||
        (id && cells_get(tx, id, &ret_witness->cell, err) != ERR_OK)) {
        return err->code;
    }
    *ret_found = id != 0;
    return ERR_OK;
}
