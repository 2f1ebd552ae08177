#include "db/upkeep/retention.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/times.h"
#include "daemon/jobs/run.h"
#include "db/cells.h"
#include "db/dissent/beside_others.h"
#include "db/dissent/device_states.h"
#include "db/runs.h"
#include "db/tx.h"
#include "db/upkeep/summaries.h"

enum { CELLS_AT_ONCE = 256 };

/* A cell, and which of its runs a slice looks at. */
struct slice {
    struct tx *tx;
    const struct retention *retention;
    int64_t now_ms;
    struct retention_place *place;
    int64_t cell;
    char newest[ID_SIZE]; /* runs from here on are too new */
    char last[ID_SIZE];   /* of those that are looked at */
    int64_t looked_at;
    bool is_old; /* the last of them */
};

/* A run that is folded.  Its texts are those of struct run_record. */
struct folded {
    char id[ID_SIZE];
    int64_t job;
    int item;
    int64_t start_ms, end_ms, iterations, elements, bytes_hashed;
    char digest[DIGEST_TEXT_SIZE], input_digest[DIGEST_TEXT_SIZE];
    char weight_sum[BITS_TEXT_SIZE], loss[BITS_TEXT_SIZE];
    char algorithm[CASE_TITLE_SIZE], claim[CASE_NAME_SIZE];
    char circumstances[RUN_CIRCUMSTANCES_SIZE], state[DEVICE_STATE_SIZE];
    int64_t libraries, min_ns, median_ns, max_ns, milliseconds;
};

struct folded_list {
    struct folded *runs;
    int count;
};

/* The next cell that may have runs to fold; 0: there is none. */
static enum err_code next_cell(struct slice *s, struct err *err)
{
    s->cell = 0;
    return tx_fetch_int(s->tx, &s->cell, err,
                        "SELECT id FROM cell WHERE id > ? AND completed > ?"
                        " ORDER BY id LIMIT 1",
                        s->place->cell, s->retention->runs);
}

static enum err_code find_newest(struct slice *s, struct err *err)
{
    s->newest[0] = '\0';
    return tx_fetch(s->tx, TX_TARGETS(s->newest), err,
                    "SELECT id FROM run INDEXED BY run_cell WHERE cell = ?"
                    " ORDER BY id DESC LIMIT 1 OFFSET ?",
                    s->cell, s->retention->runs - 1);
}

#define RUNS_OF_SLICE                                                                    \
    "(SELECT id FROM run INDEXED BY run_cell WHERE cell = ?1 AND id > ?2 AND id < ?3"    \
    " ORDER BY id LIMIT ?4)"

static enum err_code find_last(struct slice *s, int64_t limit, struct err *err)
{
    s->last[0] = '\0';
    s->looked_at = 0;
    s->is_old = false;
    return tx_fetch(s->tx, TX_TARGETS(s->last, &s->looked_at, &s->is_old), err,
                    "SELECT last, n, (SELECT finished_ms < ?5 FROM run WHERE id = last)"
                    " FROM (SELECT max(id) AS last, count(*) AS n FROM " RUNS_OF_SLICE
                    ")",
                    s->cell, s->place->run, s->newest, limit, s->place->old_ms);
}

#define STATE DEVICE_STATE_OF("r.device", "r.id")
#define ALIKE "r.device, i.options, " STATE ", r.circumstances, r.digest, r.input_digest"
#define MAY_BE_FOLDED                                                                    \
    "NOT r.challenge AND NOT " RUN_DAMAGED_R                                             \
    " AND NOT EXISTS (SELECT 1 FROM quarantine WHERE cell = r.cell) AND "                \
    "r.outcome = 'completed' AND r.distinct_digests = 1 AND r.finished_ms < ?5"          \
    " AND (k.is_control OR r.digest = c.digest)"                                         \
    " AND j.state IN ('finished', 'cancelled')"                                          \
    " AND NOT EXISTS (SELECT 1 FROM localisation WHERE job = r.job)"                     \
    " AND NOT EXISTS (SELECT 1 FROM run_check WHERE run = r.id)"                         \
    " AND NOT EXISTS (SELECT 1 FROM run_trace WHERE run = r.id)"                         \
    " AND NOT EXISTS (SELECT 1 FROM run_tensor WHERE run = r.id)"                        \
    " AND NOT EXISTS (SELECT 1 FROM run_telemetry t WHERE t.run = r.id"                  \
    " AND " BESIDE_OTHERS("t") ")"                                                       \
    " AND NOT EXISTS (SELECT 1 FROM run_digest WHERE run = r.id)"                        \
    " AND NOT EXISTS (SELECT 1 FROM cell_digest WHERE cell = r.cell"                     \
    " AND digest = r.digest AND run = r.id)"                                             \
    " AND NOT EXISTS (SELECT 1 FROM cell_history WHERE run = r.id)"                      \
    " AND NOT EXISTS (SELECT 1 FROM case_input WHERE run = r.id)"                        \
    " AND NOT EXISTS (SELECT 1 FROM device_stack_environment WHERE run = r.id)"

