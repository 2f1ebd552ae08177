/* The second opinion on what devices showed (cell_devices_recompute of
 * db/dissent/cell_devices.h): SQL of its own, which shares nothing with the folding. */
#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "db/dissent/cell_devices.h"
#include "db/dissent/device_states.h"
#include "db/tx.h"

#include <string.h>

enum { SHOWN_SIZE = 400 };

#define STATE_OF_RUN     DEVICE_STATE_OF("r.device", "r.id")
#define STATE_OF_SUMMARY DEVICE_STATE_OF("i.device", "s.first_run")

#define AS_TEXT(from) "(SELECT ifnull(group_concat(what, '; '), '') FROM (" from "))"
#define DIFFERENCE                                                                       \
    " SELECT " AS_TEXT("SELECT what FROM stored EXCEPT SELECT what FROM fresh") ", "      \
    AS_TEXT("SELECT what FROM fresh EXCEPT SELECT what FROM stored")

struct opinion {
    void (*differs)(void *arg, const char *what, const char *stored, const char *fresh);
    void *arg;
};

static enum err_code compare(struct query *q, const struct opinion *o, const char *what,
                             struct err *err)
{
    if (query_step(q)) {
        char stored[SHOWN_SIZE], fresh[SHOWN_SIZE];

        query_take(q, stored, fresh);
        if (stored[0] || fresh[0]) {
            o->differs(o->arg, what, stored, fresh);
        }
    }
    return query_end(q, err);
}

static enum err_code compare_digests(struct tx *tx, int64_t cell, const struct opinion *o,
                                     struct err *err)
{
    struct query q;

    query_begin(
        &q, tx,
        "WITH shown (device, options, state, digest, iterations, alone, runs) AS ("
        " SELECT i.device, i.options, " STATE_OF_SUMMARY
        ", s.digest, s.iterations, s.runs,"
        " s.runs"
        " FROM run_summary s"
        " JOIN job_item i ON i.job = s.job AND i.seq = s.item WHERE s.cell = ?1"
        " AND NOT s.refused UNION ALL"
        " SELECT r.device, i.options, " STATE_OF_RUN
        ", r.digest, r.iterations, 1, 1 FROM run r"
        " JOIN job_item i ON i.job = r.job AND i.seq = r.item WHERE r.cell = ?1"
        " AND r.outcome = 'completed' AND r.distinct_digests = 1 UNION ALL"
        " SELECT r.device, i.options, " STATE_OF_RUN
        ", d.digest, d.iterations, 0, 1 FROM run r"
        " JOIN job_item i ON i.job = r.job AND i.seq = r.item"
        " JOIN run_digest d ON d.run = r.id WHERE r.cell = ?1"
        " AND r.outcome = 'completed' AND r.distinct_digests > 1),"
        " fresh (what) AS (SELECT device || ' ' || options || ' ' || state || ' ' || "
        "digest || ' ' ||"
        " sum(runs) || ' ' || sum(iterations) || ' ' || sum(alone) FROM shown"
        " GROUP BY device, options, state, digest),"
        " stored (what) AS (SELECT device || ' ' || options || ' ' || state || ' ' || "
        "digest || ' ' ||"
        " runs || ' ' || iterations || ' ' || only_runs FROM cell_device_digest"
        " WHERE cell = ?1)" DIFFERENCE,
        cell);
    return compare(&q, o, "digests of devices", err);
}

static enum err_code compare_sums(struct tx *tx, int64_t cell, const struct opinion *o,
                                  struct err *err)
{
    struct query q;

