#include "db/dissent/cell_devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/jobs/options.h"
#include "db/cases/challenge_counts.h"
#include "db/dissent/beside_others.h"
#include "db/dissent/device_states.h"
#include "db/tx.h"

struct cell_device_texts {
    char device[CASE_TITLE_SIZE], host[CASE_TITLE_SIZE], options[RUN_OPTIONS_SIZE];
    char state[DEVICE_STATE_SIZE];
    char mode[DIGEST_TEXT_SIZE];
};

/* A device varied where its runs gave more than one digest: then it has none.  Its last
 * digest is the smallest of those of its latest end; the latest end of any other digest
 * is when it varied last (0015-varied.sql).  While it has one digest, that is its mode.
 */
static enum err_code fold_runs(struct tx *tx, int64_t cell,
                               const struct device_runs *runs, struct err *err)
{
    bool varied = runs->digest_count != 1;

    return tx_run(
        tx, err,
        "INSERT INTO cell_device (cell, device, options, state, runs, digest, last_ms,"
        " last_digest, varied_ms, iterations, first_ms, first_run, last_run, mode,"
        " mode_runs) VALUES (?1, ?2, ?3, ?4, ?5, iif(?6, NULL, ?7), ?8, ?7,"
        " iif(?6, ?8, 0), ?9, ?10, ?11, ?12, iif(?6, NULL, ?7), iif(?6, 0, ?5))"
        " ON CONFLICT (cell, device, options, state) DO UPDATE SET"
        " runs = runs + excluded.runs,"
        " digest = iif(digest = excluded.digest, digest, NULL),"
        " varied_ms = max(varied_ms, excluded.varied_ms,"
        " iif(last_digest = excluded.last_digest, 0, min(last_ms, excluded.last_ms))),"
        " last_digest = iif((excluded.last_ms, last_digest) > (last_ms,"
        " excluded.last_digest), excluded.last_digest, last_digest),"
        " last_ms = max(last_ms, excluded.last_ms),"
        " iterations = iterations + excluded.iterations,"
        " first_ms = min(first_ms, excluded.first_ms),"
        " first_run = min(first_run, excluded.first_run),"
        " last_run = max(last_run, excluded.last_run),"
        " mode_runs = iif(digest = excluded.digest, runs + excluded.runs, mode_runs)",
        cell, runs->device, runs->options, runs->state, runs->runs, varied, runs->digest,
        runs->last_ms, runs->iterations, runs->first_ms, runs->first_run, runs->last_run);
}

static enum err_code fold_digest(struct tx *tx, int64_t cell,
                                 const struct device_runs *runs,
                                 const struct run_digest *digest, struct err *err)
{
    return tx_run(
        tx, err,
        "INSERT INTO cell_device_digest (cell, device, options, state, digest, runs,"
        " iterations, only_runs) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (cell, device, options, state, digest) DO UPDATE SET"
        " runs = runs + excluded.runs, iterations = iterations + excluded.iterations,"
        " only_runs = only_runs + excluded.only_runs",
        cell, runs->device, runs->options, runs->state, digest->digest, runs->runs,
        digest->iterations, runs->digest_count == 1 ? runs->runs : 0);
}

/* Of a device of several digests.  Counts only grow, so comparing at each growth finds
 * the greatest whatever the order. */
static enum err_code fold_mode(struct tx *tx, int64_t cell,
                               const struct device_runs *runs, struct err *err)
{
    const char *digest = runs->digests[0].digest;
    int64_t alone = 0;

    if (tx_fetch_int(tx, &alone, err,
                     "SELECT only_runs FROM cell_device_digest WHERE cell = ? AND"
                     " device = ? AND options = ? AND state = ? AND digest = ?",
                     cell, runs->device, runs->options, runs->state, digest) != ERR_OK) {
        return err->code;
    }
    return tx_run(tx, err,
                  "UPDATE cell_device SET mode = ?4, mode_runs = ?5 WHERE cell = ?1"
                  " AND device = ?2 AND options = ?3 AND state = ?6"
                  " AND (mode IS NULL OR mode = ?4"
                  " OR ?5 > mode_runs OR (?5 = mode_runs AND ?4 < mode))",
                  cell, runs->device, runs->options, digest, alone, runs->state);
}