static void take_run(struct query *q, struct folded *run)
{
    query_take(q, run->id, &run->job, &run->item, &run->start_ms, &run->end_ms,
               &run->iterations, &run->elements, &run->bytes_hashed, run->digest,
               run->input_digest, run->weight_sum, run->loss);
    query_take(q, run->algorithm, run->claim, run->circumstances, &run->libraries,
               &run->min_ns, &run->median_ns, &run->max_ns, &run->milliseconds,
               run->state);
}

/* In an order in which those of one summary follow each other. */
static enum err_code list_runs(struct slice *s, int64_t limit,
                               struct folded_list *ret_list, struct err *err)
{
    struct query q;

    query_begin(&q, s->tx,
                "SELECT id, job, item, start_ms, finished_ms, iterations, elements,"
                " bytes_hashed, digest, input_digest, weight_sum, loss, algorithm, claim,"
                " circumstances, libraries, min_ns, median_ns, max_ns,"
                " ifnull(wall_ns, 0) / 1000000, state"
                " FROM (SELECT r.*, " STATE
                " AS state, ifnull(r.started_ms, r.intent_ms) AS start_ms,"
                " row_number() OVER (PARTITION BY " ALIKE
                " ORDER BY r.id) AS place,"
                " row_number() OVER (PARTITION BY " ALIKE
                " ORDER BY r.id DESC) AS back"
                " FROM " RUNS_OF_SLICE
                " x CROSS JOIN run r ON r.id = x.id"
                " CROSS JOIN job j ON j.number = r.job"
                " CROSS JOIN job_item i ON i.job = r.job AND i.seq = r.item"
                " CROSS JOIN cell c ON c.id = r.cell"
                " CROSS JOIN case_key k ON k.number = c.case_key"
                " WHERE " MAY_BE_FOLDED
                ") WHERE place > 1 AND back > 1"
                " ORDER BY job, item, digest, input_digest, weight_sum, loss, algorithm,"
                " claim, circumstances, libraries, elements, state, id",
                s->cell, s->place->run, s->newest, limit, s->place->old_ms);
    while (query_step(&q)) {
        ret_list->runs = xgrow(ret_list->runs, ret_list->count, sizeof *ret_list->runs);
        take_run(&q, &ret_list->runs[ret_list->count++]);
    }
    return query_end(&q, err);
}

static bool are_alike(const struct folded *a, const struct folded *b)
{
    return a->job == b->job && a->item == b->item && a->libraries == b->libraries &&
           a->elements == b->elements && strcmp(a->digest, b->digest) == 0 &&
           strcmp(a->input_digest, b->input_digest) == 0 &&
           strcmp(a->weight_sum, b->weight_sum) == 0 && strcmp(a->loss, b->loss) == 0 &&
           strcmp(a->algorithm, b->algorithm) == 0 && strcmp(a->claim, b->claim) == 0 &&
           strcmp(a->circumstances, b->circumstances) == 0 &&
           strcmp(a->state, b->state) == 0;
}

static void write_times(const struct folded *runs, int count, struct buf *ret_json)
{
    int64_t *times = xcalloc(TIMES_BUCKETS, sizeof *times);
    const char *before = "";

    for (int i = 0; i < count; i++) {
        if (runs[i].median_ns > 0) {
            times[times_bucket(runs[i].median_ns)]++;
        }
    }
    buf_putc(ret_json, '{');
    for (int b = 0; b < TIMES_BUCKETS; b++) {
        if (times[b]) {
            buf_printf(ret_json, "%s\"%d\":%" PRId64, before, b, times[b]);
            before = ",";
        }
    }
    buf_putc(ret_json, '}');
    free(times);
}

/* What COUNT runs add up to; what they have in common is in the first. */
static struct folded add_up(const struct folded *runs, int count, int64_t *ret_medians)
{
    struct folded sum = runs[0];

    *ret_medians = runs[0].median_ns;
    for (int i = 1; i < count; i++) {
        const struct folded *run = &runs[i];

        sum.start_ms = run->start_ms < sum.start_ms ? run->start_ms : sum.start_ms;
        sum.end_ms = run->end_ms > sum.end_ms ? run->end_ms : sum.end_ms;
        sum.iterations += run->iterations;
        sum.bytes_hashed += run->bytes_hashed;
        sum.milliseconds += run->milliseconds;
        if (run->min_ns && (!sum.min_ns || run->min_ns < sum.min_ns)) {
            sum.min_ns = run->min_ns;
        }
        sum.max_ns = run->max_ns > sum.max_ns ? run->max_ns : sum.max_ns;
        *ret_medians += run->median_ns;
    }
    return sum;
}

static enum err_code store_summary(struct slice *s, const struct folded *runs, int count,
                                   struct err *err)
{
    struct buf ids = BUF_INIT, times = BUF_INIT;
    int64_t medians;
    struct folded sum = add_up(runs, count, &medians);
    struct query q;
    enum err_code code;

