#include "db/fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/jobs/run.h"
#include "db/dissent/device_states.h"
#include "db/tx.h"

enum err_code hosts_seen(struct tx *tx, const struct host *host, struct err *err)
{
    return tx_run(tx, err,
                  "INSERT INTO host (name, boot_id, first_seen_ms, last_seen_ms)"
                  " VALUES (?, ?, ?, ?)"
                  " ON CONFLICT (name) DO UPDATE SET boot_id = excluded.boot_id,"
                  " last_seen_ms = max(last_seen_ms, excluded.last_seen_ms)",
                  host->name, host->boot_id,
                  host->first_seen_ms ? host->first_seen_ms : host->last_seen_ms,
                  host->last_seen_ms);
}

enum err_code devices_seen(struct tx *tx, const struct device *device, struct err *err)
{
    const char *attributes = device->attributes_json ? device->attributes_json : "{}";
    enum err_code code =
        device_states_seen(tx, device->id, attributes, device->last_seen_ms, err);

    return code != ERR_OK
               ? code
               : tx_run(
                     tx, err,
                     "INSERT INTO device (id, host, backend, model, attributes, "
                     "first_seen_ms,"
                     " last_seen_ms) VALUES (?, ?, ?, ?, ?, ?, ?)"
                     " ON CONFLICT (id) DO UPDATE SET host = excluded.host,"
                     " backend = excluded.backend, model = excluded.model,"
                     " attributes = excluded.attributes,"
                     " last_seen_ms = max(last_seen_ms, excluded.last_seen_ms)",
                     device->id, device->host, device->backend, device->model, attributes,
                     device->first_seen_ms ? device->first_seen_ms : device->last_seen_ms,
                     device->last_seen_ms);
}

enum err_code hosts_each(struct tx *tx, void (*visit)(void *arg, const struct host *host),
                         void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT name, boot_id, first_seen_ms, last_seen_ms FROM host"
                " ORDER BY name");
    while (query_step(&q)) {
        struct host host;

        query_take(&q, host.name, host.boot_id, &host.first_seen_ms, &host.last_seen_ms);
        visit(arg, &host);
    }
    return query_end(&q, err);
}

#define DEVICE_COLUMNS "id, host, backend, model, attributes, first_seen_ms, last_seen_ms"

static enum err_code visit_devices(struct query *q,
                                   void (*visit)(void *arg, const struct device *device),
                                   void *arg, struct err *err)
{
    while (query_step(q)) {
        struct device device;

        query_take(q, device.id, device.host, device.backend, device.model,
                   &device.attributes_json, &device.first_seen_ms, &device.last_seen_ms);
        visit(arg, &device);
    }
    return query_end(q, err);
}

enum err_code devices_each(struct tx *tx,
                           void (*visit)(void *arg, const struct device *device),
                           void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx, "SELECT " DEVICE_COLUMNS " FROM device ORDER BY id");
    return visit_devices(&q, visit, arg, err);
}

enum err_code devices_page(struct tx *tx, int64_t before, int limit,
                           void (*visit)(void *arg, const struct device *device),
                           void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT " DEVICE_COLUMNS
                " FROM device ORDER BY id LIMIT ?"
                " OFFSET ?",
                limit, before);
    return visit_devices(&q, visit, arg, err);
}

enum err_code devices_named(struct tx *tx, const char *id,
                            void (*visit)(void *arg, const struct device *device),
                            void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx, "SELECT " DEVICE_COLUMNS " FROM device WHERE id = ?", id);
    return visit_devices(&q, visit, arg, err);
}

enum err_code devices_of_host(struct tx *tx, const char *host,
                              void (*visit)(void *arg, const struct device *device),
                              void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT " DEVICE_COLUMNS " FROM device WHERE host = ? ORDER BY id", host);
    return visit_devices(&q, visit, arg, err);
}

#define ENVIRONMENT_COLUMNS "id, title, json, first_seen_ms, last_seen_ms, cells, number"

