#include "db/screening/screenings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/case_keys.h"
#include "db/fleet.h"
#include "db/jobs.h"
#include "db/screening/screening_end.h"
#include "db/tx.h"

/* Which devices need one. */

struct known {
    int64_t number; /* of its newest; 0: there is none */
    bool open, planned;
    char host[CASE_TITLE_SIZE];
    char *facts; /* owned */
    int64_t last_seen_ms;
};

static enum err_code load_known(struct tx *tx, const char *device, struct known *known,
                                struct err *err)
{
    struct query q;

    *known = (struct known){ .number = 0 };
    if (tx_fetch_int(tx, &known->last_seen_ms, err,
                     "SELECT last_seen_ms FROM device WHERE id = ?", device) != ERR_OK) {
        return err->code;
    }
    query_begin(&q, tx,
                "SELECT number, outcome IS NULL, planned_ms IS NOT NULL, host, facts"
                " FROM screening WHERE device = ? ORDER BY number DESC LIMIT 1",
                device);
    if (query_step(&q)) {
        query_take(&q, &known->number, &known->open, &known->planned, known->host);
        known->facts = query_copy_text(&q);
    }
    return query_end(&q, err);
}

static enum err_code insert(struct tx *tx, const struct screening_seen *seen,
                            enum screening_reason reason, const char *facts,
                            const char *words, const char *fingerprint, struct err *err)
{
    return tx_run(tx, err,
                  "INSERT INTO screening (device, host, facts, fingerprint, reason,"
                  " words, at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
                  seen->device->id, seen->device->host, facts, fingerprint,
                  screening_reason_name(reason), words, seen->device->last_seen_ms);
}

/* What is due stays so, for what it was due first. */
static enum err_code update(struct tx *tx, int64_t number, const char *host,
                            const char *facts, const char *fingerprint, struct err *err)
{
    return tx_run(tx, err,
                  "UPDATE screening SET host = ?1, facts = ?2, fingerprint = ?3"
                  " WHERE number = ?4 AND fingerprint <> ?3",
                  host, facts, fingerprint, number);
}

/* A device that changed while it was measured is measured anew: what its runs so far were
 * of is not what it is. */
static enum err_code supersede(struct tx *tx, const struct known *known,
                               const char *words, int64_t now_ms, struct err *err)
{
    char cause[SCREENING_WORDS_SIZE];

    if (!known->number || !known->open) {
        return ERR_OK;
    }
    snprintf(cause, sizeof cause, "it changed before it was measured to the end: %.180s",
             words[0] ? words : "it returned");
    return screenings_give_up(tx, known->number, cause, now_ms, err);
}

enum err_code screenings_seen(struct tx *tx, const struct screening_seen *seen,
                              struct err *err)
{
    const struct device *device = seen->device;
    char fingerprint[DIGEST_TEXT_SIZE];
    struct known known;
    enum screening_reason reason;
    char *facts;
    char *words;

    if (load_known(tx, device->id, &known, err) != ERR_OK) {
        free(known.facts);
        return err->code;
    }
    reason = screening_judge(
        &(const struct screening_past){ known.host, known.facts ? known.facts : "",
                                        known.last_seen_ms },
        &(const struct screening_present){ device->host, seen->facts,
                                           device->last_seen_ms, seen->returned_ms },
        &facts, &words);
    screening_fingerprint(device->host, facts, fingerprint);
    if (devices_seen(tx, device, err) != ERR_OK) {
        goto done;
    }
    if (reason == SCREENING_NOT || (known.open && !known.planned)) {
        update(tx, known.number, device->host, facts, fingerprint, err);
    } else if (supersede(tx, &known, words, device->last_seen_ms, err) == ERR_OK) {
        insert(tx, seen, reason, facts, words, fingerprint, err);
    }
done:
    free(known.facts);
    free(facts);
    free(words);
    return err->code;
}

enum err_code screenings_present(struct tx *tx, const char *device, int64_t now_ms,
                                 struct err *err)
{
    return tx_run(tx, err,
                  "UPDATE device SET last_seen_ms = ?1 WHERE id = ?2"
                  " AND last_seen_ms < ?1",
                  now_ms, device);
}

/* Reading. */

#define SCREENING_COLUMNS                                                                \
    "s.number, s.device, s.host, s.reason, s.words, s.at_ms, s.planned_ms IS NOT NULL,"  \
    " s.outcome, s.cause, s.counts, (SELECT json_group_array(j.id) FROM screening_job t" \
    " JOIN job j ON j.number = t.job WHERE t.screening = s.number), s.ended_ms"

static enum err_code each(struct query *q,
                          void (*visit)(void *arg, const struct screening *s), void *arg,
                          struct err *err)
{
    while (query_step(q)) {
        struct screening s;

        query_take(q, &s.number, s.device, s.host, s.reason, &s.words, &s.at_ms,
                   &s.planned, s.outcome, &s.cause, &s.counts, &s.jobs, &s.ended_ms);
        visit(arg, &s);
    }
    return query_end(q, err);
}