/* After its row was made or counted up. */
static enum err_code look_at(struct tx *tx, int64_t cell, const struct device_runs *runs,
                             struct device_effect *ret_effect, bool *ret_varied,
                             struct err *err)
{
    int64_t known = 0, rows = 0;

    *ret_effect = (struct device_effect){ .varied_ms = 0 };
    *ret_varied = false;
    if (tx_fetch(tx, TX_TARGETS(&known, &ret_effect->varied_ms, ret_varied), err,
                 "SELECT runs, varied_ms, digest IS NULL FROM cell_device WHERE cell = ?"
                 " AND device = ? AND options = ? AND state = ?",
                 cell, runs->device, runs->options, runs->state) != ERR_OK) {
        return err->code;
    }
    if (known != runs->runs) {
        return ERR_OK;
    }
    if (tx_fetch_int(tx, &rows, err,
                     "SELECT count(*) FROM cell_device WHERE cell = ? AND device = ?",
                     cell, runs->device) != ERR_OK) {
        return err->code;
    }
    ret_effect->is_first = rows == 1;
    return ERR_OK;
}

/* What asks with RETURNING makes a table at each write: one that reads costs less. */
enum err_code cell_devices_fold(struct tx *tx, int64_t cell,
                                const struct device_runs *runs,
                                struct device_effect *ret_effect, struct err *err)
{
    bool varied;

    if (fold_runs(tx, cell, runs, err) != ERR_OK ||
        look_at(tx, cell, runs, ret_effect, &varied, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < runs->digest_count; i++) {
        if (fold_digest(tx, cell, runs, &runs->digests[i], err) != ERR_OK) {
            return err->code;
        }
    }
    return varied && runs->digest_count == 1 ? fold_mode(tx, cell, runs, err) : ERR_OK;
}

static void take_row(struct query *q, struct cell_devices *devices)
{
    int n = devices->count;
    struct cell_device_texts *texts;
    struct dissent_row *row;

    devices->rows = xgrow(devices->rows, n, sizeof *devices->rows);
    devices->texts = xgrow(devices->texts, n, sizeof *devices->texts);
    row = &devices->rows[n];
    texts = &devices->texts[n];
    *row = (struct dissent_row){ .runs = 0 };
    query_take(q, texts->device, texts->host, texts->options, texts->state, &row->runs,
               &row->iterations, &row->varied, texts->mode, &row->mode_runs, &row->past);
    devices->count++;
}

static enum err_code load_rows(struct tx *tx, int64_t cell, struct cell_devices *devices,
                               struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT c.device, ifnull(d.host, c.device), c.options, c.state,"
                " c.runs, c.iterations, c.digest IS NULL, c.mode, c.mode_runs,"
                " c.state <> " DEVICE_STATE_NOW("c.device") " FROM cell_device c LEFT JOIN device d ON d.id = c.device"
                " WHERE c.cell = ? ORDER BY c.options, c.state, c.device",
                cell);
    while (query_step(&q)) {
        take_row(&q, devices);
    }
    for (int i = 0; i < devices->count; i++) {
        devices->rows[i].device = devices->texts[i].device;
        devices->rows[i].host = devices->texts[i].host;
        devices->rows[i].options = devices->texts[i].options;
        devices->rows[i].state = devices->texts[i].state;
        devices->rows[i].mode = devices->texts[i].mode;
    }
    return query_end(&q, err);
}

static enum err_code look_up(struct tx *tx, int64_t cell, struct dissent_row *row,
                             struct err *err)
{
    if (row->majority_runs >= 0) {
        return ERR_OK;
    }
    row->majority_runs = 0;
    return tx_fetch_int(tx, &row->majority_runs, err,
                        "SELECT only_runs FROM cell_device_digest WHERE cell = ?"
                        " AND device = ? AND options = ? AND state = ? AND digest = ?",
                        cell, row->device, row->options, row->state, row->majority);
}

