#include "db/case_keys.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/tx.h"

void case_keys_take(struct query *q, struct case_key *ret_key)
{
    query_take(q, ret_key->workload, &ret_key->version, ret_key->variant, ret_key->size,
               ret_key->dtype);
    ret_key->seed = (uint64_t)query_take_int(q);
}

/* The first of its siblings gives them its number: the next that SQLite gives. */
static enum err_code insert(struct tx *tx, const struct case_key *key,
                            const struct case_declaration *d, int64_t *ret_number,
                            struct err *err)
{
    return tx_fetch_int(
        tx, ret_number, err,
        "INSERT INTO case_key (workload, version, variant, size, dtype, seed,"
        " is_control, kind, no_control, unseeded, challenge, siblings)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ifnull((SELECT "
        "min(siblings) FROM case_key WHERE workload = ?1"
        " AND version = ?2 AND size = ?4 AND dtype = ?5 AND seed = ?6),"
        " (SELECT 1 + max(ifnull((SELECT seq FROM sqlite_sequence WHERE name ="
        " 'case_key'), 0), ifnull((SELECT max(number) FROM case_key), 0)))))"
        " RETURNING number",
        key->workload, key->version, key->variant, key->size, key->dtype,
        (int64_t)key->seed, d->is_control, d->kind, d->no_control, d->unseeded,
        d->is_challenge);
}

static enum err_code update(struct tx *tx, int64_t number,
                            const struct case_declaration *d, struct err *err)
{
    return tx_run(tx, err,
                  "UPDATE case_key SET is_control = ?, kind = ?, no_control = ?,"
                  " unseeded = ?, challenge = 0 WHERE number = ?",
                  d->is_control, d->kind, d->no_control, d->unseeded, number);
}

enum err_code case_keys_declare(struct tx *tx, const struct case_key *key,
                                const struct case_declaration *d, int64_t *ret_number,
                                bool *ret_declared, struct err *err)
{
    *ret_number = 0;
    *ret_declared = false;
    if (tx_fetch(tx, TX_TARGETS(ret_number, ret_declared), err,
                 "SELECT number, NOT ?11 AND (is_control <> ?7 OR kind <> ?8"
                 " OR no_control <> ?9 OR unseeded <> ?10 OR challenge) FROM case_key"
                 " WHERE workload = ?1 AND version = ?2 AND variant = ?3 AND size = ?4"
                 " AND dtype = ?5 AND seed = ?6",
                 key->workload, key->version, key->variant, key->size, key->dtype,
                 (int64_t)key->seed, d->is_control, d->kind, d->no_control, d->unseeded,
                 d->is_challenge) != ERR_OK) {
        return err->code;
    }
    if (!*ret_number) {
        return insert(tx, key, d, ret_number, err);
    }
    return *ret_declared ? update(tx, *ret_number, d, err) : ERR_OK;
}

/* Inputs. */

static enum err_code load_decision(struct tx *tx, int64_t siblings,
                                   struct case_inputs *ret_inputs, struct err *err)
{
    ret_inputs->decided[0] = ret_inputs->reason[0] = '\0';
    ret_inputs->decided_ms = 0;
    return tx_fetch(
        tx, TX_TARGETS(ret_inputs->decided, ret_inputs->reason, &ret_inputs->decided_ms),
        err,
        "SELECT digest, reason, at_ms FROM input_decision WHERE siblings = ?"
        " ORDER BY number DESC LIMIT 1",
        siblings);
}

/* Caller frees ret_camps. */
static enum err_code load_camps(struct tx *tx, int64_t siblings,
                                struct case_input **ret_camps, int *ret_count,
                                struct err *err)
{
    struct query q;

    *ret_camps = NULL;
    *ret_count = 0;
    query_begin(&q, tx,
                "SELECT c.digest, ifnull(d.host, ''), sum(c.runs), min(c.run)"
                " FROM case_input c LEFT JOIN device d ON d.id = c.device"
                " WHERE c.siblings = ? GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2",
                siblings);
    while (query_step(&q)) {
        struct case_input *camp;

        *ret_camps = xgrow(*ret_camps, *ret_count, sizeof **ret_camps);
        camp = &(*ret_camps)[(*ret_count)++];
        query_take(&q, camp->digest, camp->host, &camp->runs, camp->run);
    }
    return query_end(&q, err);
}

static struct inputs judge_camps(const struct case_input *camps, int count,
                                 const char *decided)
{
    struct input_count *counts = xcalloc((size_t)count + 1, sizeof *counts);
    struct inputs inputs;

    for (int i = 0; i < count; i++) {
        counts[i] = (struct input_count){ camps[i].digest, camps[i].host, camps[i].runs,
                                          camps[i].run };
    }
    inputs = inputs_judge(counts, count, decided);
    free(counts);
    return inputs;
}

/* Normally there is one digest, and then nobody has to be counted. */
enum err_code case_inputs_load(struct tx *tx, int64_t siblings, struct inputs *ret_inputs,
                               struct err *err)
{
    struct case_inputs decision;
    struct case_input *camps = NULL;
    char least[DIGEST_TEXT_SIZE] = "", greatest[DIGEST_TEXT_SIZE] = "";
    int count = 0;
    enum err_code code;

