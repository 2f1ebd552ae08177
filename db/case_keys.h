/* Cases as rows: what makes a case_key number of a struct case_key and back, and what
 * runs and people say of their inputs (daemon/evidence/inputs.h).  Private to db/, but
 * for case_inputs_each. */
#ifndef DB_CASE_KEYS_H
#define DB_CASE_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"
#include "daemon/evidence/inputs.h"
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
    bool unseeded;          /* its command has no seeded inputs */
    bool is_challenge;      /* no job requested it: what one says of it stays */
};
enum err_code case_keys_declare(struct tx *tx, const struct case_key *key,
                                const struct case_declaration *declaration,
                                int64_t *ret_number, bool *ret_declared, struct err *err);

/* What the case with number SIBLINGS (a group of case_key) and its siblings compute from,
 * as far as their runs and people say. */
enum err_code case_inputs_load(struct tx *tx, int64_t siblings, struct inputs *ret_inputs,
                               struct err *err);

/* Counts a run of DEVICE that completes, or would but for its inputs. */
enum err_code case_inputs_add(struct tx *tx, int64_t siblings, const char *digest,
                              const char *device, const char *run, struct err *err);

/* Counts them again from the stored runs: outcomes changed for another reason than
 * inputs. */
enum err_code case_inputs_recount(struct tx *tx, int64_t siblings, struct err *err);

/* Cases of whose inputs more than one digest was seen, or of which a person said
 * something, by number.  The key has no variant. */
struct case_inputs {
    struct case_key key;
    struct inputs inputs;
    char decided[DIGEST_TEXT_SIZE], reason[CASE_TITLE_SIZE]; /* by a person; "": nobody */
    int64_t decided_ms;
    /* Borrowed, most runs first: each digest on each host. */
    const struct case_input {
        char digest[DIGEST_TEXT_SIZE], host[CASE_TITLE_SIZE];
        char run[ID_SIZE]; /* the first */
        int64_t runs;
    } * camps;
    int camp_count;
};
enum err_code case_inputs_each(struct tx *tx, int64_t after, int limit,
                               void (*visit)(void *arg, int64_t siblings,
                                             const struct case_inputs *inputs),
                               void *arg, struct err *err);

#endif