enum err_code cell_devices_drop_wrong(struct tx *tx, int64_t cell,
                                      struct dissent_row *rows, int count,
                                      struct err *err)
{
    for (int i = 0; i < count; i++) {
        struct dissent_row *row = &rows[i];
        const struct dissent_row *last = row - 1;
        int64_t wrong = 0;

        if (i > 0 && dissent_order_conditions(row, last) == 0) {
            row->majority = last->majority ? row->majority : NULL;
        } else if (row->majority &&
                   tx_fetch_int(tx, &wrong, err,
                                "SELECT checked IS 'failed' FROM cell_digest"
                                " WHERE cell = ? AND digest = ?",
                                cell, row->majority) != ERR_OK) {
            return err->code;
        }
        row->majority = wrong ? NULL : row->majority;
        row->majority_runs = row->majority ? row->majority_runs : 0;
    }
    return ERR_OK;
}

enum err_code cell_devices_load(struct tx *tx, int64_t cell,
                                struct cell_devices *ret_devices, struct err *err)
{
    struct cell_devices *devices = ret_devices;
    enum err_code code;

    *devices = (struct cell_devices){ .rows = NULL };
    code = load_rows(tx, cell, devices, err);
    if (code == ERR_OK) {
        dissent_majorities(devices->rows, devices->count);
        code = cell_devices_drop_wrong(tx, cell, devices->rows, devices->count, err);
    }
    for (int i = 0; i < devices->count && code == ERR_OK; i++) {
        code = look_up(tx, cell, &devices->rows[i], err);
    }
    if (code != ERR_OK) {
        cell_devices_release(devices);
        return code;
    }
    devices->dissent = dissent_judge(devices->rows, devices->count);
    return ERR_OK;
}

void cell_devices_release(struct cell_devices *devices)
{
    free(devices->rows);
    free(devices->texts);
    *devices = (struct cell_devices){ .rows = NULL };
}

static bool is_named(const struct cell_devices *devices, const char *device)
{
    for (int i = 0; i < devices->count; i++) {
        if (devices->rows[i].mark == DISSENT_DISSENTS &&
            strcmp(devices->rows[i].device, device) == 0) {
            return true;
        }
    }
    return false;
}

/* What a named device answered says nothing of the others. */
static enum err_code count_challenges(struct tx *tx, int64_t cell,
                                      const struct cell_devices *devices,
                                      struct challenges *ret_sum, struct err *err)
{
    struct challenges c;
    struct query q;
    enum err_code code = ERR_OK;

    query_begin(&q, tx,
                "SELECT DISTINCT device FROM run WHERE challenged = ? ORDER BY device",
                cell);
    while (code == ERR_OK && query_step(&q)) {
        char device[CASE_TITLE_SIZE];

        query_take(&q, device);
        if (is_named(devices, device)) {
            continue;
        }
        code = challenges_count(tx, cell, device, &c, err);
        ret_sum->passed += c.passed;
        ret_sum->repeated += c.repeated;
        ret_sum->unchanged += c.unchanged;
        ret_sum->failed += c.failed;
        if (c.run[0] && (!ret_sum->run[0] || strcmp(c.run, ret_sum->run) < 0)) {
            copy_text(ret_sum->run, sizeof ret_sum->run, c.run);
        }
    }
    return query_close(&q, code, err);
}

enum err_code cell_devices_agreement(struct tx *tx, int64_t cell, const char *conditions,
                                     struct agreement *ret_agreement, struct err *err)
{
    struct agreement *a = ret_agreement;
    struct cell_devices devices;
    const struct dissent *d = &devices.dissent;
    enum err_code code = cell_devices_load(tx, cell, &devices, err);