    for (int i = 0; i < count; i++) {
        buf_puts(&ids, runs[i].id);
    }
    write_times(runs, count, &times);
    query_begin(&q, s->tx,
                "INSERT INTO run_summary (cell, job, item, runs, ids, first_run,"
                " last_run, first_ms, last_ms, iterations, digest, input_digest,"
                " weight_sum, loss, algorithm, claim, circumstances, libraries,"
                " elements, bytes_hashed, min_ns, max_ns, median_ns_sum, times,"
                " milliseconds, folded_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                "?, ?, ?, ?, ?,"
                " ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                s->cell, sum.job, sum.item, count, tx_blob(ids.data, (int64_t)ids.length),
                runs[0].id, runs[count - 1].id, sum.start_ms, sum.end_ms, sum.iterations);
    query_bind(&q, sum.digest, sum.input_digest, or_null(sum.weight_sum),
               or_null(sum.loss), or_null(sum.algorithm), or_null(sum.claim),
               or_null(sum.circumstances), or_null(sum.libraries), sum.elements,
               sum.bytes_hashed);
    query_bind(&q, or_null(sum.min_ns), or_null(sum.max_ns), or_null(medians), times.data,
               sum.milliseconds, s->now_ms);
    code = query_run(&q, err);
    if (code == ERR_OK) {
        code = tx_run(s->tx, err,
                      "UPDATE run_summary SET sum = " SUMMARY_SUM
                      " WHERE number = last_insert_rowid()");
    }
    buf_release(&ids);
    buf_release(&times);
    return code;
}

/* The tables that hold more of a run that may be folded: rows of others keep it. */
static enum err_code delete_run(struct tx *tx, const char *id, struct err *err)
{
    return tx_run(tx, err, "DELETE FROM run_log WHERE run = ?", id) == ERR_OK &&
                   tx_run(tx, err, "DELETE FROM run_telemetry WHERE run = ?", id) ==
                       ERR_OK
               ? tx_run(tx, err, "DELETE FROM run WHERE id = ?", id)
               : err->code;
}

static enum err_code fold_list(struct slice *s, const struct folded_list *list,
                               struct err *err)
{
    for (int i = 0, end; i < list->count; i = end) {
        end = i + 1;
        while (end < list->count && are_alike(&list->runs[i], &list->runs[end])) {
            end++;
        }
        if (store_summary(s, &list->runs[i], end - i, err) != ERR_OK) {
            return err->code;
        }
        for (int j = i; j < end; j++) {
            if (delete_run(s->tx, list->runs[j].id, err) != ERR_OK) {
                return err_wrap(err, "run %s", list->runs[j].id);
            }
        }
        s->place->summaries++;
        s->place->folded += end - i;
    }
    return ERR_OK;
}

/* The end of the latest run instead of now, if that is earlier. */
static enum err_code begin_pass(struct slice *s, struct err *err)
{
    int64_t latest;

    if (s->place->old_ms) {
        return ERR_OK;
    }
    if (cells_latest(s->tx, &latest, err) != ERR_OK) {
        return err->code;
    }
    s->place->old_ms = (latest < s->now_ms ? latest : s->now_ms) -
                       (int64_t)s->retention->days * 24 * 3600 * 1000;
    return ERR_OK;
}

static void leave_cell(struct slice *s)
{
    s->place->cell = s->cell;
    s->place->run[0] = '\0';
}

/* At most LIMIT runs of s->cell. */
static enum err_code fold_cell(struct slice *s, int64_t limit, struct err *err)
{
    struct folded_list list = { NULL, 0 };
    enum err_code code;

    if (find_newest(s, err) != ERR_OK || find_last(s, limit, err) != ERR_OK) {
        return err->code;
    }
    if (!s->newest[0] || s->looked_at == 0) {
        s->looked_at = 0;
        leave_cell(s);
        return ERR_OK;
    }
    code = list_runs(s, limit, &list, err);
    if (code == ERR_OK) {
        code = fold_list(s, &list, err);
    }
    free(list.runs);
    if (code == ERR_OK) {
        s->place->looked_at += s->looked_at;
        copy_text(s->place->run, sizeof s->place->run, s->last);
        if (s->looked_at < limit || !s->is_old) { /* later ones are no older */
            leave_cell(s);
        }
    }
    return code;
}

enum err_code retention_fold(struct tx *tx, const struct retention *retention,
                             int64_t now_ms, struct retention_place *place,
                             struct err *err)
{
    struct slice s = {
        .tx = tx, .retention = retention, .now_ms = now_ms, .place = place
    };
    int64_t left = retention->at_once;

    if (retention->days < 1 || retention->runs < 1) {
        place->finished = true;
        return ERR_OK;
    }
    if (begin_pass(&s, err) != ERR_OK) {
        return err->code;
    }
    for (int cells = 0; cells < CELLS_AT_ONCE && left > 0; cells++) {
        if (next_cell(&s, err) != ERR_OK) {
            return err->code;
        }
        if (!s.cell) {
            place->finished = true;
            return ERR_OK;
        }
        if (fold_cell(&s, left, err) != ERR_OK) {
            return err->code;
        }
        left -= s.looked_at;
    }
    return ERR_OK;
}
