#include "db/upkeep/fsck_derived.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/base/array.h"
#include "daemon/base/id.h"
#include "db/dissent/device_states.h"
#include "db/tx.h"

struct derived_check {
    struct tx *tx;
    bool (*differs)(void *arg, int64_t cell, const char *line);
    void *arg;
    struct fsck_derived *counts;
};

static void tell(struct derived_check *c, const char *line)
{
    c->counts->others_differing += c->differs(c->arg, 0, line);
}

/* Runs that are alike in all that is counted here: each run is read once. */
static enum err_code gather_runs(struct tx *tx, struct err *err)
{
    if (tx_run(tx, err,
               "CREATE TEMP TABLE ran (job, item, case_key, device, on_device,"
               " environment, outcome, refused, challenge, input_digest, runs, first_run,"
               " last_run, first_ms, last_ms, milliseconds, PRIMARY KEY (job, item,"
               " case_key, environment, outcome, refused, challenge, input_digest,"
               " device, on_device)) WITHOUT ROWID") != ERR_OK) {
        return err->code;
    }
    return tx_run(tx, err,
                  "INSERT INTO temp.ran SELECT job, item, case_key, device,"
                  " ifnull(device_read_back, device) = device, ifnull(environment, 0),"
                  " ifnull(outcome, ''), refused, challenge, ifnull(input_digest, ''), 1,"
                  " id, id, ifnull(started_ms, intent_ms), ifnull(finished_ms, 0),"
                  " ifnull(wall_ns, 0) / 1000000 FROM run NOT INDEXED WHERE true"
                  " ON CONFLICT DO UPDATE SET runs = runs + 1,"
                  " first_run = min(first_run, excluded.first_run),"
                  " last_run = max(last_run, excluded.last_run),"
                  " first_ms = min(first_ms, excluded.first_ms),"
                  " last_ms = max(last_ms, excluded.last_ms),"
                  " milliseconds = milliseconds + excluded.milliseconds");
}

/* What is derived from runs one by one, and has no checksum: the cell, or 0 and words
 * that say which row it is, and that stay the same while runs are added.  The run with
 * the last digest is mostly the last one of its cell. */
#define SEEN                                                                             \
    "(SELECT environment, min(first) AS first, max(last) AS last"                        \
    " FROM (SELECT environment, first_ms AS first, last_ms AS last FROM temp.ran"        \
    " WHERE environment <> 0 AND outcome <> '' UNION ALL SELECT c.environment,"          \
    " s.first_ms, s.last_ms FROM run_summary s JOIN cell c ON c.id = s.cell)"            \
    " GROUP BY 1)"

/* Run r, with its item i, is the last that cell_device d has seen.  It is mostly the one
 * with the greatest id: of thousands of devices, each would else be looked for among the
 * runs of all. */
#define SHOWED_IT_LAST                                                                   \
    "r.cell = d.cell AND r.device = d.device AND i.options = d.options"                  \
    " AND r.outcome = 'completed' AND r.finished_ms = d.last_ms"                         \
    " AND r.digest = d.last_digest AND " DEVICE_STATE_OF("r.device",                     \
                                                         "r.id") " = d.state"