    *a = (struct agreement){ .state = DISSENT_NONE };
    if (code != ERR_OK) {
        return code;
    }
    a->state = d->state;
    copy_text(a->words, sizeof a->words, d->words);
    a->devices = d->devices;
    a->dissenters = d->dissenters;
    a->agreeing = d->agreeing;
    a->one_digest = d->digest[0] && d->agreeing + d->dissenters == d->devices;
    a->runs = d->agreeing_runs;
    a->iterations = d->agreeing_iterations;
    for (int i = 0; i < devices.count; i++) {
        const struct dissent_row *row = &devices.rows[i];

        a->own_runs += conditions && row->mark != DISSENT_DISSENTS &&
                               strcmp(row->options, conditions) == 0
                           ? row->runs
                           : 0;
    }
    if (d->digest[0]) {
        code = tx_fetch(tx, TX_TARGETS(&a->passed, &a->failed), err,
                        "SELECT ifnull(checked = 'passed', 0), ifnull(checked = 'failed',"
                        " 0) FROM cell_digest WHERE cell = ? AND digest = ?",
                        cell, d->digest);
    }
    if (code == ERR_OK && a->dissenters > 0) {
        code = beside_others_count(tx, cell, devices.rows, devices.count,
                                   &a->beside_others, err);
    }
    if (code == ERR_OK && a->dissenters > 0) {
        code = count_challenges(tx, cell, &devices, &a->challenges, err);
    }
    cell_devices_release(&devices);
    return code;
}

static enum err_code tell(struct tx *tx, int64_t cell, const char *device,
                          const char *state, const char *run, int64_t now_ms,
                          struct err *err)
{
    return tx_run(
        tx, err,
        "INSERT INTO event (at_ms, kind, data) SELECT ?1, 'dissent',"
        " json_object('device', ?2, 'state', ?3, 'cell', c.id, 'workload',"
        " k.workload, 'variant', k.variant, 'size', k.size, 'environment', e.id,"
        " 'run', ?4, 'reason', c.reason) FROM cell c"
        " JOIN case_key k ON k.number = c.case_key"
        " JOIN environment e ON e.number = c.environment WHERE c.id = ?5",
        now_ms, device, state, or_null(run), cell);
}

static enum err_code name(struct tx *tx, int64_t cell, const char *device,
                          const char *run, int64_t now_ms, struct err *err)
{
    int64_t is_new = 0;

    if (tx_fetch_int(tx, &is_new, err,
                     "INSERT OR IGNORE INTO cell_dissenter (cell, device, since_ms)"
                     " VALUES (?, ?, ?) RETURNING 1",
                     cell, device, now_ms) != ERR_OK) {
        return err->code;
    }
    return is_new ? tell(tx, cell, device, "named", run, now_ms, err) : ERR_OK;
}

/* One at a time: telling it writes. */
static enum err_code clear_one(struct tx *tx, int64_t cell,
                               const struct cell_devices *devices, const char *run,
                               int64_t now_ms, bool *ret_more, struct err *err)
{
    char device[CASE_TITLE_SIZE] = "";
    struct query q;

    query_begin(&q, tx, "SELECT device FROM cell_dissenter WHERE cell = ?", cell);
    while (!device[0] && query_step(&q)) {
        const char *named = query_borrow_text(&q);

        if (!is_named(devices, named)) {
            copy_text(device, sizeof device, named);
        }
    }
    *ret_more = device[0];
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    if (!device[0]) {
        return ERR_OK;
    }
    if (tx_run(tx, err, "DELETE FROM cell_dissenter WHERE cell = ? AND device = ?", cell,
               device) != ERR_OK) {
        return err->code;
    }
    return tell(tx, cell, device, "cleared", run, now_ms, err);
}

enum err_code cell_dissenters_store(struct tx *tx, int64_t cell, const char *run,
                                    int64_t now_ms, struct err *err)
{
    struct cell_devices devices;
    enum err_code code = cell_devices_load(tx, cell, &devices, err);
    bool more = true;

    while (code == ERR_OK && more) {
        code = clear_one(tx, cell, &devices, run, now_ms, &more, err);
    }
    for (int i = 0; i < devices.count && code == ERR_OK; i++) {
        if (devices.rows[i].mark == DISSENT_DISSENTS) {
            code = name(tx, cell, devices.rows[i].device, run, now_ms, err);
        }
    }
    cell_devices_release(&devices);
    return code;
}
