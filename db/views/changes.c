#include "db/views/changes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/id.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/changes.h"
#include "db/case_keys.h"
#include "db/jobs.h"
#include "db/tx.h"

static const char *const states[] = { "seen", "measuring", "reported" };

const char *change_state_name(enum change_state state)
{
    return states[state];
}

static enum change_state take_state(struct query *q)
{
    const char *name = query_borrow_text(q);

    for (int i = 0; i < COUNT_OF(states); i++) {
        if (strcmp(name, states[i]) == 0) {
            return (enum change_state)i;
        }
    }
    return CHANGE_REPORTED;
}

/* What HOST said last, "" if nothing.  Caller frees. */
static enum err_code load_facts(struct tx *tx, const char *host, char **ret_facts,
                                struct err *err)
{
    struct query q;

    query_begin(&q, tx, "SELECT facts FROM host_facts WHERE host = ?", host);
    *ret_facts = query_step(&q) ? query_copy_text(&q) : NULL;
    *ret_facts = *ret_facts ? *ret_facts : xstrdup("");
    return query_end(&q, err);
}

static enum err_code store_facts(struct tx *tx, const char *host, const char *facts,
                                 struct err *err)
{
    return tx_run(tx, err,
                  "INSERT INTO host_facts (host, facts) VALUES (?, ?)"
                  " ON CONFLICT (host) DO UPDATE SET facts = excluded.facts"
                  " WHERE facts <> excluded.facts",
                  host, facts);
}

static enum err_code store_change(struct tx *tx, const char *host, int64_t at_ms,
                                  const char *facts, const char *words, struct err *err)
{
    int64_t number = 0;

    if (tx_fetch_int(
            tx, &number, err,
            "INSERT INTO change (host, at_ms, facts) VALUES (?, ?, ?) RETURNING number",
            host, at_ms, facts) != ERR_OK) {
        return err->code;
    }
    return tx_run(tx, err,
                  "INSERT INTO event (at_ms, kind, data) VALUES (?, 'change',"
                  " json_object('change', ?, 'host', ?, 'text', ?, 'facts', json(?)))",
                  at_ms, number, host, words, facts);
}

enum err_code changes_seen(struct tx *tx, const char *host, int64_t at_ms,
                           const char *facts, struct err *err)
{
    char *before;
    char *merged = NULL;
    char *words = NULL;
    char *changes = NULL;
    enum err_code code = load_facts(tx, host, &before, err);

    if (code == ERR_OK) {
        changes = changes_compare_texts(before, facts, &merged, &words);
        code = store_facts(tx, host, merged, err);
    }
    if (code == ERR_OK && changes) {
        code = store_change(tx, host, at_ms, changes, words, err);
    }
    free(before);
    free(merged);
    free(words);
    free(changes);
    return code;
}

/* Job j is about the host of change x, too. */
#define MEASURES                                                                         \
    " AND EXISTS (SELECT 1 FROM job_item i JOIN device d ON d.id = i.device"             \
    " WHERE i.job = j.number AND d.host = x.host)"
#define CHANGE_COLUMNS                                                                   \
    "x.number, x.host, x.at_ms, x.state, x.facts, x.reports,"                            \
    " ifnull((SELECT min(n.at_ms) FROM change n WHERE n.host = x.host"                   \
    " AND n.at_ms > x.at_ms), 0),"                                                       \
    " EXISTS (SELECT 1 FROM job j WHERE j.survey AND j.created_ms >= x.at_ms" MEASURES   \
    "), EXISTS (SELECT 1 FROM job j WHERE j.survey AND j.created_ms >= x.at_ms"          \
    " AND j.state IN ('queued', 'running')" MEASURES                                     \
    "),"                                                                                 \
    " EXISTS (SELECT 1 FROM screening s JOIN device d ON d.id = s.device JOIN host h"    \
    " ON h.name = d.host WHERE s.outcome IS NULL AND s.planned_ms IS NULL"               \
    " AND d.host = x.host AND d.last_seen_ms >= h.last_seen_ms),"                        \
    " EXISTS (SELECT 1 FROM job j WHERE j.runs_done > 0 AND j.created_ms >= x.at_ms"     \
    " AND j.state NOT IN ('queued', 'running')" MEASURES                                 \
    ") AND NOT EXISTS (SELECT 1 FROM job j WHERE j.created_ms >= x.at_ms"                \
    " AND j.state IN ('queued', 'running')" MEASURES ")"

static enum err_code each(struct query *q,
                          void (*visit)(void *arg, const struct change *change),
                          void *arg, struct err *err)
{
    while (query_step(q)) {
        struct change change;

        query_take(q, &change.number, change.host, &change.at_ms);
        change.state = take_state(q);
        query_take(q, &change.facts, &change.reports, &change.next_ms, &change.surveyed,
                   &change.surveying, &change.due, &change.measured);
        visit(arg, &change);
    }
    return query_end(q, err);
}

