#include "db/runs_input.h"

#include <stdio.h>
#include <string.h>

#include "db/runs.h"
#include "db/tx.h"

/* What the inputs of the case must be; "" if no run has completed yet. */
static enum err_code load_expected_input(struct tx *tx, const struct run_record *run,
                                         char ret_digest[DIGEST_TEXT_SIZE],
                                         char ret_run[ID_SIZE], struct err *err)
{
    const struct case_key *key = &run->key;
    struct query q;

    ret_digest[0] = '\0';
    query_begin(&q, tx,
                "SELECT digest, run FROM expected_input WHERE workload = ?"
                " AND version = ? AND size = ? AND dtype = ? AND seed = ?");
    query_bind_text(&q, key->workload);
    query_bind_int(&q, key->version);
    query_bind_text(&q, key->size);
    query_bind_text(&q, key->dtype);
    query_bind_int(&q, (int64_t)key->seed);
    if (query_step(&q)) {
        query_take_text(&q, ret_digest, DIGEST_TEXT_SIZE);
        query_take_text(&q, ret_run, ID_SIZE);
    }
    return query_end(&q, err);
}

static enum err_code store_expected_input(struct tx *tx, const struct run_record *run,
                                          struct err *err)
{
    const struct case_key *key = &run->key;
    struct query q;

    query_begin(&q, tx,
                "INSERT INTO expected_input (workload, version, size, dtype, seed,"
                " digest, run) VALUES (?, ?, ?, ?, ?, ?, ?)");
    query_bind_text(&q, key->workload);
    query_bind_int(&q, key->version);
    query_bind_text(&q, key->size);
    query_bind_text(&q, key->dtype);
    query_bind_int(&q, (int64_t)key->seed);
    query_bind_text(&q, run->input_digest);
    query_bind_text(&q, run->id);
    return query_run(&q, err);
}

enum err_code runs_check_input(struct tx *tx, struct run_record *run, struct err *err)
{
    char digest[DIGEST_TEXT_SIZE];
    char first[ID_SIZE] = "";

    if (run->outcome != OUTCOME_COMPLETED) {
        return ERR_OK;
    }
    if (load_expected_input(tx, run, digest, first, err) != ERR_OK) {
        return err->code;
    }
    if (!digest[0]) {
        return store_expected_input(tx, run, err);
    }
    if (strcmp(digest, run->input_digest) != 0) {
        run->outcome = OUTCOME_INVALID;
        snprintf(run->cause, sizeof run->cause,
                 "the inputs of run %s have digest %s, those of run %s of the same case "
                 "have %s",
                 run->id, run->input_digest, first, digest);
    }
    return ERR_OK;
}
