/* Drift within an environment: the runs of a host before a time, and since. */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/cells_rows.h"
#include "db/dissent/cell_devices.h"
#include "db/dissent/device_states.h"
#include "db/fleet.h"
#include "db/tx.h"
#include "db/views/drift_parts.h"

/* The runs of a cell on the devices of a host in a span of ids, nearest to the time
 * first; binds cell, begin, end and host. */
#define RUNS(order)                                                                      \
    "SELECT id, device, job, item, digest, distinct_digests, iterations, algorithm,"     \
    " median_ns, circumstances FROM run WHERE cell = ? AND id >= ? AND id < ?"           \
    " AND outcome = 'completed' AND device IN (SELECT id FROM device WHERE host = ?)"    \
    " ORDER BY id" order " LIMIT 200"
#define RUNS_BEFORE RUNS(" DESC")
#define RUNS_SINCE  RUNS("")
#define SUMS(runs)                                                                       \
    "SELECT count(DISTINCT r.id), count(DISTINCT ifnull(d.digest, r.digest)),"           \
    " count(DISTINCT r.algorithm), min(r.algorithm)"                                     \
    " FROM (" runs ") r LEFT JOIN run_digest d ON d.run = r.id"
#define TIMES(runs)                                                                      \
    "SELECT median_ns FROM (" runs ") WHERE median_ns > 0 AND circumstances IS NULL"
#define SHOWN(runs)                                                                      \
    "SELECT r.device, h.host, i.options, iif(r.distinct_digests = 1, r.digest, ''),"     \
    " r.iterations, " DEVICE_STATE_OF("r.device",                                        \
                                      "r.id") " FROM (" runs                             \
                                              ") r JOIN device h ON h.id = r.device"     \
                                              " JOIN job_item i ON i.job = r.job AND "   \
                                              "i.seq = r.item ORDER BY 3, 6, 1, 4"

struct span {
    const char *host;
    char begin[ID_SIZE], end[ID_SIZE];
    bool since; /* else before */
};

/* SQL over the runs of SPAN. */
static void begin(struct query *q, struct tx *tx, const char *sql_before,
                  const char *sql_since, int64_t cell, const struct span *span)
{
    query_begin(q, tx, span->since ? sql_since : sql_before, cell, span->begin, span->end,
                span->host);
}

static enum err_code sum_runs(struct tx *tx, const struct span *span, int64_t cell,
                              struct drift_side *side, struct err *err)
{
    struct query q;

    begin(&q, tx, SUMS(RUNS_BEFORE), SUMS(RUNS_SINCE), cell, span);
    if (query_step(&q)) {
        query_take(&q, &side->runs, &side->distinct_digests, &side->algorithms,
                   side->algorithm);
    }
    drift_name_algorithms(side);
    side->cell = side->runs ? cell : 0;
    return query_end(&q, err);
}

static enum err_code count_times(struct tx *tx, const struct span *span, int64_t cell,
                                 int64_t *counts, struct err *err)
{
    struct query q;

    begin(&q, tx, TIMES(RUNS_BEFORE), TIMES(RUNS_SINCE), cell, span);
    while (query_step(&q)) {
        counts[times_bucket(query_take_int(&q))]++;
    }
    return query_end(&q, err);
}

/* What each device showed, by its runs. */

struct shown {
    char device[CASE_TITLE_SIZE], host[CASE_TITLE_SIZE], options[RUN_OPTIONS_SIZE];
    char digest[DIGEST_TEXT_SIZE]; /* "": several */
    char state[DEVICE_STATE_SIZE];
    int64_t iterations;
};

struct seen {
    struct shown *runs; /* by conditions, device and digest */
    int run_count;
    struct dissent_row *rows;
    int count;
    struct dissent dissent;
};

static bool is_same_row(const struct shown *a, const struct shown *b)
{
    return strcmp(a->options, b->options) == 0 && strcmp(a->state, b->state) == 0 &&
           strcmp(a->device, b->device) == 0;
}

/* How many of the runs of ROW show DIGEST alone. */
static int64_t count_digest(const struct seen *seen, const struct dissent_row *row,
                            const char *digest)
{
    int64_t count = 0;

    for (int i = 0; i < seen->run_count; i++) {
        const struct shown *run = &seen->runs[i];

        count += strcmp(run->device, row->device) == 0 &&
                 strcmp(run->options, row->options) == 0 &&
                 strcmp(run->state, row->state) == 0 && strcmp(run->digest, digest) == 0;
    }
    return count;
}

/* The row of the runs from FIRST to before END. */
static struct dissent_row row_of(const struct seen *seen, int first, int end)
{
    const struct shown *head = &seen->runs[first];
    struct dissent_row row = { .device = head->device,
                               .host = head->host,
                               .options = head->options,
                               .state = head->state,
                               .mode = "" };

    for (int i = first, alike; i < end; i += alike) {
        const char *digest = seen->runs[i].digest;

        for (alike = 0; i + alike < end && !strcmp(digest, seen->runs[i + alike].digest);
             alike++) {
            row.iterations += seen->runs[i + alike].iterations;
        }
        row.runs += alike;
        row.varied |= !*digest || i > first;
        if (*digest && alike > row.mode_runs) {
            row.mode = digest;
            row.mode_runs = alike;
        }
    }
    return row;
}