enum err_code changes_each(struct tx *tx, int64_t before, int limit,
                           void (*visit)(void *arg, const struct change *change),
                           void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT " CHANGE_COLUMNS
                " FROM change x WHERE x.number < ? ORDER BY x.number DESC LIMIT ?",
                before ? before : INT64_MAX, limit);
    return each(&q, visit, arg, err);
}

enum err_code changes_each_open(struct tx *tx, int limit,
                                void (*visit)(void *arg, const struct change *change),
                                void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT " CHANGE_COLUMNS
                " FROM change x INDEXED BY change_open"
                " WHERE x.state <> 'reported' ORDER BY x.number LIMIT ?",
                limit);
    return each(&q, visit, arg, err);
}

enum err_code changes_last(struct tx *tx, int64_t *ret_number, struct err *err)
{
    *ret_number = 0;
    return tx_fetch_int(tx, ret_number, err, "SELECT ifnull(max(number), 0) FROM change");
}

enum err_code changes_each_case(struct tx *tx, int64_t change, int limit,
                                void (*visit)(void *arg, const struct case_key *key,
                                              const char *device, const char *stack),
                                void *arg, struct err *err)
{
    char at[ID_SIZE];
    int64_t at_ms = 0;
    struct query q;

    if (tx_fetch_int(tx, &at_ms, err, "SELECT at_ms FROM change WHERE number = ?",
                     change) != ERR_OK) {
        return err->code;
    }
    id_first(at_ms, at);
    /* The latest environment of each device and stack before the change, if the change is
     * about one of them, or about their host. */
    query_begin(&q, tx,
                "SELECT " CASE_KEY_COLUMNS
                ", s.device, s.stack FROM change x"
                " JOIN device d ON d.host = x.host"
                " JOIN device_environment s ON s.device = d.id AND s.first_run < ?1"
                " JOIN cell c ON c.environment = s.environment AND c.completed > 0"
                " JOIN case_key k ON k.number = c.case_key"
                " WHERE x.number = ?2 AND NOT k.challenge AND NOT EXISTS (SELECT 1 FROM "
                "device_environment n"
                " WHERE n.device = s.device AND n.stack = s.stack AND n.first_run < ?1"
                " AND n.first_run > s.first_run)"
                " AND EXISTS (SELECT 1 FROM json_each(x.facts) f"
                " WHERE ifnull(f.value ->> 'stack', s.stack) = s.stack"
                " AND ifnull(f.value ->> 'device', s.device) = s.device)"
                " AND NOT EXISTS (SELECT 1 FROM job j JOIN job_item i ON i.job = j.number"
                " WHERE j.survey AND j.created_ms >= x.at_ms AND i.case_key = c.case_key"
                " AND i.device = s.device AND i.stack = s.stack)"
                " ORDER BY c.last_ms DESC, c.id LIMIT ?3",
                at, change, limit);
    while (query_step(&q)) {
        struct case_key key;
        char device[CASE_TITLE_SIZE];
        char stack[CASE_NAME_SIZE];

        case_keys_take(&q, &key);
        query_take(&q, device, stack);
        visit(arg, &key, device, stack);
    }
    return query_end(&q, err);
}

enum err_code changes_measure(struct tx *tx, int64_t change, const struct job *jobs,
                              int job_count, struct err *err)
{
    for (int i = 0; i < job_count; i++) {
        char key[64];
        char existing[ID_SIZE];

        snprintf(key, sizeof key, "change:%" PRId64 ":%d", change, i);
        if (jobs_insert(tx, &jobs[i], key, existing, err) != ERR_OK) {
            return err->code;
        }
    }
    return tx_run(tx, err,
                  "UPDATE change SET state = 'measuring' WHERE number = ?"
                  " AND state = 'seen'",
                  change);
}

enum err_code changes_report(struct tx *tx, int64_t change, int64_t at_ms,
                             const char *reports, struct err *err)
{
    int64_t number = 0;

    if (tx_fetch_int(tx, &number, err,
                     "UPDATE change SET state = 'reported', reports = ? WHERE number = ?"
                     " AND state <> 'reported' RETURNING number",
                     reports, change) != ERR_OK) {
        return err->code;
    }
    return number ? tx_run(tx, err,
                           "INSERT INTO event (at_ms, kind, data) SELECT ?, 'drift',"
                           " json_object('change', number, 'host', host, 'reports',"
                           " json(reports)) FROM change WHERE number = ?",
                           at_ms, change)
                  : ERR_OK;
}
