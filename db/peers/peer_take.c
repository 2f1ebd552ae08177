#include "db/peers/peer_take.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "db/case_keys.h"
#include "db/cells_judge.h"
#include "db/dissent/device_states.h"
#include "db/dissent/unsettled.h"
#include "db/fleet.h"
#include "db/runs.h"
#include "db/tx.h"
#include "db/upkeep/summaries.h"

enum { SEEN_STEP_MS = 60000 }; /* how exact the last sight of a peer's device is */

struct taking {
    struct tx *tx;
    struct peer_run *run;
    int64_t origin;
    const char *peer, *service;
    int64_t now_ms;
    int64_t job, item_case, run_case; /* numbers */
};

/* Whether there is a run with its id, and whose it is. */
static enum err_code find_run(struct taking *t, bool *ret_known, struct err *err)
{
    const char *id = t->run->run.id;
    char service[PEER_SERVICE_SIZE] = "";
    bool folded = false;

    *ret_known = false;
    if (tx_fetch(t->tx, TX_TARGETS(ret_known, service), err,
                 "SELECT 1, o.service FROM run r LEFT JOIN peer_job p ON p.job = r.job"
                 " LEFT JOIN peer_origin o ON o.number = p.origin WHERE r.id = ?",
                 id) != ERR_OK ||
        tx_fetch(t->tx, TX_TARGETS(&folded), err,
                 "SELECT EXISTS (SELECT 1 FROM run_summary"
                 " WHERE last_run >= ?1 AND first_run <= ?1)",
                 id) != ERR_OK) {
        return err->code;
    }
    if (*ret_known && strcmp(service, t->service) != 0) {
        peer_run_refuse(t->run, PEER_OTHER_RUN, "run %s is here, %s%s", id,
                        service[0] ? "of service " : "and was measured here", service);
        return ERR_OK;
    }
    if (!*ret_known && folded) {
        struct run_summary *s = xcalloc(1, sizeof *s);
        enum err_code code = summaries_find(t->tx, id, s, err);

        free(s);
        *ret_known = code == ERR_OK;
        return code == ERR_NOT_FOUND ? ERR_OK : code;
    }
    return ERR_OK;
}

/* A device that our own agents saw is as they say. */
static enum err_code store_device(struct taking *t, struct err *err)
{
    const struct device *device = &t->run->device;
    int64_t seen_ms = t->run->run.finished_ms;

    if (tx_run(t->tx, err,
               "INSERT INTO host (name, boot_id, first_seen_ms, last_seen_ms)"
               " VALUES (?1, ?2, ?3, ?3) ON CONFLICT (name) DO UPDATE SET"
               " boot_id = excluded.boot_id, last_seen_ms = excluded.last_seen_ms"
               " WHERE last_seen_ms < excluded.last_seen_ms - ?4",
               device->host, t->run->boot_id, seen_ms, SEEN_STEP_MS) != ERR_OK) {
        return err->code;
    }
    return tx_run(t->tx, err,
                  "INSERT INTO device (id, host, backend, model, attributes,"
                  " first_seen_ms, last_seen_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)"
                  " ON CONFLICT (id) DO UPDATE SET host = excluded.host,"
                  " model = excluded.model, attributes = excluded.attributes,"
                  " last_seen_ms = excluded.last_seen_ms"
                  " WHERE last_seen_ms < excluded.last_seen_ms - ?7"
                  " AND substr(device.host, 1, length(?8) + 1) = ?8 || '/'",
                  device->id, device->host, device->backend, device->model,
                  t->run->attributes, seen_ms, SEEN_STEP_MS, t->peer);
}

/* A state holds for all later runs of its device, up to the next one: one that is new
 * here begins behind the runs that are here.  Of a device that somebody else saw, too,
 * only what is newer is heard. */
static enum err_code store_state(struct taking *t, struct err *err)
{
    struct peer_run *run = t->run;
    char here[DEVICE_STATE_SIZE], since[ID_SIZE] = "";
    bool is_news = false;

    if (device_state_load(t->tx, run->run.device, run->run.id, here, err) != ERR_OK) {
        return err->code;
    }
    if (strcmp(here, run->state) == 0) {
        return ERR_OK;
    }
    if (tx_fetch(t->tx, TX_TARGETS(since, &is_news), err,
                 "WITH told (since) AS (SELECT max(since) FROM device_state"
                 " WHERE device = ?1) SELECT max(?2, ifnull(told.since, ''),"
                 " ifnull((SELECT max(id) FROM run WHERE device = ?1), ''),"
                 " ifnull((SELECT max(s.last_run) FROM run_summary s JOIN job_item i"
                 " ON i.job = s.job AND i.seq = s.item WHERE s.last_run > ?2"
                 " AND i.device = ?1), '')),"
                 " told.since IS NULL OR told.since < ?2 OR EXISTS (SELECT 1 FROM device"
                 " WHERE id = ?1 AND substr(host, 1, length(?3) + 1) = ?3 || '/')"
                 " FROM told",
                 run->run.device, run->state_since, t->peer) != ERR_OK) {
        return err->code;
    }
    if (!is_news || strcmp(since, run->run.id) >= 0) {
        peer_run_refuse(
            run, PEER_OTHER_STATE, "its device was in state %.90s, and here in %.90s",
            run->state[0] ? run->state : "unknown", here[0] ? here : "unknown");
        return ERR_OK;
    }
    return tx_run(t->tx, err,
                  "INSERT INTO device_state (device, since, state) VALUES (?1, ?2, ?3)"
                  " ON CONFLICT (device, since) DO UPDATE SET state = excluded.state",
                  run->run.device, since, run->state);
}

