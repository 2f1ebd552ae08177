#include "db/runs_environment.h"

#include <stdio.h>
#include <string.h>

#include "db/tx.h"

static enum err_code store_libraries(struct tx *tx, const char *json, int64_t *ret_number,
                                     struct err *err)
{
    struct query q;

    query_begin(&q, tx, "SELECT number FROM library_list WHERE json = ?");
    query_bind_text(&q, json);
    if (query_step(&q)) {
        *ret_number = query_take_int(&q);
    }
    if (query_end(&q, err) != ERR_OK || *ret_number) {
        return *ret_number ? ERR_OK : err->code;
    }
    query_begin(&q, tx, "INSERT INTO library_list (json) VALUES (?)");
    query_bind_text(&q, json);
    if (query_run(&q, err) != ERR_OK) {
        return err_wrap(err, "libraries");
    }
    *ret_number = sqlite3_last_insert_rowid(tx->db);
    return ERR_OK;
}

static enum err_code insert(struct tx *tx, const struct run_record *run,
                            const struct run_result *result, int64_t *ret_number,
                            struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "INSERT INTO environment (id, title, json, first_seen_ms, last_seen_ms)"
                " VALUES (?, ?, ?, ?, ?)");
    query_bind_text(&q, run->environment);
    query_bind_text(&q, result->environment_title ? result->environment_title : "");
    query_bind_text(&q, result->environment_json);
    query_bind_int(&q, run->started_ms ? run->started_ms : run->intent_ms);
    query_bind_int(&q, run->finished_ms);
    if (query_run(&q, err) != ERR_OK) {
        return err_wrap(err, "environment");
    }
    *ret_number = sqlite3_last_insert_rowid(tx->db);
    return ERR_OK;
}

static enum err_code store(struct tx *tx, const struct run_record *run,
                           const struct run_result *result, int64_t *ret_number,
                           struct err *err)
{
    struct query q;

    query_begin(&q, tx, "SELECT number FROM environment WHERE id = ?");
    query_bind_text(&q, run->environment);
    if (query_step(&q)) {
        *ret_number = query_take_int(&q);
    }
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    if (!*ret_number) {
        return insert(tx, run, result, ret_number, err);
    }
    query_begin(&q, tx,
                "UPDATE environment SET first_seen_ms = min(first_seen_ms, ?1),"
                " last_seen_ms = max(last_seen_ms, ?2) WHERE number = ?3"
                " AND (first_seen_ms > ?1 OR last_seen_ms < ?2)");
    query_bind_int(&q, run->started_ms ? run->started_ms : run->intent_ms);
    query_bind_int(&q, run->finished_ms);
    query_bind_int(&q, *ret_number);
    return query_run(&q, err);
}

enum { SCOPE_SIZE = 2 * CASE_NAME_SIZE };

/* What shares an environment on a device: the runs of a stack, but with external stacks
 * (daemon/config/external.h) those of one workload, whose build is part of its
 * environment. */
static const char *scope_of(const struct run_record *run, char ret_scope[SCOPE_SIZE])
{
    bool external = strcmp(run->stack, "external") == 0 ||
                    strncmp(run->stack, "external-", strlen("external-")) == 0;

    snprintf(ret_scope, SCOPE_SIZE, "%s%s%s", run->stack, external ? "/" : "",
             external ? run->key.workload : "");
    return ret_scope;
}

/* By run id, not by arrival: results may come in any order. */
static enum err_code remember_latest(struct tx *tx, const struct run_record *run,
                                     const char *scope, int64_t environment,
                                     struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "INSERT INTO device_stack_environment (device, stack, environment, run)"
                " VALUES (?, ?, ?, ?) ON CONFLICT (device, stack) DO UPDATE SET"
                " environment = excluded.environment, run = excluded.run"
                " WHERE excluded.run > run");
    query_bind_text(&q, run->device);
    query_bind_text(&q, scope);
    query_bind_int(&q, environment);
    query_bind_text(&q, run->id);
    return query_run(&q, err);
}

enum err_code runs_store_environment(struct tx *tx, const struct run_record *run,
                                     const struct run_result *result,
                                     int64_t *ret_environment, int64_t *ret_libraries,
                                     struct err *err)
{
    char scope[SCOPE_SIZE];

    *ret_environment = 0;
    *ret_libraries = 0;
    if (result->libraries_json &&
        store_libraries(tx, result->libraries_json, ret_libraries, err) != ERR_OK) {
        return err->code;
    }
    if (!run->environment[0]) {
        return ERR_OK;
    }
    if (store(tx, run, result, ret_environment, err) != ERR_OK) {
        return err->code;
    }
    /* A run on the wrong device tells nothing about the one that was asked for. */
    if (run->device_read_back[0] && strcmp(run->device_read_back, run->device) != 0) {
        return ERR_OK;
    }
    if (strcmp(scope_of(run, scope), run->stack) != 0 &&
        remember_latest(tx, run, scope, *ret_environment, err) != ERR_OK) {
        return err->code;
    }
    return remember_latest(tx, run, run->stack, *ret_environment, err);
}

enum err_code runs_counting_environment(struct tx *tx, const struct run_record *run,
                                        int64_t environment, int64_t *ret_environment,
                                        struct err *err)
{
    char scope[SCOPE_SIZE];
    struct query q;

    *ret_environment = environment;
    if (environment || !outcome_is_answer(run->outcome)) {
        return ERR_OK;
    }
    query_begin(&q, tx,
                "SELECT environment FROM device_stack_environment"
                " WHERE device = ? AND stack = ?");
    query_bind_text(&q, run->device);
    query_bind_text(&q, scope_of(run, scope));
    if (query_step(&q)) {
        *ret_environment = query_take_int(&q);
    }
    return query_end(&q, err);
}
