/* The end of a run (runs_finish of db/runs.h): everything that follows from its result,
 * in one transaction. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/trace/outputs.h"
#include "db/captures.h"
#include "db/case_keys.h"
#include "db/cases/challenges.h"
#include "db/cells_judge.h"
#include "db/dissent/more_runs.h"
#include "db/fleet.h"
#include "db/inputs.h"
#include "db/jobs_progress.h"
#include "db/runs.h"
#include "db/traces.h"
#include "db/tx.h"

/* A run that is being finished: what was stored before, then the result. */
struct finishing {
    struct tx *tx;
    const struct run_result *result;
    struct run_record run;                         /* as it will be stored */
    int64_t job, case_key, environment, libraries; /* numbers; 0: none */
    int64_t siblings;
    bool has_rows; /* of digests, or of its check */
    bool refused;  /* invalid for its inputs alone */
    bool turned;   /* the inputs of the case are others than before, or contested */
    struct inputs inputs;
};

/* Its times were read at three moments, and perhaps by two services, of which the later
 * one knew an earlier time: nothing ends before it began. */
static void put_in_order(struct run_record *run)
{
    if (run->started_ms && run->started_ms < run->intent_ms) {
        run->started_ms = run->intent_ms;
    }
    if (run->finished_ms < run->started_ms) {
        run->finished_ms = run->started_ms;
    }
    if (run->finished_ms < run->intent_ms) {
        run->finished_ms = run->intent_ms;
    }
}

static enum err_code load_intent(struct finishing *f, struct err *err)
{
    struct run_record *run = &f->run;
    struct query q;
    bool found;
    bool finished = false;

    query_begin(&q, f->tx,
                "SELECT r.outcome IS NOT NULL, r.job, r.case_key, j.id, r.item, r.device,"
                " i.stack, r.intent_ms, r.started_ms, k.siblings, k.workload, k.version, "
                "k.variant,"
                " k.size, k.dtype, k.seed, r.challenge, r.asked"
                " FROM run r JOIN job j ON j.number = r.job"
                " JOIN job_item i ON i.job = r.job AND i.seq = r.item"
                " JOIN case_key k ON k.number = r.case_key WHERE r.id = ?",
                run->id);
    found = query_step(&q);
    if (found) {
        int64_t started;

        query_take(&q, &finished, &f->job, &f->case_key, run->job, &run->item,
                   run->device, run->stack, &run->intent_ms, &started, &f->siblings);
        run->started_ms = started ? started : run->started_ms;
        put_in_order(run);
        case_keys_take(&q, &run->key);
        run->is_challenge = query_take_int(&q);
        if (!query_take_int(&q)) {
            run->check = (struct run_check){ .state = CHECK_NONE };
        } else if (run->check.state == CHECK_NONE) {
            run->check.state = CHECK_ASKED;
        }
    }
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    if (!found) {
        return err_set(err, ERR_NOT_FOUND, "no run %s", run->id);
    }
    return finished ? err_set(err, ERR_CONFLICT, "run %s is finished already", run->id)
                    : ERR_OK;
}

/* The verdict depends on the digests, so they must not contradict the run. */
static enum err_code check_digests(const struct finishing *f, struct err *err)
{
    const struct run_result *result = f->result;
    const struct run_record *run = &f->run;
    int64_t iterations = 0;
    bool first = false;

    if (run->outcome != OUTCOME_COMPLETED) {
        return ERR_OK;
    }
    for (int i = 0; i < result->digest_count; i++) {
        iterations += result->digests[i].iterations;
        first = first || (result->digests[i].first_iteration == 0 &&
                          strcmp(result->digests[i].digest, run->digest) == 0);
    }
    if (result->digest_count != run->distinct_digests || iterations != run->iterations ||
        !first) {
        return err_set(err, ERR_INVALID,
                       "run %s says %" PRId64 " digests of %" PRId64
                       " iterations, and lists %d of %" PRId64,
                       run->id, run->distinct_digests, run->iterations,
                       result->digest_count, iterations);
    }
    return ERR_OK;
}