/* What is known of a case here says what it is; a peer adds cases, it changes none. */
static enum err_code store_case(struct taking *t, uint64_t seed, bool is_challenge,
                                int64_t *ret_number, struct err *err)
{
    const struct case_declaration declaration = {
        .is_control = t->run->is_control,
        .kind = t->run->kind,
        .no_control = t->run->no_control,
        .unseeded = t->run->unseeded && !is_challenge,
        .is_challenge = is_challenge,
    };
    struct case_key key = t->run->run.key;
    bool differs = false, declared;

    key.seed = seed;
    if (!is_challenge &&
        tx_fetch(t->tx, TX_TARGETS(&differs), err,
                 "SELECT is_control <> ?7 OR kind <> ?8 OR no_control <> ?9"
                 " OR unseeded <> ?10 FROM case_key WHERE workload = ?1 AND version = ?2"
                 " AND variant = ?3 AND size = ?4 AND dtype = ?5 AND seed = ?6"
                 " AND NOT challenge",
                 key.workload, key.version, key.variant, key.size, key.dtype,
                 (int64_t)key.seed, declaration.is_control, declaration.kind,
                 declaration.no_control, declaration.unseeded) != ERR_OK) {
        return err->code;
    }
    if (differs) {
        peer_run_refuse(t->run, PEER_OTHER_CASE,
                        "%.80s %.60s is declared otherwise here (its control, or what it "
                        "is exposed to)",
                        key.workload, key.variant);
        return ERR_OK;
    }
    if (case_keys_declare(t->tx, &key, &declaration, ret_number, &declared, err) !=
        ERR_OK) {
        return err->code;
    }
    return declared ? cells_judge_siblings(t->tx, *ret_number, t->now_ms, err) : ERR_OK;
}

/* It is over: none of it runs here. */
static enum err_code store_job(struct taking *t, struct err *err)
{
    const struct run_record *r = &t->run->run;
    int64_t origin = 0;
    bool known = false;

    if (tx_fetch(t->tx, TX_TARGETS(&known, &t->job, &origin), err,
                 "SELECT 1, j.number, o.service = ?2 FROM job j"
                 " LEFT JOIN peer_job p ON p.job = j.number"
                 " LEFT JOIN peer_origin o ON o.number = p.origin WHERE j.id = ?1",
                 r->job, t->service) != ERR_OK) {
        return err->code;
    }
    if (known) {
        if (!origin) {
            peer_run_refuse(t->run, PEER_OTHER_RUN, "job %s is of another origin here",
                            r->job);
        }
        return ERR_OK;
    }
    return tx_fetch_int(
               t->tx, &t->job, err,
               "INSERT INTO job (id, state, priority, survey, stop_when_varies,"
               " iterations, timeout_ms, created_ms, finished_ms, runs_total,"
               " items_open, request) VALUES (?1, 'finished', 'background', 0, 0,"
               " ?2, 0, ?3, ?3, 0, 0, json_object('peer', ?4)) RETURNING number",
               r->job, t->run->asked, t->run->job_created_ms, t->peer) == ERR_OK
               ? tx_run(t->tx, err, "INSERT INTO peer_job (job, origin) VALUES (?, ?)",
                        t->job, t->origin)
               : err->code;
}

/* It is given up from the start, and so never open. */
static enum err_code store_item(struct taking *t, struct err *err)
{
    const struct run_record *r = &t->run->run;
    char reason[CASE_TITLE_SIZE];
    bool known = false, same = false;