static void take_environment(struct query *q, struct environment *ret_environment)
{
    query_take(q, ret_environment->id, ret_environment->title, &ret_environment->json,
               &ret_environment->first_seen_ms, &ret_environment->last_seen_ms,
               &ret_environment->cells, &ret_environment->number);
}

enum err_code environments_each(struct tx *tx, int64_t before_ms, int64_t before_number,
                                int limit,
                                void (*visit)(void *arg, const struct environment *e),
                                void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT " ENVIRONMENT_COLUMNS
                " FROM environment WHERE (last_seen_ms, number) < (?, ?)"
                " ORDER BY last_seen_ms DESC, number DESC LIMIT ?",
                before_ms ? before_ms : INT64_MAX, before_ms ? before_number : INT64_MAX,
                limit);
    while (query_step(&q)) {
        struct environment environment;

        take_environment(&q, &environment);
        visit(arg, &environment);
    }
    return query_end(&q, err);
}

enum err_code environments_of_stack(struct tx *tx, const char *device, const char *stack,
                                    char ret_id[DIGEST_TEXT_SIZE], struct err *err)
{
    struct query q;

    ret_id[0] = '\0';
    query_begin(&q, tx,
                "SELECT e.id FROM device_stack_environment AS d"
                " JOIN environment AS e ON e.number = d.environment"
                " WHERE d.device = ? AND d.stack = ?",
                device, stack);
    while (query_step(&q)) {
        query_take_text(&q, ret_id, DIGEST_TEXT_SIZE);
    }
    return query_end(&q, err);
}

enum err_code environments_get(struct tx *tx, const char *id,
                               struct environment *ret_environment, char **ret_json,
                               struct err *err)
{
    struct query q;
    bool found;
    char *json = NULL;

    if (*id) {
        query_begin(&q, tx,
                    "SELECT " ENVIRONMENT_COLUMNS " FROM environment WHERE id = ?", id);
    } else {
        query_begin(&q, tx,
                    "SELECT " ENVIRONMENT_COLUMNS
                    " FROM environment"
                    " ORDER BY last_seen_ms DESC, number DESC LIMIT 1");
    }
    found = query_step(&q);
    if (found) {
        take_environment(&q, ret_environment);
        json = xstrdup(ret_environment->json);
        ret_environment->json = NULL;
    }
    if (query_end(&q, err) != ERR_OK) {
        free(json);
        return err->code;
    }
    if (!found) {
        return *id ? err_set(err, ERR_NOT_FOUND, "no environment %s", id)
                   : err_set(err, ERR_NOT_FOUND, "no environment was seen yet");
    }
    *ret_json = json;
    return ERR_OK;
}

static enum err_code store_libraries(struct tx *tx, const char *json, int64_t *ret_number,
                                     struct err *err)
{
    if (tx_fetch_int(tx, ret_number, err,
                     "SELECT number FROM library_list WHERE json = ?", json) != ERR_OK ||
        *ret_number) {
        return *ret_number ? ERR_OK : err->code;
    }
    return tx_fetch_int(tx, ret_number, err,
                        "INSERT INTO library_list (json) VALUES (?) RETURNING number",
                        json) == ERR_OK
               ? ERR_OK
               : err_wrap(err, "libraries");
}

static enum err_code insert_environment(struct tx *tx, const struct run_record *run,
                                        const struct run_result *result,
                                        int64_t *ret_number, struct err *err)
{
    const char *title = result->environment_title;

    return tx_fetch_int(
               tx, ret_number, err,
               "INSERT INTO environment (id, title, json, first_seen_ms, last_seen_ms)"
               " VALUES (?, ?, ?, ?, ?) RETURNING number",
               run->environment, title ? title : "", result->environment_json,
               run->started_ms ? run->started_ms : run->intent_ms,
               run->finished_ms) == ERR_OK
               ? ERR_OK
               : err_wrap(err, "environment");
}