enum err_code screenings_each_due(struct tx *tx, int limit,
                                  void (*visit)(void *arg, const struct screening *s),
                                  void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT " SCREENING_COLUMNS
                " FROM screening s INDEXED BY screening_open"
                " WHERE s.outcome IS NULL AND s.planned_ms IS NULL"
                " ORDER BY s.number LIMIT ?",
                limit);
    return each(&q, visit, arg, err);
}

enum err_code screenings_of_devices(struct tx *tx, const char *first, const char *last,
                                    void (*visit)(void *arg, const struct screening *s),
                                    void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT " SCREENING_COLUMNS
                " FROM (SELECT max(number) AS newest FROM screening"
                " WHERE device BETWEEN ? AND ? GROUP BY device) n"
                " CROSS JOIN screening s ON s.number = n.newest",
                first, last);
    return each(&q, visit, arg, err);
}

enum err_code screenings_count(struct tx *tx, struct screening_figures *ret_figures,
                               struct err *err)
{
    struct screening_figures *f = ret_figures;

    *f = (struct screening_figures){ .due = 0 };
    return tx_fetch(
        tx,
        TX_TARGETS(&f->due, &f->measuring, &f->outcomes[SCREENING_PASSED],
                   &f->outcomes[SCREENING_DISSENTS],
                   &f->outcomes[SCREENING_INCONCLUSIVE]),
        err,
        "SELECT ifnull(sum(outcome IS NULL AND planned_ms IS NULL), 0),"
        " ifnull(sum(outcome IS NULL AND planned_ms IS NOT NULL), 0),"
        " ifnull(sum(outcome = 'passed'), 0), ifnull(sum(outcome = 'dissents'), 0),"
        " ifnull(sum(outcome = 'inconclusive'), 0) FROM (SELECT outcome, planned_ms,"
        " max(number) FROM screening GROUP BY device)"); /* those of max(number) */
}

enum err_code screenings_any(struct tx *tx, bool *ret_any, struct err *err)
{
    *ret_any = false;
    return tx_fetch(
        tx, TX_TARGETS(ret_any), err,
        "SELECT EXISTS (SELECT 1 FROM screening WHERE planned_ms IS NOT NULL)");
}

enum err_code screenings_each_case(struct tx *tx, int64_t screening,
                                   void (*visit)(void *arg, const struct case_key *key,
                                                 const char *stack),
                                   void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT DISTINCT " CASE_KEY_COLUMNS
                ", p.stack FROM (SELECT DISTINCT e.environment, e.stack FROM screening d"
                " JOIN screening s ON s.number ="
                " (SELECT max(x.number) FROM screening x WHERE x.device = s.device)"
                " AND (SELECT value ->> 'model' FROM json_each(s.facts, '$.devices')) IS"
                " (SELECT value ->> 'model' FROM json_each(d.facts, '$.devices'))"
                " JOIN device_stack_environment e ON e.device = s.device"
                " WHERE d.number = ?1 AND EXISTS (SELECT 1 FROM"
                " json_each(s.facts, '$.stacks') a JOIN json_each(d.facts, '$.stacks') b"
                " ON b.key = a.key AND b.value = a.value WHERE a.key = e.stack)) p"
                " JOIN cell c ON c.environment = p.environment AND c.completed > 0"
                " JOIN case_key k ON k.number = c.case_key WHERE NOT k.challenge"
                " AND NOT EXISTS (SELECT 1 FROM case_key n WHERE n.workload = k.workload"
                " AND n.version > k.version) ORDER BY p.stack, k.number LIMIT ?2",
                screening, SCREENING_CASES_MAX);
    while (query_step(&q)) {
        struct case_key key;
        char stack[CASE_NAME_SIZE];

        case_keys_take(&q, &key);
        query_take(&q, stack);
        visit(arg, &key, stack);
    }
    return query_end(&q, err);
}

/* Making jobs of them, and ending them. */

enum err_code screenings_plan(struct tx *tx, const struct job *jobs, int job_count,
                              int64_t now_ms, struct err *err)
{
    for (int i = 0; i < job_count; i++) {
        char existing[ID_SIZE];

        if (jobs_insert(tx, &jobs[i], NULL, existing, err) != ERR_OK ||
            tx_run(tx, err,
                   "INSERT INTO screening_job (screening, job)"
                   " SELECT DISTINCT s.number, j.number FROM job j"
                   " CROSS JOIN job_item i ON i.job = j.number"
                   " CROSS JOIN screening s INDEXED BY screening_device"
                   " ON s.device = i.device WHERE j.id = ?"
                   " AND s.outcome IS NULL AND s.planned_ms IS NULL",
                   jobs[i].id) != ERR_OK) {
            return err->code;
        }
        if (sqlite3_changes(tx->db) == 0) {
            return err_set(err, ERR_CONFLICT, "no device of job %s is due", jobs[i].id);
        }
    }
    return tx_run(tx, err,
                  "UPDATE screening SET planned_ms = ? WHERE outcome IS NULL"
                  " AND planned_ms IS NULL AND EXISTS (SELECT 1 FROM screening_job j"
                  " WHERE j.screening = number)",
                  now_ms);
}

enum err_code screenings_give_up(struct tx *tx, int64_t screening, const char *cause,
                                 int64_t now_ms, struct err *err)
{
    return screening_end(tx, screening, SCREENING_INCONCLUSIVE, cause, NULL, now_ms, err);
}