static enum err_code make_rows(struct tx *tx, int64_t cell, struct seen *seen,
                               struct err *err)
{
    for (int first = 0, end; first < seen->run_count; first = end) {
        for (end = first;
             end < seen->run_count && is_same_row(&seen->runs[first], &seen->runs[end]);
             end++) {
        }
        seen->rows = xgrow(seen->rows, seen->count, sizeof *seen->rows);
        seen->rows[seen->count++] = row_of(seen, first, end);
    }
    dissent_majorities(seen->rows, seen->count);
    if (cell_devices_drop_wrong(tx, cell, seen->rows, seen->count, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < seen->count; i++) {
        struct dissent_row *row = &seen->rows[i];

        if (row->majority_runs < 0) {
            row->majority_runs = count_digest(seen, row, row->majority);
        }
    }
    seen->dissent = dissent_judge(seen->rows, seen->count);
    return ERR_OK;
}

static enum err_code read_seen(struct tx *tx, const struct span *span, int64_t cell,
                               struct seen *seen, struct err *err)
{
    struct query q;

    begin(&q, tx, SHOWN(RUNS_BEFORE), SHOWN(RUNS_SINCE), cell, span);
    while (query_step(&q)) {
        struct shown *run;

        seen->runs = xgrow(seen->runs, seen->run_count, sizeof *seen->runs);
        run = &seen->runs[seen->run_count++];
        query_take(&q, run->device, run->host, run->options, run->digest,
                   &run->iterations, run->state);
    }
    return query_end(&q, err) == ERR_OK ? make_rows(tx, cell, seen, err) : err->code;
}

static void release_seen(struct seen *seen)
{
    free(seen->runs);
    free(seen->rows);
}

/* The verdict of a side: what its own devices say, and else what the cell's was, as far
 * as that is not about devices that differ: the cell is about runs of before and since.
 */
static enum verdict verdict_of(const struct seen *seen, enum verdict verdict)
{
    switch (seen->dissent.state) {
    case DISSENT_VARIES:
        return VERDICT_VARIES;
    case DISSENT_DISAGREE:
    case DISSENT_BOTH:
        return VERDICT_DEVICES_DISAGREE;
    case DISSENT_UNDECIDED:
        return VERDICT_INCONCLUSIVE;
    default:
        return verdict == VERDICT_VARIES || verdict == VERDICT_DEVICES_DISAGREE
                   ? VERDICT_INCONCLUSIVE
                   : verdict;
    }
}

/* What the history says of CELL at that time. */
static enum err_code read_past_verdict(struct tx *tx, int64_t cell, int64_t at_ms,
                                       enum verdict *ret_verdict, struct err *err)
{
    struct query q;

    *ret_verdict = VERDICT_INCONCLUSIVE;
    query_begin(&q, tx,
                "SELECT verdict FROM cell_history WHERE cell = ? AND at_ms < ?"
                " ORDER BY at_ms DESC LIMIT 1",
                cell, at_ms);
    if (query_step(&q)) {
        *ret_verdict = cell_rows_take_verdict(&q);
    }
    return query_end(&q, err);
}

/* Runs that failed are no measurement, but where nothing else came since they are what
 * there is to say. */
static enum err_code read_failures(struct tx *tx, const struct span *span, int64_t cell,
                                   struct drift_side *side, struct err *err)
{
    int64_t failed = 0;

    if (tx_fetch_int(tx, &failed, err,
                     "SELECT count(*) FROM run WHERE cell = ? AND id >= ? AND id < ?"
                     " AND outcome IN"
                     " ('timeout', 'crashed', 'out_of_memory', 'invalid') AND device IN"
                     " (SELECT id FROM device WHERE host = ?)",
                     cell, span->begin, span->end, span->host) != ERR_OK) {
        return err->code;
    }
    if (failed > 0 && side->runs == 0) {
        side->verdict = VERDICT_FAILING;
        side->cell = cell;
    }
    return ERR_OK;
}

struct moment {
    int64_t at_ms, until_ms;
    struct span before, since;
};

static enum err_code read_devices(struct tx *tx, const struct moment *m,
                                  const struct drift *drift, int64_t cell,
                                  enum verdict verdict, struct drift_case *x,
                                  struct err *err)
{
    struct seen before = { .count = 0 };
    struct seen since = { .count = 0 };
    enum verdict past;
    enum err_code code = read_seen(tx, &m->before, cell, &before, err);