    *ret_inputs = (struct inputs){ .contested = false };
    if (load_decision(tx, siblings, &decision, err) != ERR_OK ||
        tx_fetch(tx, TX_TARGETS(least, greatest), err,
                 "SELECT (SELECT min(digest) FROM case_input WHERE siblings = ?1),"
                 " (SELECT max(digest) FROM case_input WHERE siblings = ?1)",
                 siblings) != ERR_OK) {
        return err->code;
    }
    if (!decision.decided[0] && strcmp(least, greatest) == 0) {
        copy_text(ret_inputs->digest, sizeof ret_inputs->digest, least);
        return ERR_OK;
    }
    code = load_camps(tx, siblings, &camps, &count, err);
    if (code == ERR_OK) {
        *ret_inputs = judge_camps(camps, count, decision.decided);
    }
    free(camps);
    return code;
}

enum err_code case_inputs_add(struct tx *tx, int64_t siblings, const char *digest,
                              const char *device, const char *run, struct err *err)
{
    if (tx_run(tx, err,
               "UPDATE case_input SET runs = runs + 1 WHERE siblings = ?"
               " AND digest = ? AND device = ? AND run < ?",
               siblings, digest, device, run) != ERR_OK) {
        return err->code;
    }
    if (sqlite3_changes64(tx->db) > 0) {
        return ERR_OK; /* as good as always: ids grow */
    }
    /* Not in one: SQLite looks for the run even where it stays the same, and it may have
     * been deleted. */
    return tx_run(tx, err,
                  "INSERT INTO case_input (siblings, digest, device, runs, run)"
                  " VALUES (?, ?, ?, 1, ?) ON CONFLICT (siblings, digest, device)"
                  " DO UPDATE SET runs = runs + 1",
                  siblings, digest, device, run) == ERR_OK
               ? tx_run(tx, err,
                        "UPDATE case_input SET run = ?4 WHERE siblings = ?1"
                        " AND digest = ?2 AND device = ?3 AND run > ?4",
                        siblings, digest, device, run)
               : err->code;
}

enum err_code case_inputs_recount(struct tx *tx, int64_t siblings, struct err *err)
{
    if (tx_run(tx, err, "DELETE FROM case_input WHERE siblings = ?", siblings) !=
        ERR_OK) {
        return err->code;
    }
    return tx_run(tx, err,
                  "INSERT INTO case_input (siblings, digest, device, runs, run)"
                  " SELECT ?1, digest, device, sum(runs), min(run) FROM ("
                  " SELECT r.input_digest AS digest, r.device, 1 AS runs, r.id AS run"
                  " FROM case_key k JOIN run r ON r.case_key = k.number"
                  " WHERE k.siblings = ?1 AND (r.outcome = 'completed' OR r.refused)"
                  " UNION ALL SELECT s.input_digest, i.device, s.runs, s.first_run"
                  " FROM case_key k JOIN job_item i ON i.case_key = k.number"
                  " JOIN run_summary s ON s.job = i.job AND s.item = i.seq"
                  " WHERE k.siblings = ?1) GROUP BY digest, device",
                  siblings);
}

static enum err_code load_case_inputs(struct tx *tx, int64_t siblings,
                                      struct case_inputs *ret_inputs,
                                      struct case_input **ret_camps, struct err *err)
{
    if (load_decision(tx, siblings, ret_inputs, err) != ERR_OK ||
        load_camps(tx, siblings, ret_camps, &ret_inputs->camp_count, err) != ERR_OK) {
        return err->code;
    }
    ret_inputs->camps = *ret_camps;
    ret_inputs->inputs =
        judge_camps(*ret_camps, ret_inputs->camp_count, ret_inputs->decided);
    return ERR_OK;
}

enum err_code case_inputs_each(struct tx *tx, int64_t after, int limit,
                               void (*visit)(void *arg, int64_t siblings,
                                             const struct case_inputs *inputs),
                               void *arg, struct err *err)
{
    enum err_code code = ERR_OK;
    struct query q;

    query_begin(&q, tx,
                "SELECT " CASE_KEY_COLUMNS
                ", k.number FROM case_key k WHERE k.number IN (SELECT siblings"
                " FROM case_input WHERE siblings > ?1 GROUP BY siblings"
                " HAVING min(digest) < max(digest) UNION SELECT siblings"
                " FROM input_decision WHERE siblings > ?1) ORDER BY k.number LIMIT ?2",
                after, limit);
    while (code == ERR_OK && query_step(&q)) {
        struct case_inputs inputs = { .camps = NULL };
        struct case_input *camps = NULL;
        int64_t siblings;

        case_keys_take(&q, &inputs.key);
        siblings = query_take_int(&q);
        inputs.key.variant[0] = '\0';
        code = load_case_inputs(tx, siblings, &inputs, &camps, err);
        if (code == ERR_OK) {
            visit(arg, siblings, &inputs);
        }
        free(camps);
    }
    return query_close(&q, code, err);
}
