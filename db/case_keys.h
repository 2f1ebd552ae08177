/* Cases as rows: what makes a case_key number of a struct case_key and back.  Private to
 * db/. */
#ifndef DB_CASE_KEYS_H
#define DB_CASE_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/case.h"

struct query;
struct tx;

/* Columns of table case_key under the alias k, as case_keys_take reads them. */
#define CASE_KEY_COLUMNS "k.workload, k.version, k.variant, k.size, k.dtype, k.seed"

void case_keys_take(struct query *q, struct case_key *ret_key);

/* The case's number; it is stored if it is new.  The latest job says whether it is a
 * control, of which kind, and why there is none: if that changed, ret_declared is true
 * and the verdicts that depend on it have to be judged again. */
struct case_declaration {
    bool is_control;
    const char *kind;       /* of control_kinds (daemon/evidence/verdict.h) */
    const char *no_control; /* "" when the workload has a control */
};
enum err_code case_keys_declare(struct tx *tx, const struct case_key *key,
                                const struct case_declaration *declaration,
                                int64_t *ret_number, bool *ret_declared, struct err *err);

#endif
