#include "db/localisations.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/captures.h"
#include "db/jobs_progress.h"
#include "db/tx.h"

/* The table's CHECK keeps other names out. */
static enum localisation_state parse_state(const char *name)
{
    enum localisation_state state = LOCALISATION_SEARCHING;

    while (state < LOCALISATION_FAILED &&
           strcmp(name, localisation_state_name(state)) != 0) {
        state++;
    }
    return state;
}

enum err_code localisations_insert(struct tx *tx, int64_t number, int runs_min,
                                   struct err *err)
{
    return tx_run(tx, err, "INSERT INTO localisation (job, runs_min) VALUES (?, ?)",
                  number, runs_min);
}

enum err_code localisations_get(struct tx *tx, const char *job,
                                struct localisation *ret_localisation, struct err *err)
{
    struct localisation *l = ret_localisation;
    struct query q;
    bool found;

    *l = (struct localisation){ 0 };
    query_begin(&q, tx,
                "SELECT l.state, l.runs_min, l.reason, l.ended_ms, l.search, l.difference"
                " FROM localisation l JOIN job j ON j.number = l.job WHERE j.id = ?",
                job);
    found = query_step(&q);
    if (found) {
        l->state = parse_state(query_borrow_text(&q));
        query_take(&q, &l->runs_min, l->reason, &l->ended_ms);
        l->search = query_copy_text(&q);
        l->difference = query_copy_text(&q);
    }
    if (query_end(&q, err) != ERR_OK) {
        localisation_release(l);
        return err->code;
    }
    return found ? ERR_OK : err_set(err, ERR_NOT_FOUND, "job %s does not localise", job);
}

enum err_code localisations_each_run(struct tx *tx, const char *job, int item,
                                     const char *after, int limit,
                                     void (*visit)(void *arg, const char *run), void *arg,
                                     struct err *err)
{
    struct query q;
    char id[ID_SIZE];

    query_begin(&q, tx,
                "SELECT r.id FROM run r JOIN job j ON j.number = r.job WHERE j.id = ?"
                " AND r.item = ? AND r.id > ? AND r.outcome = 'completed'"
                " ORDER BY r.id LIMIT ?",
                job, item, after, limit);
    while (query_step(&q)) {
        query_take_text(&q, id, sizeof id);
        visit(arg, id);
    }
    return query_end(&q, err);
}

enum err_code localisations_count_digests(struct tx *tx, const char *job, int item,
                                          int64_t *ret_digests, struct err *err)
{
    return tx_fetch_int(tx, ret_digests, err,
                        "SELECT count(DISTINCT r.digest) FROM run r"
                        " JOIN job j ON j.number = r.job WHERE j.id = ? AND r.item = ?"
                        " AND r.outcome = 'completed'",
                        job, item);
}

/* The number of JOB, which localises and is open.  ERR_CONFLICT: it is not. */
static enum err_code find_open(struct tx *tx, const char *job, int64_t *ret_number,
                               struct err *err)
{
    *ret_number = 0;
    if (tx_fetch_int(tx, ret_number, err,
                     "SELECT j.number FROM job j JOIN localisation l ON l.job = j.number"
                     " WHERE j.id = ? AND l.ended_ms IS NULL"
                     " AND j.state IN ('queued', 'running')",
                     job) != ERR_OK) {
        return err->code;
    }
    return *ret_number
               ? ERR_OK
               : err_set(err, ERR_CONFLICT, "job %s is not an open localisation", job);
}

enum err_code localisations_capture(struct tx *tx,
                                    const struct localisations_found *found,
                                    struct err *err)
{
    char options[RUN_OPTIONS_SIZE];
    int64_t number;

    if (find_open(tx, found->job, &number, err) != ERR_OK) {
        return err->code;
    }
    if (tx_run(tx, err,
               "UPDATE localisation SET state = 'capturing', reason = ?, search = ?"
               " WHERE job = ?",
               found->reason, found->search, number) != ERR_OK) {
        return err->code;
    }
    run_options_write(found->options, options);
    if (tx_run(tx, err, "UPDATE job_item SET options = ? WHERE job = ? AND seq = ?",
               options, number, LOCALISATION_CAPTURE) != ERR_OK ||
        jobs_give_up(tx, number, LOCALISATION_SEARCH, found->reason, found->now_ms,
                     err) != ERR_OK) {
        return err->code;
    }
    return jobs_add_event(tx, number, found->now_ms, err);
}

enum err_code localisations_conclude(struct tx *tx, const struct localisations_end *end,
                                     struct err *err)
{
    int64_t number;

    if (find_open(tx, end->job, &number, err) != ERR_OK) {
        return err->code;
    }
    if (tx_run(tx, err,
               "UPDATE localisation SET state = ?, reason = ?, ended_ms = ?,"
               " search = ifnull(?, search), difference = ? WHERE job = ?",
               localisation_state_name(end->state), end->reason, end->now_ms, end->search,
               end->difference, number) != ERR_OK) {
        return err->code;
    }
    for (int seq = 0; seq < LOCALISATION_ITEMS; seq++) {
        if (jobs_give_up(tx, number, seq, end->reason, end->now_ms, err) != ERR_OK) {
            return err->code;
        }
    }
    if (jobs_finish_if_done(tx, number, end->now_ms, err) != ERR_OK ||
        captures_drop(tx, number, end->runs, err) != ERR_OK) {
        return err->code;
    }
    return jobs_add_event(tx, number, end->now_ms, err);
}
