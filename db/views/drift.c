#include "db/views/drift.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/case_keys.h"
#include "db/cells_rows.h"
#include "db/fleet.h"
#include "db/tx.h"
#include "db/views/classes.h"

enum { LATEST_RUNS = 20 }; /* whose algorithms are compared */

static void release_end(struct drift_end *end)
{
    free(end->json);
    free(end->places);
}

void drift_release(struct drift *drift)
{
    release_end(&drift->from);
    release_end(&drift->to);
    free(drift->hosts);
    free(drift->cases);
    *drift = (struct drift){ .case_count = 0 };
}

/* The ends. */

static enum err_code read_end(struct tx *tx, const char *id, struct drift_end *end,
                              struct err *err)
{
    struct query q;

    if (environments_get(tx, id, &end->environment, &end->json, err) != ERR_OK) {
        return err->code;
    }
    query_begin(&q, tx,
                "SELECT x.device, x.stack FROM device_environment x"
                " JOIN device_stack_environment n ON n.device = x.device"
                " AND n.stack = x.stack AND n.environment = x.environment"
                " WHERE x.environment = ? ORDER BY x.device, x.stack",
                end->environment.number);
    while (query_step(&q)) {
        struct drift_place *place;

        end->places = xgrow(end->places, end->place_count, sizeof *end->places);
        place = &end->places[end->place_count++];
        query_take(&q, place->device, place->stack);
    }
    return query_end(&q, err);
}

static enum err_code read_hosts(struct tx *tx, struct drift *drift, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT DISTINCT d.host FROM device_environment a"
                " JOIN device_environment b ON b.device = a.device AND b.stack = a.stack"
                " JOIN device d ON d.id = a.device"
                " WHERE a.environment = ? AND b.environment = ?"
                " AND a.first_run < b.first_run ORDER BY d.host",
                drift->from.environment.number, drift->to.environment.number);
    while (query_step(&q)) {
        drift->hosts = xgrow(drift->hosts, drift->host_count, sizeof *drift->hosts);
        query_take_text(&q, drift->hosts[drift->host_count++], CASE_TITLE_SIZE);
    }
    return query_end(&q, err);
}

/* The cases. */

struct collecting {
    struct drift *drift;
    bool to;
    int64_t now_ms, stale_after_ms;
};

static void add_cell(void *arg, const struct class_cell *cell, const char *environment)
{
    const struct collecting *c = arg;
    struct drift *drift = c->drift;
    struct drift_case *x;
    struct drift_side *side;

    (void)environment;
    drift->cases = xgrow(drift->cases, drift->case_count, sizeof *drift->cases);
    x = &drift->cases[drift->case_count++];
    memset(x, 0, sizeof *x);
    x->key = cell->key;
    x->is_control = cell->is_control;
    x->subject = cell->subject;
    copy_text(x->subject_name, sizeof x->subject_name, cell->subject_name);
    side = c->to ? &x->to : &x->from;
    side->cell = cell->id;
    side->verdict = cell->verdict;
    side->damaged = cell->damaged;
    side->runs = cell->runs;
    side->distinct_digests = cell->distinct_digests;
    copy_text(side->digest, sizeof side->digest, cell->digest);
}

static int by_key(const void *a, const void *b)
{
    return classes_compare_keys(&((const struct drift_case *)a)->key,
                                &((const struct drift_case *)b)->key);
}

/* Two entries of a case, one of each environment, become one. */
static void pair_up(struct drift *drift)
{
    int count = 0;

    if (drift->case_count > 0) {
        qsort(drift->cases, (size_t)drift->case_count, sizeof *drift->cases, by_key);
    }
    for (int i = 0; i < drift->case_count; i++) {
        struct drift_case *x = &drift->cases[i];

        if (count > 0 && by_key(&drift->cases[count - 1], x) == 0) {
            struct drift_case *into = &drift->cases[count - 1];

            into->from = x->from.cell ? x->from : into->from;
            if (x->to.cell) {
                struct drift_side from = into->from;

                *into = *x;
                into->from = from;
            }
        } else {
            drift->cases[count++] = *x;
        }
    }
    drift->case_count = count;
}

static enum err_code read_cases(struct tx *tx, struct collecting *c, struct err *err)
{
    const struct classes_filter filter = { .subject = SUBJECT_COUNT };
    struct drift *drift = c->drift;

