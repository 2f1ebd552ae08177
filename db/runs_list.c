#include "db/case_keys.h"
#include "db/runs.h"
#include "db/tx.h"

#define RUN_COLUMNS                                                                      \
    "r.id, j.id, r.item, " CASE_KEY_COLUMNS                                              \
    ", r.device, i.stack, e.id, r.cell,"                                                 \
    " r.outcome, r.cause, r.intent_ms, r.started_ms, r.finished_ms, r.pid,"              \
    " r.process_start, r.boot_id, r.iterations, r.distinct_digests, r.digest,"           \
    " r.input_digest, r.weight_sum, r.loss, r.algorithm, r.claim, r.min_ns,"             \
    " r.median_ns, r.max_ns, r.elements, r.bytes_hashed, r.device_read_back, r.wall_ns," \
    " r.max_rss_kb, t.records, t.dropped, r.circumstances"

#define RUN_JOINS                                                                        \
    " CROSS JOIN job j ON j.number = r.job"                                              \
    " CROSS JOIN job_item i ON i.job = r.job AND i.seq = r.item"                         \
    " LEFT JOIN environment e ON e.number = r.environment"                               \
    " LEFT JOIN run_trace t ON t.run = r.id"

/* The parameters of every list: ?1 before, ?2 limit, and, NULL for any, ?3 job, ?4 cell,
 * ?5 workload, ?6 variant, ?7 device, ?8 outcome. */
#define RUN_FILTERS(run)                                                                 \
    " AND (?3 IS NULL OR " run                                                           \
    ".job = (SELECT number FROM job WHERE id = ?3))"                                     \
    " AND (?4 IS NULL OR " run                                                           \
    ".cell = ?4)"                                                                        \
    " AND (?7 IS NULL OR " run                                                           \
    ".device = ?7)"                                                                      \
    " AND (?8 IS NULL OR " run ".outcome = ?8)"
#define CASE_FILTERS " (?5 IS NULL OR k.workload = ?5) AND (?6 IS NULL OR k.variant = ?6)"

/* A walk along INDEX, newest first. */
#define RUN_LIST(index, condition)                                                       \
    "SELECT " RUN_COLUMNS " FROM run r " index                                           \
    " CROSS JOIN case_key k ON k.number = r.case_key" RUN_JOINS " WHERE " condition      \
    " r.id < ?1" RUN_FILTERS("r") " AND" CASE_FILTERS " ORDER BY r.id DESC LIMIT ?2"

static const char BY_ID[] = RUN_LIST("", "");
static const char BY_CELL[] = RUN_LIST("INDEXED BY run_cell", "r.cell = ?4 AND");
static const char BY_JOB[] =
    RUN_LIST("INDEXED BY run_job", "r.job = (SELECT number FROM job WHERE id = ?3) AND");
static const char BY_DEVICE[] = RUN_LIST("INDEXED BY run_device", "r.device = ?7 AND");
static const char BY_OUTCOME[] = RUN_LIST(
    "INDEXED BY run_not_completed", "r.outcome = ?8 AND r.outcome <> 'completed' AND");

/* The newest of each case that matches, then the newest of these: a workload that was run
 * once, years ago, is found as fast as any. */
static const char BY_CASE[] =
    "SELECT " RUN_COLUMNS
    " FROM case_key k CROSS JOIN run r ON r.id IN"
    " (SELECT x.id FROM run x INDEXED BY run_case_key WHERE x.case_key = k.number"
    " AND x.id < ?1" RUN_FILTERS("x") " ORDER BY x.id DESC LIMIT ?2)" RUN_JOINS
                                      " WHERE" CASE_FILTERS
                                      " ORDER BY r.id DESC LIMIT ?2";

static const char GET[] =
    "SELECT " RUN_COLUMNS
    " FROM run r"
    " CROSS JOIN case_key k ON k.number = r.case_key" RUN_JOINS " WHERE r.id = ?";