/* The digest that the weight sum and the loss are of, which are the last iteration's;
 * NULL where an earlier iteration showed it, too. */
static const char *digest_of_sums(const struct finishing *f)
{
    const struct run_result *result = f->result;

    for (int i = 0; i < result->digest_count; i++) {
        if (result->digest_count == 1 ||
            result->digests[i].first_iteration == f->run.iterations - 1) {
            return result->digests[i].digest;
        }
    }
    return NULL;
}

__attribute__((format(printf, 2, 3))) static void contradict(struct run_record *run,
                                                             const char *format, ...)
{
    va_list args;

    run->outcome = OUTCOME_INVALID;
    va_start(args, format);
    vsnprintf(run->cause, sizeof run->cause, format, args);
    va_end(args);
}

static enum err_code check_sums(struct finishing *f, struct err *err)
{
    const char *digest = digest_of_sums(f);
    struct run_record *run = &f->run;
    char other[ID_SIZE] = "";
    char weight_sum[BITS_TEXT_SIZE];
    char loss[BITS_TEXT_SIZE];

    if (!digest) {
        return ERR_OK;
    }
    if (tx_fetch(f->tx, TX_TARGETS(other, weight_sum, loss), err,
                 "SELECT run, weight_sum, loss FROM cell_digest WHERE cell = ?"
                 " AND digest = ? AND run IS NOT NULL",
                 run->cell, digest) != ERR_OK) {
        return err->code;
    }
    if (other[0] &&
        (strcmp(weight_sum, run->weight_sum) != 0 || strcmp(loss, run->loss) != 0)) {
        contradict(run,
                   "digest %s has a weight sum with bits %s and a loss with bits %s; in "
                   "run %s of the same case they are %s and %s",
                   digest, run->weight_sum, run->loss[0] ? run->loss : "none", other,
                   weight_sum, loss[0] ? loss : "none");
    }
    return ERR_OK;
}

/* What was recorded as an output says more than the digest of it, or says the same. */
static enum err_code check_outputs(struct finishing *f, struct err *err)
{
    const struct run_result *result = f->result;
    struct trace trace = { .count = 0 };
    char other[ID_SIZE] = "";
    const char *place;

    if (!result->trace || result->digest_count != 1) {
        return ERR_OK;
    }
    place = trace_outputs_vary(result->trace);
    if (place) {
        contradict(&f->run, "iterations with digest %s recorded different outputs as %s",
                   result->digests[0].digest, place);
        return ERR_OK;
    }
    if (tx_fetch(f->tx, TX_TARGETS(other), err,
                 "SELECT id FROM run r WHERE cell = ? AND outcome = 'completed' AND"
                 " digest = ? AND distinct_digests = 1 AND EXISTS (SELECT 1 FROM"
                 " run_trace t WHERE t.run = r.id) ORDER BY id LIMIT 1",
                 f->run.cell, result->digests[0].digest) != ERR_OK) {
        return err->code;
    }
    /* One that is damaged is fsck's to tell. */
    if (other[0] && runs_trace(f->tx, other, &trace, NULL, err) == ERR_IO) {
        return err->code;
    }
    place = trace_outputs_differ(result->trace, &trace);
    if (place) {
        contradict(&f->run,
                   "digest %s: run %s of the same case recorded another output as %s",
                   result->digests[0].digest, other, place);
    }
    trace_release(&trace);
    return ERR_OK;
}

static enum err_code check_work(struct finishing *f, struct err *err)
{
    struct run_record *run = &f->run;
    char other[ID_SIZE] = "";
    int64_t elements;
    int64_t bytes;

    if (tx_fetch(f->tx, TX_TARGETS(other, &elements, &bytes), err,
                 "SELECT id, elements, bytes_hashed / iterations FROM run WHERE cell = ?"
                 " AND outcome = 'completed' ORDER BY id LIMIT 1",
                 run->cell) != ERR_OK) {
        return err->code;
    }
    if (other[0] &&
        (elements != run->elements || bytes != run->bytes_hashed / run->iterations)) {
        contradict(run,
                   "%" PRId64 " elements and %" PRId64
                   " bytes hashed an iteration; run %s of the same case has %" PRId64
                   " and %" PRId64,
                   run->elements, run->bytes_hashed / run->iterations, other, elements,
                   bytes);
    }
    return ERR_OK;
}

