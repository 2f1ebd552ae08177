/* Drift between two environments. */
#include "db/views/drift.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/cells_rows.h"
#include "db/dissent/cell_devices.h"
#include "db/tx.h"
#include "db/views/classes.h"
#include "db/views/drift_parts.h"

enum { LATEST_RUNS = 20 }; /* whose algorithms are compared */

static void release_end(struct drift_end *end)
{
    free(end->json);
    free(end->places);
    free(end->suspects);
    free(end->suspect_names);
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

    (void)environment;
    drift_add_cell(c->drift, cell, c->to);
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
    drift_name_algorithms(side);
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

static enum err_code load_devices(struct tx *tx, const struct drift_side *side,
                                  struct cell_devices *ret_devices, struct err *err)
{
    *ret_devices = (struct cell_devices){ .count = 0 };
    return side->runs > 0 ? cell_devices_load(tx, side->cell, ret_devices, err) : ERR_OK;
}

static struct drift_devices devices_of(const struct drift_end *end,
                                       const struct cell_devices *devices)
{
    return (struct drift_devices){ devices->rows, devices->count, end->suspects,
                                   end->suspect_count };
}

static enum err_code compare(struct tx *tx, const struct drift *drift,
                             struct drift_case *x, struct err *err)
{
    struct cell_devices from, to;
    enum err_code code = load_devices(tx, &x->from, &from, err);

    if (code != ERR_OK) {
        return code;
    }
    code = load_devices(tx, &x->to, &to, err);
    if (code == ERR_OK) {
        const struct drift_devices before = devices_of(&drift->from, &from);
        const struct drift_devices after = devices_of(&drift->to, &to);

        drift_compare(x, &before, &after);
        cell_devices_release(&to);
    }
    cell_devices_release(&from);
    return code;
}

static enum err_code read_details(struct tx *tx, const struct collecting *c,
                                  struct err *err)
{
    for (int i = 0; i < c->drift->case_count; i++) {
        struct drift_case *x = &c->drift->cases[i];

        if (read_algorithm(tx, &x->from, err) != ERR_OK ||
            read_algorithm(tx, &x->to, err) != ERR_OK ||
            read_times(tx, x, err) != ERR_OK ||
            drift_read_contested(tx, x, err) != ERR_OK ||
            read_stale(tx, &x->to, c, err) != ERR_OK ||
            compare(tx, c->drift, x, err) != ERR_OK) {
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
    if (drift_read_end(tx, from, &ret_drift->from, err) != ERR_OK) {
        return err->code;
    }
    *ret_missing = to;
    if (drift_read_end(tx, to, &ret_drift->to, err) != ERR_OK ||
        read_hosts(tx, ret_drift, err) != ERR_OK || read_cases(tx, &c, err) != ERR_OK ||
        read_details(tx, &c, err) != ERR_OK) {
        return err->code;
    }
    return ERR_OK;
}
