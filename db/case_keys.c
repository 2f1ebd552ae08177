#include "db/case_keys.h"

#include <string.h>

#include "db/tx.h"

void case_keys_take(struct query *q, struct case_key *ret_key)
{
    query_take(q, ret_key->workload, &ret_key->version, ret_key->variant, ret_key->size,
               ret_key->dtype);
    ret_key->seed = (uint64_t)query_take_int(q);
}

static enum err_code insert(struct tx *tx, const struct case_key *key,
                            const struct case_declaration *d, int64_t *ret_number,
                            struct err *err)
{
    return tx_fetch_int(
        tx, ret_number, err,
        "INSERT INTO case_key (workload, version, variant, size, dtype, seed,"
        " is_control, kind, no_control, siblings) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,"
        " ?8, ?9, ifnull((SELECT min(siblings) FROM case_key WHERE workload = ?1"
        " AND version = ?2 AND size = ?4 AND dtype = ?5 AND seed = ?6),"
        " (SELECT ifnull(max(number), 0) + 1 FROM case_key))) RETURNING number",
        key->workload, key->version, key->variant, key->size, key->dtype,
        (int64_t)key->seed, d->is_control, d->kind, d->no_control);
}

static enum err_code update(struct tx *tx, int64_t number,
                            const struct case_declaration *d, struct err *err)
{
    return tx_run(tx, err,
                  "UPDATE case_key SET is_control = ?, kind = ?, no_control = ?"
                  " WHERE number = ?",
                  d->is_control, d->kind, d->no_control, number);
}

enum err_code case_keys_declare(struct tx *tx, const struct case_key *key,
                                const struct case_declaration *d, int64_t *ret_number,
                                bool *ret_declared, struct err *err)
{
    *ret_number = 0;
    *ret_declared = false;
    if (tx_fetch(tx, TX_TARGETS(ret_number, ret_declared), err,
                 "SELECT number, is_control <> ?7 OR kind <> ?8 OR no_control <> ?9 FROM "
                 "case_key"
                 " WHERE workload = ?1 AND version = ?2 AND variant = ?3 AND size = ?4"
                 " AND dtype = ?5 AND seed = ?6",
                 key->workload, key->version, key->variant, key->size, key->dtype,
                 (int64_t)key->seed, d->is_control, d->kind, d->no_control) != ERR_OK) {
        return err->code;
    }
    if (!*ret_number) {
        return insert(tx, key, d, ret_number, err);
    }
    return *ret_declared ? update(tx, *ret_number, d, err) : ERR_OK;
}