    c->to = false;
    if (classes_each_cell(tx, &filter, drift->from.environment.id, add_cell, c, err) !=
        ERR_OK) {
        return err->code;
    }
    c->to = true;
    if (classes_each_cell(tx, &filter, drift->to.environment.id, add_cell, c, err) !=
        ERR_OK) {
        return err->code;
    }
    pair_up(drift);
    return ERR_OK;
}

/* What only some cells need. */

static void name_algorithms(struct drift_side *side)
{
    if (side->algorithms > 1) {
        snprintf(side->algorithm, sizeof side->algorithm, "%d, chosen in each run",
                 side->algorithms);
    }
}

/* What was chosen anew in each run is no algorithm that another could replace. */
static enum err_code read_algorithm(struct tx *tx, struct drift_side *side,
                                    struct err *err)
{
    struct query q;

    if (side->runs == 0) {
        return ERR_OK;
    }
    query_begin(&q, tx,
                "SELECT count(DISTINCT algorithm), min(algorithm) FROM"
                " (SELECT algorithm FROM run WHERE cell = ? AND outcome = 'completed'"
                " ORDER BY id DESC LIMIT ?)",
                side->cell, LATEST_RUNS);
    if (query_step(&q)) {
        side->algorithms = (int)query_take_int(&q);
        query_take_text(&q, side->algorithm, sizeof side->algorithm);
    }
    name_algorithms(side);
    return query_end(&q, err);
}

static enum err_code read_times(struct tx *tx, struct drift_case *x, struct err *err)
{
    int64_t *counts = xcalloc((size_t)2 * TIMES_BUCKETS, sizeof *counts);
    enum err_code code = cells_times_stored(tx, x->from.cell, counts, err);

    if (code == ERR_OK) {
        code = cells_times_stored(tx, x->to.cell, counts + TIMES_BUCKETS, err);
    }
    if (code == ERR_OK) {
        x->from.times = times_quartiles(counts);
        x->to.times = times_quartiles(counts + TIMES_BUCKETS);
        x->shift = times_shift(counts + TIMES_BUCKETS, counts);
    }
    free(counts);
    return code;
}

static enum err_code read_contested(struct tx *tx, struct drift_case *x, struct err *err)
{
    int64_t siblings = 0;
    struct inputs inputs;

    if (tx_fetch_int(tx, &siblings, err,
                     "SELECT k.siblings FROM cell c JOIN case_key k"
                     " ON k.number = c.case_key WHERE c.id = ?",
                     x->to.cell ? x->to.cell : x->from.cell) != ERR_OK ||
        case_inputs_load(tx, siblings, &inputs, err) != ERR_OK) {
        return err->code;
    }
    x->from.contested = x->to.contested = inputs.contested;
    return ERR_OK;
}

static enum err_code read_stale(struct tx *tx, struct drift_side *side,
                                const struct collecting *c, struct err *err)
{
    int64_t last_ms = 0;
    int64_t vouched_ms = 0;

    if (side->verdict != VERDICT_REPRODUCIBLE) {
        return ERR_OK;
    }
    if (tx_fetch(tx, TX_TARGETS(&last_ms, &vouched_ms), err,
                 "SELECT last_completed_ms, vouched_ms FROM cell WHERE id = ?",
                 side->cell) != ERR_OK) {
        return err->code;
    }
    side->stale = verdict_at(side->verdict, last_ms, vouched_ms, c->now_ms,
                             c->stale_after_ms) == VERDICT_STALE;
    return ERR_OK;
}

