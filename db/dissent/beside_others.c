#include "db/dissent/beside_others.h"

#include <string.h>

#include "db/dissent/device_states.h"
#include "db/tx.h"

/* Whether a run of ROW departs that nobody used the device beside, or of which that is
 * not known any more. */
static enum err_code find_alone(struct tx *tx, int64_t cell,
                                const struct dissent_row *row, bool *ret_found,
                                struct err *err)
{
    if (!row->majority || row->runs == row->majority_runs) {
        return ERR_OK;
    }
    return tx_fetch(
        tx, TX_TARGETS(ret_found), err,
        "SELECT EXISTS (SELECT 1 FROM run r JOIN job_item i ON i.job = r.job"
        " AND i.seq = r.item LEFT JOIN run_telemetry t ON t.run = r.id"
        " WHERE r.cell = ?1 AND r.outcome = 'completed' AND r.device = ?2"
        " AND i.options = ?3 AND " DEVICE_STATE_OF("r.device", "r.id") " = ?4"
        " AND (r.distinct_digests > 1 OR r.digest <> ?5) AND NOT " BESIDE_OTHERS("t") ")"
        " OR EXISTS (SELECT 1 FROM run_summary s JOIN job_item i ON i.job = s.job"
        " AND i.seq = s.item WHERE s.cell = ?1 AND NOT s.refused AND i.device = ?2"
        " AND i.options = ?3"
        " AND " DEVICE_STATE_OF("i.device", "s.first_run") " = ?4 AND s.digest <> ?5)",
        cell, row->device, row->options, row->state, row->majority);
}

/* Whether ROW is the first of its device. */
static bool is_first(const struct dissent_row *rows, int row)
{
    for (int i = 0; i < row; i++) {
        if (strcmp(rows[i].device, rows[row].device) == 0) {
            return false;
        }
    }
    return true;
}

enum err_code beside_others_count(struct tx *tx, int64_t cell,
                                  const struct dissent_row *rows, int count,
                                  int64_t *ret_count, struct err *err)
{
    enum err_code code = ERR_OK;

    *ret_count = 0;
    for (int i = 0; i < count && code == ERR_OK; i++) {
        const struct dissent_row *row = &rows[i];
        bool alone = false;

        if (row->mark != DISSENT_DISSENTS || !is_first(rows, i)) {
            continue;
        }
        for (int j = i; j < count && code == ERR_OK && !alone; j++) {
            if (strcmp(rows[j].device, row->device) == 0) {
                code = find_alone(tx, cell, &rows[j], &alone, err);
            }
        }
        *ret_count += !alone;
    }
    return code;
}