static const struct derived {
    const char *what, *sql;
} derived[] = {
    { "sums of a digest that are not those of its run",
      "SELECT c.cell FROM cell_digest c LEFT JOIN run r ON r.id = c.run"
      " WHERE (c.run IS NULL AND (c.weight_sum IS NOT NULL OR c.loss IS NOT NULL))"
      " OR (c.run IS NOT NULL AND (r.cell IS NOT c.cell"
      " OR r.weight_sum IS NOT c.weight_sum OR r.loss IS NOT c.loss))" },
    { "a last digest of a device that no run has",
      "SELECT d.cell FROM cell_device d WHERE NOT EXISTS (SELECT 1 FROM run r"
      " JOIN job_item i ON i.job = r.job AND i.seq = r.item WHERE r.id = d.last_run"
      " AND " SHOWED_IT_LAST ") AND (SELECT 1 FROM run r INDEXED BY run_cell"
      " JOIN job_item i ON i.job = r.job AND i.seq = r.item WHERE " SHOWED_IT_LAST
      " ORDER BY r.id DESC LIMIT 1) IS NULL"
      " AND NOT EXISTS (SELECT 1 FROM run_summary s JOIN job_item i ON i.job "
      "= s.job"
      " AND i.seq = s.item WHERE s.cell = d.cell AND i.device = d.device"
      " AND i.options = d.options AND NOT s.refused AND s.last_ms = d.last_ms"
      " AND s.digest = d.last_digest"
      " AND " DEVICE_STATE_OF("i.device", "s.first_run") " = d.state)" },
    { "an environment of a device that its run did not report",
      "SELECT 0, format('%s, %s, %d', d.device, d.stack, d.environment)"
      " FROM device_stack_environment d WHERE NOT EXISTS (SELECT 1 FROM run r"
      " JOIN job_item i ON i.job = r.job AND i.seq = r.item"
      " JOIN case_key k ON k.number = r.case_key WHERE r.id = d.run"
      " AND r.device = d.device AND r.environment = d.environment"
      " AND d.stack IN (i.stack, i.stack || '/' || k.workload))" },
    { "an environment of a device with other first and last runs",
      "WITH seen AS (SELECT r.device, i.stack || iif(i.stack = 'external'"
      " OR i.stack GLOB 'external-*', '/' || k.workload, ''), r.environment,"
      " min(r.first_run), max(r.last_run) FROM temp.ran r JOIN job_item i"
      " ON i.job = r.job AND i.seq = r.item JOIN case_key k ON k.number = r.case_key"
      " WHERE r.environment <> 0 AND r.on_device GROUP BY 1, 2, 3)"
      " SELECT DISTINCT 0, format('%s, %s, %d', device, stack, environment)"
      " FROM (SELECT device, stack, environment, first_run, last_run"
      " FROM device_environment EXCEPT SELECT * FROM seen"
      " UNION ALL SELECT * FROM (SELECT * FROM seen EXCEPT SELECT device, stack,"
      " environment, first_run, last_run FROM device_environment))" },
    { "a device without the environment that a stack has there",
      "SELECT 0, format('%s, %s', device, stack)"
      " FROM (SELECT device, stack FROM device_environment UNION"
      " SELECT device, substr(stack, 1, instr(stack, '/') - 1) FROM device_environment"
      " WHERE stack GLOB '*/*' EXCEPT SELECT device, stack FROM"
      " device_stack_environment)" },
    { "an environment that was first seen at another time than its runs",
      "SELECT 0, format('%d, %d', e.number, e.first_seen_ms)"
      " FROM environment e LEFT JOIN " SEEN " s ON s.environment = e.number"
      " WHERE iif(s.first IS NULL, e.cells > 0, e.first_seen_ms <> s.first)" },
    { "an environment that was last seen at another time than its runs",
      "SELECT 0, format('%d, %d', e.number, e.last_seen_ms)"
      " FROM environment e LEFT JOIN " SEEN " s ON s.environment = e.number"
      " WHERE iif(s.last IS NULL, e.cells > 0, e.last_seen_ms <> s.last)" },
    { "an environment with another count of cells",
      "SELECT 0, format('%d, %+d', e.number, e.cells - e.counted)"
      " FROM (SELECT number, cells, (SELECT count(*) FROM cell c"
      " WHERE c.environment = number) AS counted FROM environment) e"
      " WHERE e.cells <> e.counted" },
    { "an item with other counts than its runs",
      "SELECT 0, format('%s/%d, answered %+d, failed %+d, unanswered %+d, %+d ms',"
      " ifnull((SELECT id FROM job WHERE number = job), job), item, answered, failed,"
      " unanswered, more) FROM (SELECT job, item, sum(answered) AS answered,"
      " sum(failed) AS failed, sum(unanswered) AS unanswered, sum(ms) AS more,"
      " max(is_item) AS is_item FROM (SELECT job, seq AS item, runs_answered AS answered,"
      " runs_failed AS failed, runs_unanswered AS unanswered, milliseconds AS ms,"
      " 1 AS is_item FROM job_item UNION ALL SELECT job, item,"
      " -runs * (outcome IN ('completed', 'unsupported', 'timeout', 'crashed',"
      " 'out_of_memory', 'invalid')), -runs * (outcome IN ('timeout', 'crashed',"
      " 'out_of_memory', 'invalid')), -runs * (outcome IN ('lost', 'infra')),"
      " -milliseconds * (outcome <> ''), 0 FROM temp.ran WHERE NOT challenge"
      " UNION ALL SELECT job, item, -runs, -iif(refused, runs, 0), 0, -milliseconds, 0"
      " FROM run_summary) GROUP BY 1, 2) WHERE is_item"
      " AND (answered, failed, unanswered, more) <> (0, 0, 0, 0)" },
};