static enum err_code read_details(struct tx *tx, const struct collecting *c,
                                  struct err *err)
{
    for (int i = 0; i < c->drift->case_count; i++) {
        struct drift_case *x = &c->drift->cases[i];

        if (read_algorithm(tx, &x->from, err) != ERR_OK ||
            read_algorithm(tx, &x->to, err) != ERR_OK ||
            read_times(tx, x, err) != ERR_OK || read_contested(tx, x, err) != ERR_OK ||
            read_stale(tx, &x->to, c, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

enum err_code drift_read(struct tx *tx, const char *from, const char *to, int64_t now_ms,
                         int64_t stale_after_ms, struct drift *ret_drift,
                         const char **ret_missing, struct err *err)
{
    struct collecting c = { .drift = ret_drift,
                            .now_ms = now_ms,
                            .stale_after_ms = stale_after_ms };

    *ret_drift = (struct drift){ .case_count = 0 };
    *ret_missing = from;
    if (read_end(tx, from, &ret_drift->from, err) != ERR_OK) {
        return err->code;
    }
    *ret_missing = to;
    if (read_end(tx, to, &ret_drift->to, err) != ERR_OK ||
        read_hosts(tx, ret_drift, err) != ERR_OK || read_cases(tx, &c, err) != ERR_OK ||
        read_details(tx, &c, err) != ERR_OK) {
        return err->code;
    }
    return ERR_OK;
}

/* Before and since a time. */

/* The runs of CELL on the devices of a host, from the time on or before it, the nearest
 * first; binds cell, time and host. */
#define RUNS_BEFORE                                                                      \
    "SELECT id, digest, algorithm, median_ns, circumstances FROM run WHERE cell = ?"     \
    " AND id < ? AND outcome = 'completed' AND device IN (SELECT id FROM device"         \
    " WHERE host = ?) ORDER BY id DESC LIMIT 200"
#define RUNS_SINCE                                                                       \
    "SELECT id, digest, algorithm, median_ns, circumstances FROM run WHERE cell = ?"     \
    " AND id >= ? AND outcome = 'completed' AND device IN (SELECT id FROM device"        \
    " WHERE host = ?) ORDER BY id LIMIT 200"
#define SUMS(runs)                                                                       \
    "SELECT count(DISTINCT r.id), count(DISTINCT ifnull(d.digest, r.digest)),"           \
    " min(ifnull(d.digest, r.digest)), count(DISTINCT r.algorithm), min(r.algorithm)"    \
    " FROM (" runs ") r LEFT JOIN run_digest d ON d.run = r.id"
#define TIMES(runs)                                                                      \
    "SELECT median_ns FROM (" runs ") WHERE median_ns > 0 AND circumstances IS NULL"

struct moment {
    const char *host;
    char first[ID_SIZE]; /* no run since then has a smaller id */
    int64_t at_ms;
};

static enum err_code sum_runs(struct tx *tx, const struct moment *m, bool since,
                              int64_t cell, struct drift_side *side, struct err *err)
{
    struct query q;

    if (since) {
        query_begin(&q, tx, SUMS(RUNS_SINCE), cell, m->first, m->host);
    } else {
        query_begin(&q, tx, SUMS(RUNS_BEFORE), cell, m->first, m->host);
    }
    if (query_step(&q)) {
        query_take(&q, &side->runs, &side->distinct_digests, side->digest,
                   &side->algorithms, side->algorithm);
    }
    name_algorithms(side);
    if (side->distinct_digests != 1) {
        side->digest[0] = '\0';
    }
    return query_end(&q, err);
}

static enum err_code count_times(struct tx *tx, const struct moment *m, bool since,
                                 int64_t cell, int64_t *counts, struct err *err)
{
    struct query q;

    if (since) {
        query_begin(&q, tx, TIMES(RUNS_SINCE), cell, m->first, m->host);
    } else {
        query_begin(&q, tx, TIMES(RUNS_BEFORE), cell, m->first, m->host);
    }
    while (query_step(&q)) {
        counts[times_bucket(query_take_int(&q))]++;
    }
    return query_end(&q, err);
}

/* What the history says of CELL at that time. */
static enum err_code read_past_verdict(struct tx *tx, const struct moment *m,
                                       int64_t cell, struct drift_side *side,
                                       struct err *err)
{
    struct query q;

    side->verdict = VERDICT_INCONCLUSIVE;
    query_begin(&q, tx,
                "SELECT verdict FROM cell_history WHERE cell = ? AND at_ms < ?"
                " ORDER BY at_ms DESC LIMIT 1",
                cell, m->at_ms);
    if (query_step(&q)) {
        side->verdict = cell_rows_take_verdict(&q);
    }
    return query_end(&q, err);
}

/* A cell is about all of its runs.  That it varies may be because what came since differs
 * from what was before, of which each has one digest. */
static enum err_code read_verdict_since(struct tx *tx, const struct moment *m,
                                        int64_t cell, enum verdict verdict,
                                        struct drift_side *side, struct err *err)
{
    int64_t failed = 0;

    side->verdict = verdict;
    if (side->distinct_digests > 1) {
        side->verdict = VERDICT_VARIES;
    } else if (verdict == VERDICT_VARIES) {
        side->verdict = VERDICT_INCONCLUSIVE;
    }
    if (tx_fetch_int(tx, &failed, err,
                     "SELECT count(*) FROM run WHERE cell = ? AND id >= ? AND outcome IN"
                     " ('timeout', 'crashed', 'out_of_memory', 'invalid') AND device IN"
                     " (SELECT id FROM device WHERE host = ?)",
                     cell, m->first, m->host) != ERR_OK) {
        return err->code;
    }
    if (failed > 0 && side->runs == 0) {
        side->verdict = VERDICT_FAILING;
        side->cell = cell;
    }
    return ERR_OK;
}

static enum err_code read_sides(struct tx *tx, const struct moment *m,
                                struct drift_case *x, struct err *err)
{
    int64_t *counts = xcalloc((size_t)2 * TIMES_BUCKETS, sizeof *counts);
    int64_t cell = x->to.cell;
    enum verdict verdict = x->to.verdict;
    enum err_code code;

    x->from = x->to = (struct drift_side){ .cell = 0 };
    code = sum_runs(tx, m, false, cell, &x->from, err);
    code = code == ERR_OK ? sum_runs(tx, m, true, cell, &x->to, err) : code;
    code = code == ERR_OK ? count_times(tx, m, false, cell, counts, err) : code;
    code = code == ERR_OK ? count_times(tx, m, true, cell, counts + TIMES_BUCKETS, err)
                          : code;
    code = code == ERR_OK ? read_past_verdict(tx, m, cell, &x->from, err) : code;
    x->from.cell = x->from.runs ? cell : 0;
    x->to.cell = x->to.runs ? cell : 0;
    code = code == ERR_OK ? read_verdict_since(tx, m, cell, verdict, &x->to, err) : code;
    x->from.times = times_quartiles(counts);
    x->to.times = times_quartiles(counts + TIMES_BUCKETS);
    x->shift = times_shift(counts + TIMES_BUCKETS, counts);
    free(counts);
    return code;
}

enum err_code drift_read_since(struct tx *tx, const char *environment, const char *host,
                               int64_t since_ms, struct drift *ret_drift, struct err *err)
{
    const struct classes_filter filter = { .subject = SUBJECT_COUNT };
    struct collecting c = { .drift = ret_drift, .to = true };
    struct moment m = { .host = host, .at_ms = since_ms };
    int count = 0;

    *ret_drift = (struct drift){ .since_ms = since_ms };
    copy_text(ret_drift->since_host, sizeof ret_drift->since_host, host);
    id_first(since_ms, m.first);
    if (environments_get(tx, environment, &ret_drift->from.environment,
                         &ret_drift->from.json, err) != ERR_OK ||
        read_end(tx, environment, &ret_drift->to, err) != ERR_OK ||
        classes_each_cell(tx, &filter, environment, add_cell, &c, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < ret_drift->case_count; i++) {
        struct drift_case *x = &ret_drift->cases[i];

        if (read_sides(tx, &m, x, err) != ERR_OK ||
            ((x->from.cell || x->to.cell) && read_contested(tx, x, err) != ERR_OK)) {
            return err->code;
        }
        if (x->from.cell || x->to.cell) {
            ret_drift->cases[count++] = *x;
        }
    }
    ret_drift->case_count = count;
    return ERR_OK;
}

/* Of a host. */

static bool is_known(const struct drift_pair *pairs, int count,
                     const struct drift_pair *pair)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(pairs[i].from, pair->from) == 0 &&
            strcmp(pairs[i].to, pair->to) == 0) {
            return true;
        }
    }
    return false;
}

enum err_code drift_pairs(struct tx *tx, const char *host, int64_t since_ms,
                          struct drift_pair ret_pairs[DRIFT_PAIRS_MAX], int *ret_count,
                          struct err *err)
{
    char since[ID_SIZE];
    struct query q;

    *ret_count = 0;
    id_first(since_ms, since);
    query_begin(&q, tx,
                "SELECT f.id, t.id FROM device d"
                " JOIN device_stack_environment n ON n.device = d.id"
                " JOIN environment t ON t.number = n.environment"
                " JOIN environment f ON f.number = (SELECT environment"
                " FROM device_environment x WHERE x.device = n.device"
                " AND x.stack = n.stack AND x.first_run < ?"
                " ORDER BY x.first_run DESC LIMIT 1)"
                " WHERE d.host = ?"
                " ORDER BY f.number = t.number, d.id, n.stack",
                since, host);
    while (query_step(&q)) {
        struct drift_pair pair;

        query_take(&q, pair.from, pair.to);
        if (strcmp(pair.from, pair.to) == 0 && *ret_count > 0 &&
            strcmp(ret_pairs[0].from, ret_pairs[0].to) != 0) {
            continue;
        }
        if (*ret_count < DRIFT_PAIRS_MAX && !is_known(ret_pairs, *ret_count, &pair)) {
            ret_pairs[(*ret_count)++] = pair;
        }
    }
    return query_end(&q, err);
}