    code = code == ERR_OK ? read_seen(tx, &m->since, cell, &since, err) : code;
    code = code == ERR_OK ? read_past_verdict(tx, cell, m->at_ms, &past, err) : code;
    if (code == ERR_OK && m->until_ms) {
        code = read_past_verdict(tx, cell, m->until_ms, &verdict, err);
    }
    if (code == ERR_OK) {
        const struct drift_devices from = { before.rows, before.count, drift->to.suspects,
                                            drift->to.suspect_count };
        const struct drift_devices to = { since.rows, since.count, drift->to.suspects,
                                          drift->to.suspect_count };

        x->from.verdict = verdict_of(&before, past);
        x->to.verdict = verdict_of(&since, verdict);
        drift_compare(x, &from, &to);
    }
    release_seen(&before);
    release_seen(&since);
    return code;
}

static enum err_code read_times(struct tx *tx, const struct moment *m, int64_t cell,
                                struct drift_case *x, struct err *err)
{
    int64_t *counts = xcalloc((size_t)2 * TIMES_BUCKETS, sizeof *counts);
    enum err_code code = count_times(tx, &m->before, cell, counts, err);

    code = code == ERR_OK ? count_times(tx, &m->since, cell, counts + TIMES_BUCKETS, err)
                          : code;
    x->from.times = times_quartiles(counts);
    x->to.times = times_quartiles(counts + TIMES_BUCKETS);
    x->shift = times_shift(counts + TIMES_BUCKETS, counts);
    free(counts);
    return code;
}

/* What came before the change before is about another state of the host. */
static enum err_code read_skipped(struct tx *tx, const struct moment *m, int64_t cell,
                                  struct drift_case *x, struct err *err)
{
    int64_t found = 0;

    if (x->from.runs > 0 || !m->before.begin[0]) {
        return ERR_OK;
    }
    if (tx_fetch_int(tx, &found, err,
                     "SELECT EXISTS (SELECT 1 FROM run WHERE cell = ? AND id < ?"
                     " AND outcome = 'completed' AND device IN"
                     " (SELECT id FROM device WHERE host = ?))",
                     cell, m->before.begin, m->before.host) != ERR_OK) {
        return err->code;
    }
    x->skipped = found;
    return ERR_OK;
}

/* X has the cell as its side `to`. */
static enum err_code read_sides(struct tx *tx, const struct moment *m,
                                const struct drift *drift, struct drift_case *x,
                                struct err *err)
{
    int64_t cell = x->to.cell;
    enum verdict verdict = x->to.verdict;
    bool damaged = x->to.damaged;

    x->from = x->to = (struct drift_side){ .damaged = damaged };
    x->since = true;
    x->until = m->until_ms != 0;
    return sum_runs(tx, &m->before, cell, &x->from, err) != ERR_OK ||
                   sum_runs(tx, &m->since, cell, &x->to, err) != ERR_OK ||
                   read_times(tx, m, cell, x, err) != ERR_OK ||
                   read_devices(tx, m, drift, cell, verdict, x, err) != ERR_OK ||
                   read_skipped(tx, m, cell, x, err) != ERR_OK ||
                   read_failures(tx, &m->since, cell, &x->to, err) != ERR_OK ||
                   ((x->from.cell || x->to.cell) &&
                    drift_read_contested(tx, x, err) != ERR_OK)
               ? err->code
               : ERR_OK;
}

static enum err_code read_moment(struct tx *tx, const char *host, int64_t since_ms,
                                 int64_t until_ms, struct moment *m, struct err *err)
{
    int64_t change_ms = 0;

    *m = (struct moment){ .at_ms = since_ms,
                          .until_ms = until_ms,
                          .before = { host, "", "", false },
                          .since = { host, "", "~", true } };
    id_first(since_ms, m->before.end);
    id_first(since_ms, m->since.begin);
    if (until_ms) {
        id_first(until_ms, m->since.end);
    }
    if (tx_fetch_int(tx, &change_ms, err,
                     "SELECT ifnull(max(at_ms), 0) FROM change WHERE host = ?"
                     " AND at_ms < ?",
                     host, since_ms) != ERR_OK) {
        return err->code;
    }
    if (change_ms) {
        id_first(change_ms, m->before.begin);
    }
    return ERR_OK;
}

static void add_cell(void *arg, const struct class_cell *cell, const char *environment)
{
    (void)environment;
    drift_add_cell(arg, cell, true);
}

enum err_code drift_read_since(struct tx *tx, const char *environment, const char *host,
                               int64_t since_ms, int64_t until_ms,
                               struct drift *ret_drift, struct err *err)
{
    const struct classes_filter filter = { .subject = SUBJECT_COUNT };
    struct drift *drift = ret_drift;
    struct moment m;
    int count = 0;

    *drift = (struct drift){ .since_ms = since_ms, .until_ms = until_ms };
    copy_text(drift->since_host, sizeof drift->since_host, host);
    if (read_moment(tx, host, since_ms, until_ms, &m, err) != ERR_OK ||
        drift_read_facts(tx, environment, &drift->from, err) != ERR_OK ||
        (until_ms ? drift_read_facts : drift_read_end)(tx, environment, &drift->to,
                                                       err) != ERR_OK ||
        classes_each_cell(tx, &filter, environment, add_cell, drift, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < drift->case_count; i++) {
        struct drift_case *x = &drift->cases[i];

        if (read_sides(tx, &m, drift, x, err) != ERR_OK) {
            return err->code;
        }
        if (x->from.cell || x->to.cell) {
            drift->cases[count++] = *x;
        }
    }
    drift->case_count = count;
    return ERR_OK;
}