static enum err_code check_by_sql(struct derived_check *c, struct err *err)
{
    for (int i = 0; i < COUNT_OF(derived); i++) {
        struct query q;

        query_begin(&q, c->tx, derived[i].sql);
        while (query_step(&q)) {
            int64_t cell = query_take_int(&q);
            char line[320];

            if (cell) {
                c->counts->cells_differing += c->differs(c->arg, cell, derived[i].what);
            } else {
                snprintf(line, sizeof line, "there is %s: %s", derived[i].what,
                         query_borrow_text(&q));
                tell(c, line);
            }
        }
        if (query_end(&q, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

/* A verdict may depend on a control of other cases if this is wrong. */
static enum err_code check_siblings(struct derived_check *c, struct err *err)
{
    struct query q;

    query_begin(&q, c->tx,
                "SELECT k.number, k.siblings, o.number FROM case_key k JOIN case_key o"
                " ON o.workload = k.workload AND o.version = k.version"
                " AND o.size = k.size AND o.dtype = k.dtype AND o.seed = k.seed"
                " WHERE o.number < k.number AND o.siblings <> k.siblings"
                " UNION ALL SELECT k.number, k.siblings, o.number FROM case_key k"
                " JOIN case_key o ON o.siblings = k.siblings"
                " WHERE o.number < k.number AND (o.workload, o.version, o.size, o.dtype,"
                " o.seed) <> (k.workload, k.version, k.size, k.dtype, k.seed)");
    while (query_step(&q)) {
        int64_t number, siblings, other;
        char line[160];

        query_take(&q, &number, &siblings, &other);
        snprintf(line, sizeof line,
                 "case %" PRId64
                 ": it is not with its siblings, but with those of case"
                 " %" PRId64 ": compare case %" PRId64,
                 number, siblings, other);
        tell(c, line);
    }
    return query_end(&q, err);
}

/* Which inputs count as those of a case follows from its runs. */
static enum err_code check_inputs(struct derived_check *c, struct err *err)
{
    struct query q;

    query_begin(&q, c->tx,
                "WITH seen (siblings, digest, device, runs, run) AS ("
                " SELECT k.siblings, r.input_digest, r.device, sum(r.runs),"
                " min(r.first_run) FROM temp.ran r"
                " JOIN case_key k ON k.number = r.case_key"
                " WHERE r.outcome = 'completed' OR r.refused GROUP BY 1, 2, 3"
                " UNION ALL SELECT k.siblings, s.input_digest, i.device, s.runs,"
                " s.first_run FROM run_summary s"
                " JOIN job_item i ON i.job = s.job AND i.seq = s.item"
                " JOIN case_key k ON k.number = i.case_key),"
                " fresh (siblings, digest, device, runs, run) AS"
                " (SELECT siblings, digest, device, sum(runs), min(run)"
                " FROM seen GROUP BY 1, 2, 3)"
                " SELECT siblings, format('%s on %s, %+d runs%s', digest, device,"
                " sum(runs), iif(max(stored) IS max(found), '', ', another first run'))"
                " FROM (SELECT siblings, digest, device, runs, run AS stored,"
                " NULL AS found FROM case_input UNION ALL"
                " SELECT siblings, digest, device, -runs, NULL, run FROM fresh)"
                " GROUP BY siblings, digest, device"
                " HAVING sum(runs) <> 0 OR max(stored) IS NOT max(found)");
    while (query_step(&q)) {
        int64_t number = query_take_int(&q);
        char line[320];

        snprintf(line, sizeof line,
                 "case %" PRId64 ": its inputs are not those of its runs: %s", number,
                 query_borrow_text(&q));
        tell(c, line);
    }
    return query_end(&q, err);
}

static enum err_code check_jobs(struct derived_check *c, struct err *err)
{
    struct query q;

    query_begin(&q, c->tx,
                "SELECT j.id, j.runs_total - sum(iif(i.given_up_reason IS NOT NULL,"
                " i.runs_answered, max(i.runs_wanted, i.runs_answered))),"
                " j.runs_done - sum(i.runs_answered), j.runs_failed - sum(i.runs_failed),"
                " j.items_open - sum(i.given_up_reason IS NULL"
                " AND i.runs_answered < i.runs_wanted),"
                " j.items_open = 0 AND j.state = 'running' AND NOT EXISTS"
                " (SELECT 1 FROM localisation l WHERE l.job = j.number"
                " AND l.ended_ms IS NULL),"
                " sum(i.runs_answered) - (SELECT ifnull(sum(r.runs), 0) FROM temp.ran r"
                " WHERE r.job = j.number AND NOT r.challenge AND r.outcome IN"
                " ('completed', 'unsupported',"
                " 'timeout', 'crashed', 'out_of_memory', 'invalid')) - (SELECT"
                " ifnull(sum(s.runs), 0) FROM run_summary s WHERE s.job = j.number)"
                " FROM job j CROSS JOIN job_item i ON i.job = j.number"
                " GROUP BY j.number");
    while (query_step(&q)) {
        int64_t total, done, failed, open, goes_on, runs;
        char id[ID_SIZE], line[240];

        query_take(&q, id, &total, &done, &failed, &open, &goes_on, &runs);
        c->counts->jobs++;
        if (!total && !done && !failed && !open && !goes_on && !runs) {
            continue;
        }
        snprintf(line, sizeof line,
                 "job %s: its counts are not those of its runs: %+" PRId64
                 " of all, %+" PRId64 " done, %+" PRId64 " failed, %+" PRId64
                 " open items%s, %+" PRId64 " that are on record",
                 id, total, done, failed, open, goes_on ? ", it does not end" : "", runs);
        c->counts->jobs_differing += c->differs(c->arg, 0, line);
    }
    return query_end(&q, err);
}

typedef enum err_code (*part_fn)(struct derived_check *c, struct err *err);

enum err_code fsck_derived_check(struct tx *tx,
                                 bool (*differs)(void *arg, int64_t cell,
                                                 const char *line),
                                 void *arg, struct fsck_derived *counts, struct err *err)
{
    static const part_fn parts[] = { check_by_sql, check_siblings, check_inputs,
                                     check_jobs };
    struct derived_check c = {
        .tx = tx, .differs = differs, .arg = arg, .counts = counts
    };
    struct err ignored;
    enum err_code code = tx_run(tx, err, "BEGIN");

    if (code != ERR_OK) {
        return code;
    }
    code = gather_runs(tx, err);
    for (int i = 0; i < COUNT_OF(parts) && code == ERR_OK; i++) {
        code = parts[i](&c, err);
    }
    tx_run(tx, &ignored,
           "ROLLBACK"); /* and the table is gone; a COMMIT may fail on damage */
    return code;
}