static void take_identity(struct query *q, struct run_record *ret_run)
{
    query_take_text(q, ret_run->id, sizeof ret_run->id);
    query_take_text(q, ret_run->job, sizeof ret_run->job);
    ret_run->item = (int)query_take_int(q);
    case_keys_take(q, &ret_run->key);
    query_take_text(q, ret_run->device, sizeof ret_run->device);
    query_take_text(q, ret_run->stack, sizeof ret_run->stack);
    query_take_text(q, ret_run->environment, sizeof ret_run->environment);
    ret_run->cell = query_take_int(q);
    ret_run->finished = !query_next_is_null(q);
    /* The table's CHECK keeps other names out. */
    if (outcome_parse(query_borrow_text(q), &ret_run->outcome) != 0) {
        ret_run->outcome = OUTCOME_LOST;
    }
    query_take_text(q, ret_run->cause, sizeof ret_run->cause);
}

static void take_process(struct query *q, struct run_record *ret_run)
{
    ret_run->intent_ms = query_take_int(q);
    ret_run->started_ms = query_take_int(q);
    ret_run->finished_ms = query_take_int(q);
    ret_run->pid = query_take_int(q);
    ret_run->process_start = query_take_int(q);
    query_take_text(q, ret_run->boot_id, sizeof ret_run->boot_id);
}

static void take_results(struct query *q, struct run_record *ret_run)
{
    ret_run->iterations = query_take_int(q);
    ret_run->distinct_digests = query_take_int(q);
    query_take_text(q, ret_run->digest, sizeof ret_run->digest);
    query_take_text(q, ret_run->input_digest, sizeof ret_run->input_digest);
    query_take_text(q, ret_run->weight_sum, sizeof ret_run->weight_sum);
    query_take_text(q, ret_run->loss, sizeof ret_run->loss);
    query_take_text(q, ret_run->algorithm, sizeof ret_run->algorithm);
    query_take_text(q, ret_run->claim, sizeof ret_run->claim);
    ret_run->min_ns = query_take_int(q);
    ret_run->median_ns = query_take_int(q);
    ret_run->max_ns = query_take_int(q);
    ret_run->elements = query_take_int(q);
    ret_run->bytes_hashed = query_take_int(q);
    query_take_text(q, ret_run->device_read_back, sizeof ret_run->device_read_back);
    ret_run->wall_ns = query_take_int(q);
    ret_run->max_rss_kb = query_take_int(q);
    ret_run->trace_records = query_take_int(q);
    ret_run->trace_dropped = query_take_int(q);
    query_take_text(q, ret_run->circumstances, sizeof ret_run->circumstances);
}

static void take_run(struct query *q, struct run_record *ret_run)
{
    take_identity(q, ret_run);
    take_process(q, ret_run);
    take_results(q, ret_run);
}

enum err_code runs_get(struct tx *tx, const char *id, struct run_record *ret_run,
                       struct err *err)
{
    struct query q;
    bool found;

    query_begin(&q, tx, GET);
    query_bind_text(&q, id);
    found = query_step(&q);
    if (found) {
        take_run(&q, ret_run);
    }
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    return found ? ERR_OK : err_set(err, ERR_NOT_FOUND, "no run %s", id);
}

/* The index whose walk passes over the fewest runs in vain. */
static const char *choose(const struct runs_filter *filter)
{
    if (filter->cell) {
        return BY_CELL;
    }
    if (filter->job[0]) {
        return BY_JOB;
    }
    if (filter->workload[0] || filter->variant[0]) {
        return BY_CASE;
    }
    if (filter->by_outcome && filter->outcome != OUTCOME_COMPLETED) {
        return BY_OUTCOME;
    }
    return filter->device[0] ? BY_DEVICE : BY_ID;
}

enum err_code runs_list(struct tx *tx, const struct runs_filter *filter,
                        const char *before, int limit,
                        void (*visit)(void *arg, const struct run_record *run), void *arg,
                        struct err *err)
{
    struct query q;

    query_begin(&q, tx, choose(filter));
    query_bind_text(&q, before && *before ? before : "~");
    query_bind_int(&q, limit);
    query_bind_text_or_null(&q, filter->job);
    query_bind_int_or_null(&q, filter->cell);
    query_bind_text_or_null(&q, filter->workload);
    query_bind_text_or_null(&q, filter->variant);
    query_bind_text_or_null(&q, filter->device);
    query_bind_text(&q, filter->by_outcome ? outcome_name(filter->outcome) : NULL);
    while (query_step(&q)) {
        struct run_record run;

        take_run(&q, &run);
        visit(arg, &run);
    }
    return query_end(&q, err);
}