/* Runs of a cell compute the same: one that did other work, or says of the same bits that
 * their sums are others, becomes `invalid`. */
static enum err_code check_others(struct finishing *f, struct err *err)
{
    if (f->run.outcome != OUTCOME_COMPLETED || !f->run.cell) {
        return ERR_OK;
    }
    if (check_work(f, err) != ERR_OK || check_sums(f, err) != ERR_OK) {
        return err->code;
    }
    return f->run.outcome == OUTCOME_COMPLETED ? check_outputs(f, err) : ERR_OK;
}

static bool are_same(const struct inputs *a, const struct inputs *b)
{
    return a->contested == b->contested && strcmp(a->digest, b->digest) == 0 &&
           strcmp(a->words, b->words) == 0;
}

/* Nobody says otherwise, so one more that says DIGEST changes nothing. */
static bool agrees(const struct inputs *inputs, const char *digest)
{
    return !inputs->contested && !inputs->words[0] && strcmp(inputs->digest, digest) == 0;
}

/* All runs of a case compute from the same inputs, whatever the variant, device or
 * environment: a completed run with others than those of the case becomes `invalid`.  It
 * has its say in which these are, and then others may be the ones to refuse. */
static enum err_code check_inputs(struct finishing *f, struct err *err)
{
    struct run_record *run = &f->run;
    struct inputs before;

    if (run->outcome != OUTCOME_COMPLETED) {
        return ERR_OK;
    }
    if (case_inputs_load(f->tx, f->siblings, &before, err) != ERR_OK ||
        case_inputs_add(f->tx, f->siblings, run->input_digest, run->device, run->id,
                        err) != ERR_OK) {
        return err->code;
    }
    f->inputs = before;
    if (!agrees(&before, run->input_digest) &&
        case_inputs_load(f->tx, f->siblings, &f->inputs, err) != ERR_OK) {
        return err->code;
    }
    f->turned =
        before.contested || before.digest[0] ? !are_same(&before, &f->inputs) : false;
    if (!f->turned && !before.digest[0] &&
        challenges_recount(f->tx, f->siblings, err) != ERR_OK) {
        return err->code;
    }
    if (!f->inputs.contested && strcmp(f->inputs.digest, run->input_digest) != 0) {
        f->refused = true;
        run->outcome = OUTCOME_INVALID;
        case_inputs_cause(run->input_digest, f->inputs.digest, run->cause,
                          sizeof run->cause);
    }
    return ERR_OK;
}

static enum err_code store_digests(struct finishing *f, struct err *err)
{
    const struct run_result *result = f->result;

    f->has_rows = result->digest_count > 1;
    for (int i = 0; f->has_rows && i < result->digest_count; i++) {
        if (tx_run(f->tx, err,
                   "INSERT INTO run_digest (run, digest, iterations, first_iteration)"
                   " VALUES (?, ?, ?, ?)",
                   f->run.id, result->digests[i].digest, result->digests[i].iterations,
                   result->digests[i].first_iteration) != ERR_OK) {
            return err_wrap(err, "digests of run %s", f->run.id);
        }
    }
    return ERR_OK;
}

/* What a run says that did not complete is not taken, but that it was cut off. */
static bool is_answered(const struct finishing *f)
{
    enum check_state state = f->run.check.state;

    return state != CHECK_ASKED &&
           (f->run.outcome == OUTCOME_COMPLETED || f->refused || state == CHECK_CUT_OFF);
}

/* A row that another program left must not keep the run open for ever. */
static enum err_code store_check(struct finishing *f, struct err *err)
{
    static const struct run_check asked = { .state = CHECK_ASKED };
    const struct run_check *check = is_answered(f) ? &f->run.check : &asked;