static enum err_code store_environment(struct tx *tx, const struct run_record *run,
                                       const struct run_result *result,
                                       int64_t *ret_number, struct err *err)
{
    if (tx_fetch_int(tx, ret_number, err, "SELECT number FROM environment WHERE id = ?",
                     run->environment) != ERR_OK) {
        return err->code;
    }
    if (!*ret_number) {
        return insert_environment(tx, run, result, ret_number, err);
    }
    return tx_run(tx, err,
                  "UPDATE environment SET first_seen_ms = min(first_seen_ms, ?1),"
                  " last_seen_ms = max(last_seen_ms, ?2) WHERE number = ?3"
                  " AND (first_seen_ms > ?1 OR last_seen_ms < ?2)",
                  run->started_ms ? run->started_ms : run->intent_ms, run->finished_ms,
                  *ret_number);
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

/* By run id, not by arrival: results may come in any order.  As good as always it is a
 * later run of the same environment. */
static enum err_code remember_latest(struct tx *tx, const struct run_record *run,
                                     const char *scope, int64_t environment,
                                     struct err *err)
{
    if (tx_run(tx, err,
               "UPDATE device_stack_environment SET run = ?4 WHERE device = ?1"
               " AND stack = ?2 AND environment = ?3 AND run < ?4",
               run->device, scope, environment, run->id) != ERR_OK) {
        return err->code;
    }
    if (sqlite3_changes64(tx->db) > 0) {
        return ERR_OK;
    }
    return tx_run(tx, err,
                  "INSERT INTO device_stack_environment (device, stack, environment, run)"
                  " VALUES (?, ?, ?, ?) ON CONFLICT (device, stack) DO UPDATE SET"
                  " environment = excluded.environment, run = excluded.run"
                  " WHERE excluded.run > run",
                  run->device, scope, environment, run->id);
}

/* Minima and maxima: results may come in any order. */
static enum err_code remember_span(struct tx *tx, const struct run_record *run,
                                   const char *scope, int64_t environment,
                                   struct err *err)
{
    if (tx_run(tx, err,
               "UPDATE device_environment SET last_run = ?4 WHERE device = ?1"
               " AND stack = ?2 AND environment = ?3 AND last_run < ?4",
               run->device, scope, environment, run->id) != ERR_OK) {
        return err->code;
    }
    if (sqlite3_changes64(tx->db) > 0) {
        return ERR_OK; /* ids grow */
    }
    return tx_run(tx, err,
                  "INSERT INTO device_environment (device, stack, environment, first_run,"
                  " last_run) VALUES (?1, ?2, ?3, ?4, ?4)"
                  " ON CONFLICT (device, stack, environment) DO UPDATE SET"
                  " first_run = min(first_run, excluded.first_run),"
                  " last_run = max(last_run, excluded.last_run)",
                  run->device, scope, environment, run->id);
}

enum err_code environments_store(struct tx *tx, const struct run_record *run,
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
    if (store_environment(tx, run, result, ret_environment, err) != ERR_OK) {
        return err->code;
    }
    /* A run on the wrong device tells nothing about the one that was asked for. */
    if (run->device_read_back[0] && strcmp(run->device_read_back, run->device) != 0) {
        return ERR_OK;
    }
    scope_of(run, scope);
    if (remember_span(tx, run, scope, *ret_environment, err) != ERR_OK) {
        return err->code;
    }
    if (strcmp(scope, run->stack) != 0 &&
        remember_latest(tx, run, scope, *ret_environment, err) != ERR_OK) {
        return err->code;
    }
    return remember_latest(tx, run, run->stack, *ret_environment, err);
}

enum err_code environments_of_run(struct tx *tx, const struct run_record *run,
                                  int64_t environment, int64_t *ret_environment,
                                  struct err *err)
{
    char scope[SCOPE_SIZE];

    *ret_environment = environment;
    if (environment || !outcome_is_answer(run->outcome)) {
        return ERR_OK;
    }
    return tx_fetch_int(tx, ret_environment, err,
                        "SELECT environment FROM device_stack_environment"
                        " WHERE device = ? AND stack = ?",
                        run->device, scope_of(run, scope));
}