    if (tx_fetch(t->tx, TX_TARGETS(&known, &same), err,
                 "SELECT 1, case_key = ? AND device = ? AND stack = ? AND options = ?"
                 " AND subject = ? AND subject_name = ? FROM job_item"
                 " WHERE job = ? AND seq = ?",
                 t->item_case, r->device, r->stack, t->run->options,
                 subject_word(r->subject), r->subject_name, t->job, r->item) != ERR_OK) {
        return err->code;
    }
    if (known) {
        if (!same) {
            peer_run_refuse(t->run, PEER_OTHER_ITEM,
                            "item %d of job %s is another one in another run of it",
                            r->item, r->job);
        }
        return ERR_OK;
    }
    snprintf(reason, sizeof reason, "peer %s measures it", t->peer);
    return tx_run(t->tx, err,
                  "INSERT INTO job_item (job, seq, case_key, device, stack, subject,"
                  " subject_name, options, runs_wanted, given_up_reason)"
                  " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, ?)",
                  t->job, r->item, t->item_case, r->device, r->stack,
                  subject_word(r->subject), r->subject_name, t->run->options, reason);
}

static enum err_code store_intent(struct taking *t, struct err *err)
{
    const struct run_record *r = &t->run->run;

    return tx_run(t->tx, err,
                  "INSERT INTO run (id, job, item, case_key, challenge, device,"
                  " intent_ms, asked) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                  r->id, t->job, r->item, t->run_case, r->is_challenge, r->device,
                  r->intent_ms, r->check.state != CHECK_NONE);
}

/* The first run of a cell says whose computation it is of. */
static enum err_code compare_subject(struct taking *t, int64_t cell, struct err *err)
{
    const struct run_record *r = &t->run->run;
    bool differs = false;

    if (tx_fetch(t->tx, TX_TARGETS(&differs), err,
                 "SELECT subject <> ? OR subject_name <> ? FROM cell WHERE id = ?",
                 subject_word(r->subject), r->subject_name, cell) != ERR_OK) {
        return err->code;
    }
    if (differs) {
        peer_run_refuse(t->run, PEER_OTHER_CASE,
                        "it says that it is of %s %.60s, and its cell is of another",
                        subject_word(r->subject), r->subject_name);
    }
    return ERR_OK;
}

static enum err_code finish(struct taking *t, struct err *err)
{
    const struct peer_run *run = t->run;
    const struct run_result result = {
        .run = &run->run,
        .digests = run->digests,
        .digest_count = run->digest_count,
        .environment_json = run->environment,
        .environment_title = run->environment_title,
    };
    struct run_effect effect;

    if (store_intent(t, err) != ERR_OK ||
        runs_finish(t->tx, &result, &effect, err) != ERR_OK) {
        return err->code;
    }
    return effect.cell ? compare_subject(t, effect.cell, err) : ERR_OK;
}

typedef enum err_code (*step_fn)(struct taking *t, struct err *err);

static enum err_code store_cases(struct taking *t, struct err *err)
{
    const struct run_record *r = &t->run->run;

    if (store_case(t, t->run->item_seed, false, &t->item_case, err) != ERR_OK) {
        return err->code;
    }
    t->run_case = t->item_case;
    return r->is_challenge ? store_case(t, r->key.seed, true, &t->run_case, err) : ERR_OK;
}

static enum err_code take_steps(struct taking *t, struct err *err)
{
    static const step_fn steps[] = { store_device, store_state, store_cases,
                                     store_job,    store_item,  finish };

    for (int i = 0; i < COUNT_OF(steps) && t->run->refusal == PEER_TAKEN; i++) {
        if (steps[i](t, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

/* What the database refuses of one run is no error of the page. */
static enum err_code settle(struct taking *t, enum err_code code,
                            struct unsettled_mark *mark, struct err *err)
{
    if (code == ERR_INVALID || code == ERR_CONFLICT) {
        peer_run_refuse(t->run, PEER_CONTRADICTORY, "%.200s", err->message);
        code = ERR_OK;
    }
    if (code != ERR_OK) {
        return code; /* the page is rolled back */
    }
    if (t->run->refusal != PEER_TAKEN) {
        if (tx_run(t->tx, err, "ROLLBACK TO peer_run") != ERR_OK) {
            return err->code;
        }
        unsettled_back(t->tx, mark);
    }
    return tx_run(t->tx, err, "RELEASE peer_run");
}

enum err_code peer_take(struct tx *tx, struct peer_run *run, int64_t origin,
                        const char *peer, const char *service, int64_t now_ms,
                        bool *ret_known, struct err *err)
{
    struct taking t = { .tx = tx,
                        .run = run,
                        .origin = origin,
                        .peer = peer,
                        .service = service,
                        .now_ms = now_ms };
    struct err failure = { .code = ERR_OK };
    struct unsettled_mark mark;
    enum err_code code;

    if (find_run(&t, ret_known, err) != ERR_OK) {
        return err->code;
    }
    if (*ret_known || run->refusal != PEER_TAKEN) {
        return ERR_OK;
    }
    if (tx_run(tx, err, "SAVEPOINT peer_run") != ERR_OK) {
        return err->code;
    }
    unsettled_mark(tx, &mark);
    take_steps(&t, &failure);
    *err = failure;
    code = settle(&t, failure.code, &mark, err);
    unsettled_release(&mark);
    return code;
}