    if (f->run.check.state == CHECK_NONE || check->state == CHECK_KNOWN) {
        return ERR_OK;
    }
    f->has_rows = true;
    return tx_run(f->tx, err,
                  "INSERT INTO run_check (run, state, digest, share_ppm, words)"
                  " VALUES (?, ?, ?, ?, ?) ON CONFLICT (run) DO UPDATE SET"
                  " state = excluded.state, digest = excluded.digest,"
                  " share_ppm = excluded.share_ppm, words = excluded.words",
                  f->run.id, check_state_name(check->state), or_null(check->digest),
                  check->share_ppm, or_null(check->words));
}

static enum err_code store_telemetry(struct finishing *f, struct err *err)
{
    const struct run_result *result = f->result;

    if (!result->telemetry_start && !result->telemetry_end) {
        return ERR_OK;
    }
    return tx_run(f->tx, err,
                  "INSERT INTO run_telemetry (run, at_start, at_end, sum)"
                  " VALUES (?1, ?2, ?3, reprod_sum(?1, ?2, ?3))",
                  f->run.id, result->telemetry_start, result->telemetry_end) == ERR_OK
               ? ERR_OK
               : err_wrap(err, "telemetry of run %s", f->run.id);
}

static enum err_code store_log(struct finishing *f, struct err *err)
{
    if (!f->result->log || f->result->log_bytes == 0) {
        return ERR_OK;
    }
    return tx_run(f->tx, err,
                  "INSERT INTO run_log (run, log, written, sum)"
                  " VALUES (?1, ?2, ?3, reprod_sum(?1, ?2, ?3))",
                  f->run.id, tx_blob(f->result->log, f->result->log_length),
                  f->result->log_bytes);
}

#define SET_COLUMN(name)  ", " #name " = :" #name
#define SET_RESULTS       RUN_RESULTS(SET_COLUMN, SET_COLUMN, SET_COLUMN)
#define BIND_TEXT(name)   query_bind(&q, or_null(run->name));
#define BIND_COUNT(name)  query_bind(&q, run->name);
#define BIND_NUMBER(name) query_bind(&q, or_null(run->name));

#define STORE_RUN(sum)                                                                   \
    "UPDATE run SET started_ms = :started_ms, finished_ms = :finished_ms,"               \
    " environment = :environment, cell = :cell, challenged = :challenged,"               \
    " libraries = :libraries, outcome = :outcome, circumstances = :circumstances,"       \
    " refused = :refused" SET_RESULTS ", sum = " sum " WHERE id = :id"

/* After its digests and its check, which its sum is over: most runs have neither. */
static enum err_code store_run(struct finishing *f, struct err *err)
{
    const struct run_record *run = &f->run;
    struct query q;

    query_begin(&q, f->tx,
                f->has_rows ? STORE_RUN(RUN_SUM_BOUND) : STORE_RUN(RUN_SUM_BOUND_ALONE),
                or_null(run->started_ms), run->finished_ms, or_null(f->environment),
                or_null(run->cell), or_null(run->challenged), or_null(f->libraries),
                outcome_name(run->outcome), or_null(run->circumstances), f->refused);
    RUN_RESULTS(BIND_TEXT, BIND_COUNT, BIND_NUMBER)
    query_bind(&q, run->id);
    return query_run(&q, err) == ERR_OK ? ERR_OK : err_wrap(err, "run %s", run->id);
}

static enum err_code add_event(struct finishing *f, struct err *err)
{
    const struct run_record *run = &f->run;

    return tx_run(f->tx, err,
                  "INSERT INTO event (at_ms, kind, data) VALUES (?, 'run', json_object("
                  "'id', ?, 'job', ?, 'workload', ?, 'variant', ?, 'outcome', ?,"
                  " 'cell', ?, 'challenge', json(?)))",
                  run->finished_ms, run->id, run->job, run->key.workload,
                  run->key.variant, outcome_name(run->outcome),
                  run->is_challenge ? or_null(run->challenged) : or_null(run->cell),
                  run->is_challenge ? "true" : "false");
}

