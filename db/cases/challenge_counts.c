#include "db/cases/challenge_counts.h"

#include "db/case_keys.h"
#include "db/tx.h"

/* INPUTS: of the case; "": not known, or contested.  DEVICE: the one that was asked;
 * NULL: any.  What was refused for its inputs has computed all the same. */
static enum err_code count(struct tx *tx, int64_t cell, const char *inputs,
                           const char *device, struct challenges *ret_challenges,
                           struct err *err)
{
    struct challenges *c = ret_challenges;

    *c = (struct challenges){ .passed = 0 };
    return tx_fetch(
        tx, TX_TARGETS(&c->passed, &c->repeated, &c->unchanged, &c->failed, c->run), err,
        "WITH answer (run, outcome, unchanged, repeated) AS (SELECT r.id,"
        " iif(r.refused, 'completed', r.outcome), r.input_digest = ?2,"
        " EXISTS (SELECT 1 FROM cell_digest d WHERE d.cell = ?1 AND (d.digest = r.digest"
        " OR d.digest IN (SELECT digest FROM run_digest WHERE run = r.id)))"
        " FROM run r WHERE r.challenged = ?1 AND (?3 IS NULL OR r.device = ?3)),"
        " state (run, state) AS (SELECT run, CASE"
        " WHEN outcome IN ('unsupported', 'timeout', 'crashed', 'out_of_memory', "
        "'invalid')"
        " THEN 'failed' WHEN outcome IS NOT 'completed' THEN NULL"
        " WHEN unchanged THEN 'unchanged' WHEN repeated THEN 'repeated' ELSE 'passed' END"
        " FROM answer)"
        " SELECT count(*) FILTER (WHERE state = 'passed'),"
        " count(*) FILTER (WHERE state = 'repeated'),"
        " count(*) FILTER (WHERE state = 'unchanged'),"
        " count(*) FILTER (WHERE state = 'failed'),"
        " ifnull(min(run) FILTER (WHERE state = 'unchanged'),"
        " min(run) FILTER (WHERE state = 'repeated')) FROM state",
        cell, inputs, device);
}

enum err_code challenges_count(struct tx *tx, int64_t cell, const char *device,
                               struct challenges *ret_challenges, struct err *err)
{
    struct inputs inputs;
    int64_t siblings = 0;
    enum err_code code = tx_fetch_int(tx, &siblings, err,
                                      "SELECT k.siblings FROM cell c JOIN case_key k"
                                      " ON k.number = c.case_key WHERE c.id = ?",
                                      cell);

    if (code == ERR_OK) {
        code = case_inputs_load(tx, siblings, &inputs, err);
    }
    return code == ERR_OK ? count(tx, cell, inputs.contested ? "" : inputs.digest, device,
                                  ret_challenges, err)
                          : code;
}
