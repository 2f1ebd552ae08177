#include "tests/fuzz/store.h"

#include <stdio.h>
#include <string.h>

#include "db/connection.h"
#include "db/jobs.h"
#include "db/tx.h"
#include "tests/fuzz/fuzz.h"

static const char job_id[] = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
static const char run_id[] = "01ARZ3NDEKTSV4RRFFQ69G5FAW";

static void insert_job(struct tx *tx, const struct case_key *key)
{
    static char request[] = "{}";
    struct job_item item = {
        .key = *key, .runs_wanted = 1, .device = "cpu:a", .stack = "cpu"
    };
    struct job job = { .iterations = 1,
                       .created_ms = 1,
                       .request = request,
                       .items = &item,
                       .item_count = 1,
                       .runs_total = 1 };
    char existing[ID_SIZE];
    struct err err;

    snprintf(job.id, sizeof job.id, "%s", job_id);
    FUZZ_CHECK(jobs_insert(tx, &job, NULL, existing, &err) == ERR_OK);
}

/* With a transaction that never ends. */
static struct tx *open_store(const struct case_key *key)
{
    struct tx *tx = NULL;
    struct err err;

    FUZZ_CHECK(connection_open_writer(":memory:", 0, &tx, &err) == ERR_OK);
    FUZZ_CHECK(tx_run(tx, &err, "BEGIN") == ERR_OK);
    insert_job(tx, key);
    return tx;
}

enum err_code fuzz_store_result(const struct case_key *key, struct run_record *run,
                                struct run_result *result, struct err *err)
{
    static struct tx *tx;
    struct run_intent intent = { .intent_ms = 1 };
    struct run_effect effect;
    struct err ignored;
    enum err_code code;

    tx = tx ? tx : open_store(key);
    snprintf(intent.id, sizeof intent.id, "%s", run_id);
    snprintf(intent.job, sizeof intent.job, "%s", job_id);
    snprintf(run->id, sizeof run->id, "%s", run_id);
    run->finished_ms = 2;
    FUZZ_CHECK(tx_run(tx, &ignored, "SAVEPOINT fuzz") == ERR_OK);
    FUZZ_CHECK(runs_begin(tx, &intent, &ignored) == ERR_OK);
    code = runs_finish(tx, result, &effect, err);
    FUZZ_CHECK(tx_run(tx, &ignored, "ROLLBACK TO fuzz") == ERR_OK);
    FUZZ_CHECK(tx_run(tx, &ignored, "RELEASE fuzz") == ERR_OK);
    return code;
}