/* After all that decides about its outcome. */
static enum err_code place_challenge(struct finishing *f, struct err *err)
{
    f->run.challenged = 0;
    return f->run.is_challenge
               ? challenges_place(f->tx, f->job, &f->run, &f->run.challenged, err)
               : ERR_OK;
}

static enum err_code find_place(struct finishing *f, struct err *err)
{
    int64_t counted = 0;

    if (environments_store(f->tx, &f->run, f->result, &f->environment, &f->libraries,
                           err) != ERR_OK ||
        environments_of_run(f->tx, &f->run, f->environment, &counted, err) != ERR_OK) {
        return err->code;
    }
    f->run.cell = 0;
    return counted ? cells_place(f->tx, f->case_key, counted, f->job, f->run.item,
                                 &f->run.cell, err)
                   : ERR_OK;
}

static enum err_code count_answer(struct finishing *f, struct run_effect *effect,
                                  struct err *err)
{
    const struct jobs_answer answer = {
        .job = f->job,
        .item = f->run.item,
        .outcome = f->run.outcome,
        .cause = f->run.cause,
        .verdict = effect->verdict,
        .wall_ns = f->run.wall_ns,
        .now_ms = f->run.finished_ms,
    };

    return jobs_count_answer(f->tx, &answer, &effect->item_given_up,
                             &effect->job_finished, err);
}

/* What its own cell became matters to nobody who waits for this run. */
static enum err_code tell_challenged(struct finishing *f, struct run_effect *effect,
                                     struct err *err)
{
    effect->cell = f->run.challenged;
    effect->verdict = VERDICT_UNMEASURED;
    effect->verdict_changed = false;
    return f->run.challenged
               ? cells_challenged(f->tx, f->run.challenged, &f->run, &effect->verdict,
                                  &effect->verdict_changed, err)
               : ERR_OK;
}

enum err_code runs_finish(struct tx *tx, const struct run_result *result,
                          struct run_effect *ret_effect, struct err *err)
{
    struct finishing f = { .tx = tx, .result = result, .run = *result->run };
    struct cell_effect cell = { .agreement = DISSENT_NONE };

    *ret_effect = (struct run_effect){ .verdict = VERDICT_UNMEASURED };
    if (load_intent(&f, err) != ERR_OK || check_digests(&f, err) != ERR_OK ||
        find_place(&f, err) != ERR_OK || check_others(&f, err) != ERR_OK ||
        check_inputs(&f, err) != ERR_OK || place_challenge(&f, err) != ERR_OK ||
        store_digests(&f, err) != ERR_OK || store_check(&f, err) != ERR_OK ||
        store_run(&f, err) != ERR_OK || store_log(&f, err) != ERR_OK ||
        store_telemetry(&f, err) != ERR_OK ||
        runs_store_trace(tx, f.run.id, result->trace, err) != ERR_OK ||
        captures_store(tx, &f.run, result, err) != ERR_OK ||
        add_event(&f, err) != ERR_OK) {
        return err->code;
    }
    copy_text(ret_effect->job, sizeof ret_effect->job, f.run.job);
    ret_effect->item = f.run.item;
    ret_effect->is_challenge = f.run.is_challenge;
    ret_effect->outcome = f.run.outcome;
    ret_effect->cell = f.run.cell;
    if (f.run.cell && cells_fold(tx, &f.run, result->digests, result->digest_count, &cell,
                                 err) != ERR_OK) {
        return err->code;
    }
    ret_effect->verdict = f.run.cell ? cell.verdict : VERDICT_UNMEASURED;
    ret_effect->verdict_changed = cell.changed;
    /* A challenge says nothing of devices. */
    if ((f.run.is_challenge ? tell_challenged(&f, ret_effect, err)
         : more_runs_ask(tx, &f.run, cell.agreement, f.job, ret_effect, err) != ERR_OK
             ? err->code
             : count_answer(&f, ret_effect, err)) != ERR_OK) {
        return err->code;
    }
    return f.turned
               ? case_inputs_settle(tx, f.siblings, &f.inputs, f.run.finished_ms, err)
               : ERR_OK;
}