    query_begin(
        &q, tx,
        "WITH each (device, options, state, digest, runs, iterations, first_ms, "
        "first_run,"
        " last_run) AS (SELECT i.device, i.options, " STATE_OF_SUMMARY
        ", s.digest, s.runs, s.iterations,"
        " s.first_ms, s.first_run, s.last_run FROM run_summary s"
        " JOIN job_item i ON i.job = s.job AND i.seq = s.item WHERE s.cell = ?1"
        " AND NOT s.refused UNION ALL SELECT r.device, i.options, " STATE_OF_RUN
        ","
        " iif(r.distinct_digests = 1, r.digest, NULL), 1, r.iterations,"
        " ifnull(r.started_ms, r.intent_ms), r.id, r.id FROM run r"
        " JOIN job_item i ON i.job = r.job AND i.seq = r.item WHERE r.cell = ?1"
        " AND r.outcome = 'completed'),"
        " alone (device, options, state, digest, runs, place) AS (SELECT device, options,"
        " state, digest,"
        " sum(runs), row_number() OVER (PARTITION BY device, options, state"
        " ORDER BY sum(runs) DESC, digest) FROM each WHERE digest IS NOT NULL"
        " GROUP BY device, options, state, digest),"
        " fresh (what) AS (SELECT e.device || ' ' || e.options || ' ' || e.state || ' ' "
        "||"
        " sum(e.iterations) || ' ' || min(e.first_ms) || ' ' || min(e.first_run) || ' '"
        " || max(e.last_run) || ' ' || ifnull((SELECT digest || ' ' || runs"
        " FROM alone a WHERE a.device = e.device AND a.options = e.options"
        " AND a.state = e.state AND a.place = 1), 'none 0') FROM each e"
        " GROUP BY e.device, e.options, e.state),"
        " stored (what) AS (SELECT device || ' ' || options || ' ' || state || ' ' || "
        "iterations || ' '"
        " || first_ms || ' ' || first_run || ' ' || last_run || ' ' ||"
        " ifnull(mode, 'none') || ' ' || mode_runs FROM cell_device"
        " WHERE cell = ?1)" DIFFERENCE,
        cell);
    return compare(&q, o, "runs of devices", err);
}

static void add_name(struct buf *names, const char *device)
{
    buf_printf(names, "%s%s", names->length ? ", " : "", device);
}

/* The first that is named behind LAST, by device; NULL: there is none. */
static const char *next_name(const struct cell_devices *devices, const char *last)
{
    const char *next = NULL;

    for (int i = 0; i < devices->count; i++) {
        const struct dissent_row *row = &devices->rows[i];

        if (row->mark == DISSENT_DISSENTS && strcmp(row->device, last) > 0 &&
            (!next || strcmp(row->device, next) < 0)) {
            next = row->device;
        }
    }
    return next;
}

/* Those that are named follow from the rest of what is stored. */
static enum err_code compare_names(struct tx *tx, int64_t cell, const struct opinion *o,
                                   struct err *err)
{
    struct buf stored = BUF_INIT, fresh = BUF_INIT;
    struct cell_devices devices;
    enum err_code code = cell_devices_load(tx, cell, &devices, err);
    struct query q;

    if (code != ERR_OK) {
        return code;
    }
    buf_puts(&stored, "");
    buf_puts(&fresh, "");
    query_begin(&q, tx,
                "SELECT device FROM cell_dissenter WHERE cell = ? ORDER BY device", cell);
    while (query_step(&q)) {
        add_name(&stored, query_borrow_text(&q));
    }
    code = query_end(&q, err);
    for (const char *device = next_name(&devices, ""); device;
         device = next_name(&devices, device)) {
        add_name(&fresh, device);
    }
    if (code == ERR_OK &&
        (stored.length != fresh.length || strcmp(stored.data, fresh.data) != 0)) {
        o->differs(o->arg, "devices that dissent", stored.data, fresh.data);
    }
    buf_release(&stored);
    buf_release(&fresh);
    cell_devices_release(&devices);
    return code;
}

enum err_code cell_devices_recompute(struct tx *tx, int64_t cell,
                                     void (*differs)(void *arg, const char *what,
                                                     const char *stored,
                                                     const char *fresh),
                                     void *arg, struct err *err)
{
    const struct opinion o = { differs, arg };

    return compare_digests(tx, cell, &o, err) == ERR_OK &&
                   compare_sums(tx, cell, &o, err) == ERR_OK
               ? compare_names(tx, cell, &o, err)
               : err->code;
}
