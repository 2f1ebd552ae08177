#include "db/cells_alike.h"

#include "db/jobs.h"
#include "db/runs.h"
#include "db/tx.h"

/* How RUN was asked for beside its case. */
static enum err_code load_options(struct tx *tx, const struct run_record *run,
                                  char ret_options[JOB_OPTIONS_SIZE], struct err *err)
{
    struct query q;

    ret_options[0] = '\0';
    query_begin(&q, tx,
                "SELECT i.options FROM job j JOIN job_item i ON i.job = j.number"
                " AND i.seq = ? WHERE j.id = ?");
    query_bind_int(&q, run->item);
    query_bind_text(&q, run->job);
    if (query_step(&q)) {
        query_take_text(&q, ret_options, JOB_OPTIONS_SIZE);
    }
    return query_end(&q, err);
}

static enum err_code count_devices(struct tx *tx, struct cell_row *row, struct err *err)
{
    struct query q;

    query_begin(&q, tx, "SELECT count(DISTINCT device) FROM cell_device WHERE cell = ?");
    query_bind_int(&q, row->cell.id);
    if (query_step(&q)) {
        row->cell.evidence.devices = query_take_int(&q);
    }
    return query_end(&q, err);
}

/* Whether runs on that device are known, and whether they, with RUN, differ. */
static enum err_code load_device(struct tx *tx, int64_t cell,
                                 const struct run_record *run, const char *options,
                                 bool *ret_known, bool *ret_varied, struct err *err)
{
    struct query q;

    *ret_known = false;
    *ret_varied = run->distinct_digests != 1;
    query_begin(&q, tx,
                "SELECT digest IS ? FROM cell_device WHERE cell = ? AND device = ?"
                " AND options = ?");
    query_bind_text(&q, run->digest);
    query_bind_int(&q, cell);
    query_bind_text(&q, run->device);
    query_bind_text(&q, options);
    if (query_step(&q)) {
        *ret_known = true;
        *ret_varied = *ret_varied || !query_take_int(&q);
    }
    return query_end(&q, err);
}

static enum err_code fold_device(struct tx *tx, struct cell_row *row,
                                 const struct run_record *run, const char *options,
                                 bool *ret_varied, struct err *err)
{
    struct query q;
    bool known;

    if (load_device(tx, row->cell.id, run, options, &known, ret_varied, err) != ERR_OK) {
        return err->code;
    }
    query_begin(&q, tx,
                "INSERT INTO cell_device (cell, device, options, runs, digest)"
                " VALUES (?, ?, ?, 1, ?) ON CONFLICT (cell, device, options) DO UPDATE"
                " SET runs = runs + 1, digest = excluded.digest");
    query_bind_int(&q, row->cell.id);
    query_bind_text(&q, run->device);
    query_bind_text(&q, options);
    query_bind_text(&q, *ret_varied ? NULL : run->digest);
    if (query_run(&q, err) != ERR_OK) {
        return err->code;
    }
    return known ? ERR_OK : count_devices(tx, row, err);
}

enum err_code cells_alike_fold(struct tx *tx, struct cell_row *row,
                               const struct run_record *run, struct err *err)
{
    char options[JOB_OPTIONS_SIZE];
    bool varied;
    struct query q;

    if (load_options(tx, run, options, err) != ERR_OK ||
        fold_device(tx, row, run, options, &varied, err) != ERR_OK) {
        return err->code;
    }
    query_begin(&q, tx,
                "INSERT INTO cell_alike (cell, options, runs, varied) VALUES (?, ?, 1, ?)"
                " ON CONFLICT (cell, options) DO UPDATE SET runs = runs + 1,"
                " varied = max(varied, excluded.varied)");
    query_bind_int(&q, row->cell.id);
    query_bind_text(&q, options);
    query_bind_int(&q, varied);
    return query_run(&q, err);
}

enum err_code cells_alike_varied(struct tx *tx, int64_t cell, int64_t *ret_count,
                                 struct err *err)
{
    struct query q;

    query_begin(&q, tx, "SELECT count(*) FROM cell_alike WHERE cell = ? AND varied");
    query_bind_int(&q, cell);
    if (query_step(&q)) {
        *ret_count = query_take_int(&q);
    }
    return query_end(&q, err);
}

enum err_code cells_each_alike(struct tx *tx, int64_t id, int limit,
                               void (*visit)(void *arg, const struct cell_alike *alike),
                               void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT options, runs, varied FROM cell_alike WHERE cell = ?"
                " ORDER BY options LIMIT ?");
    query_bind_int(&q, id);
    query_bind_int(&q, limit);
    while (query_step(&q)) {
        struct cell_alike alike;

        query_take_text(&q, alike.options, sizeof alike.options);
        alike.runs = query_take_int(&q);
        alike.varied = query_take_int(&q);
        visit(arg, &alike);
    }
    return query_end(&q, err);
}

/* What runs that were asked for alike add up to, by device and over all devices, each as
 * one text: what is in one and not in the other is seen. */
#define ALIKE_TEXT                                                                       \
    "ifnull(group_concat(runs || ' ' || ifnull(digest, 'varied') || ' ' || device ||"    \
    " ' ' || options, '; '), '')"
#define ALIKE_ROWS                                                                       \
    " SELECT cell, device, options, runs, digest FROM cell_device WHERE cell = ?1"       \
    " UNION ALL SELECT cell, '', options, runs, iif(varied, NULL, '') FROM cell_alike"   \
    " WHERE cell = ?1"

enum err_code cells_alike_compare(struct tx *tx, int64_t cell,
                                  char ret_stored[CELLS_ALIKE_TEXT_SIZE],
                                  char ret_fresh[CELLS_ALIKE_TEXT_SIZE], struct err *err)
{
    struct query q;

    query_begin(
        &q, tx,
        "WITH fresh_device (cell, device, options, runs, digest) AS MATERIALIZED ("
        " SELECT r.cell, r.device, i.options, count(*),"
        " iif(max(r.distinct_digests) = 1 AND min(r.digest) = max(r.digest),"
        " min(r.digest), NULL) FROM run r JOIN job_item i ON i.job = r.job"
        " AND i.seq = r.item WHERE r.cell = ?1 AND r.outcome = 'completed'"
        " GROUP BY r.device, i.options),"
        " fresh (cell, device, options, runs, digest) AS ("
        " SELECT * FROM fresh_device UNION ALL"
        " SELECT cell, '', options, sum(runs), iif(max(digest IS NULL), NULL, '')"
        " FROM fresh_device GROUP BY options),"
        " stored (cell, device, options, runs, digest) AS (" ALIKE_ROWS
        ")"
        " SELECT (SELECT " ALIKE_TEXT
        " FROM (SELECT * FROM stored EXCEPT"
        " SELECT * FROM fresh)), (SELECT " ALIKE_TEXT
        " FROM (SELECT * FROM fresh EXCEPT"
        " SELECT * FROM stored))");
    query_bind_int(&q, cell);
    ret_stored[0] = ret_fresh[0] = '\0';
    if (query_step(&q)) {
        query_take_text(&q, ret_stored, CELLS_ALIKE_TEXT_SIZE);
        query_take_text(&q, ret_fresh, CELLS_ALIKE_TEXT_SIZE);
    }
    return query_end(&q, err);
}
