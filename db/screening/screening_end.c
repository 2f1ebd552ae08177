#include "db/screening/screening_end.h"

#include "db/tx.h"

enum err_code screening_end(struct tx *tx, int64_t screening,
                            enum screening_outcome outcome, const char *cause,
                            const struct screening_counts *counts, int64_t now_ms,
                            struct err *err)
{
    static const struct screening_counts none;
    const struct screening_counts *c = counts ? counts : &none;
    int64_t number = 0;

    if (tx_fetch_int(
            tx, &number, err,
            "UPDATE screening SET outcome = ?1, cause = ?2, ended_ms = ?3, counts ="
            " CASE WHEN ?4 THEN json_object('cases', ?5, 'agree', ?6, 'dissent', ?7,"
            " 'vary', ?8, 'alone', ?9, 'undecided', ?10, 'failed', ?11, 'unmeasured',"
            " ?12) END WHERE number = ?13 AND outcome IS NULL RETURNING number",
            screening_outcome_name(outcome), cause, now_ms, counts != NULL, c->cases,
            c->agrees, c->dissents, c->varies, c->alone, c->undecided, c->failed,
            c->unmeasured, screening) != ERR_OK) {
        return err->code;
    }
    return number
               ? tx_run(tx, err,
                        "INSERT INTO event (at_ms, kind, data) SELECT ?,"
                        " 'device_screened', json_object('device', s.device, 'host',"
                        " s.host, 'reason', s.reason, 'text', s.words, 'outcome',"
                        " s.outcome, 'cause', s.cause, 'counts', json(s.counts),"
                        " 'jobs', (SELECT json_group_array(j.id) FROM screening_job t"
                        " JOIN job j ON j.number = t.job WHERE t.screening = s.number))"
                        " FROM screening s WHERE s.number = ?",
                        now_ms, screening)
               : ERR_OK;
}
