/* GET /v1/cells/{id}, its history and its evidence: all that is known of one case in one
 * environment. */
#include "db/cells.h"
#include "daemon/base/array.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/cells.h"
#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/render/nouns_json.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "db/fleet.h"
#include "db/runs.h"
#include "db/views/spread.h"

/* Lines of text say less at a glance; all of them are behind "devices_href". */
enum { DEVICES_SHOWN = 64, DEVICES_IN_TEXT = 4, ALGORITHMS_SHOWN = 16 };

struct view {
    struct page page; /* of the history, or of the evidence */
    int64_t id;
    int64_t before_ms; /* of the history */
};

/* Keeps the cell that the path names. */
static struct view *keep_view(struct request *r)
{
    struct view *view = page_new(r, sizeof *view, 'h');

    view->id = parse_id(r->arguments[0]);
    return view;
}

static void evidence_json(struct json_out *out, const struct cell *cell)
{
    const struct evidence *e = &cell->evidence;
    bool same = e->distinct_digests == 1;

    out_open(out, "evidence", '{');
    out_int(out, "runs", e->runs[OUTCOME_COMPLETED]);
    out_int(out, "iterations", e->iterations);
    out_int(out, "devices", e->devices);
    out_int(out, "disturbed_runs", e->disturbed);
    out_int(out, "contended_runs", e->contended);
    out_int(out, "claimed_runs", e->claimed);
    out_int(out, "warned_runs", e->warned);
    out_int(out, "distinct_digests", e->distinct_digests);
    out_real(out, "difference_probability_upper_bound",
             same ? verdict_difference_bound(e->runs[OUTCOME_COMPLETED]) : 1);
    out_int(out, "completed_since_failure", e->completed_since_failure);
    out_time(out, "last_completed_at", e->last_completed_ms);
    out_open(out, "outcomes", '{');
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        out_int(out, outcome_name((enum outcome)i), e->runs[i]);
    }
    out_close(out, '}');
    out_close(out, '}');
}

/* What is known of all runs whose digest was checked: of those that failed if any did. */
static const char *checks_state(const struct checks *checks)
{
    enum check_state state = checks->failed > 0       ? CHECK_FAILED
                             : checks->passed > 0     ? CHECK_PASSED
                             : checks->given_up > 0   ? CHECK_GIVEN_UP
                             : checks->cut_off > 0    ? CHECK_CUT_OFF
                             : checks->unanswered > 0 ? CHECK_ASKED
                                                      : CHECK_NONE;

    return checks->has_reference ? check_state_name(state) : "no_reference";
}

static void checks_json(struct json_out *out, const struct checks *checks)
{
    out_open(out, "check", '{');
    out_text(out, "state", checks_state(checks));
    out_int(out, "passed", checks->passed);
    out_int(out, "failed", checks->failed);
    out_int(out, "given_up", checks->given_up);
    out_int(out, "cut_off", checks->cut_off);
    out_int(out, "unanswered", checks->unanswered);
    out_int(out, "digests_passed", checks->digests_passed);
    share_json(out, checks->passed > 0, checks->share_ppm);
    out_name(out, "worst", checks->failed_words);
    out_close(out, '}');
}

static const char *challenges_state(const struct evidence *e)
{
    const struct challenges *c = &e->challenges;

    return e->checks.has_reference ? "has_reference"
           : challenges_ignored(c) ? "ignored"
           : e->unseeded           ? "unseeded"
           : challenges_passed(c)  ? "passed"
           : c->repeated > 0       ? "repeated"
           : c->failed > 0         ? "failed"
                                   : NULL;
}

static void challenges_json(struct json_out *out, const struct cell *cell)
{
    const struct challenges *c = &cell->evidence.challenges;

    out_open(out, "challenge", '{');
    out_text(out, "state", challenges_state(&cell->evidence));
    out_int(out, "passed", c->passed);
    out_int(out, "repeated", c->repeated);
    out_int(out, "unchanged", c->unchanged);
    out_int(out, "failed", c->failed);
    out_name(out, "run", c->run);
    out_format(out, "runs", "/v1/runs?challenges=only&cell=%" PRId64, cell->id);
    out_close(out, '}');
}

/* Only of what varies among like runs: the others have no spread, not even an empty one.
 */
static enum err_code show_spread(struct tx *tx, const struct cell *cell,
                                 struct json_out *out, struct err *err)
{
    struct cell_spread spread;

    if (!cell->evidence.varied) {
        cell_spread_json(out, cell, NULL);
        return ERR_OK;
    }
    if (cell_spread_read(tx, cell->id, &spread, err) != ERR_OK) {
        return err->code;
    }
    cell_spread_json(out, cell, &spread);
    cell_spread_release(&spread);
    return ERR_OK;
}

static void cell_departures_json(struct json_out *out, const struct cell *cell)
{
    struct departures departures;

    departures_json(out, departures_of(cell, &departures) ? &departures : NULL);
}

void cell_verdict_show(const struct request *r, const struct cell *cell, bool measured,
                       struct json_out *out)
{
    int64_t now_ms = clock_wall_ms();
    int64_t stale_after_ms = r->api->stale_after_ms;
    int64_t last_ms = cell->evidence.last_completed_ms;
    enum verdict verdict =
        verdict_at(cell->verdict, last_ms, cell->vouched_ms, now_ms, stale_after_ms);
    char reason[VERDICT_REASON_SIZE];

    if (verdict == VERDICT_STALE) {
        verdict_stale_reason(cell->reason, last_ms, now_ms, stale_after_ms, reason);
    }
    out_text(out, "verdict", verdict_name(verdict));
    if (measured) {
        out_text(out, "verdict_when_measured", verdict_name(cell->verdict));
    }
    out_text(out, "reason", verdict == VERDICT_STALE ? reason : cell->reason);
}

/* Of iterations, the mean and the quartiles of the runs' medians. */
static void times_json(struct json_out *out, const struct cell *cell)
{
    int64_t runs = cell->times.runs;
    const struct {
        const char *key;
        int64_t ns;
    } times[] = { { "min", cell->min_ns },
                  { "lower_quartile", cell->times.lower_ns },
                  { "median", cell->times.median_ns },
                  { "mean", runs > 0 ? cell->median_ns_sum / runs : 0 },
                  { "upper_quartile", cell->times.upper_ns },
                  { "max", cell->max_ns } };

    out_open(out, "milliseconds", '{');
    for (int i = 0; i < COUNT_OF(times); i++) {
        out_ms_if(out, times[i].key, cell->max_ns > 0 && times[i].ns > 0, times[i].ns);
    }
    out_close(out, '}');
}

static void take_cause(void *arg, const struct run_record *run)
{
    copy_text(arg, CASE_TITLE_SIZE * 2, run->cause);
}

struct algorithms {
    struct json_out *out;
    int shown, limit;
    bool truncated;
};

static void show_algorithm(void *arg, const struct cell_algorithm *algorithm)
{
    struct algorithms *a = arg;

    a->truncated = a->shown == a->limit;
    if (!a->truncated) {
        a->shown++;
        out_open(a->out, NULL, '{');
        out_text(a->out, "algorithm", algorithm->algorithm);
        out_int(a->out, "runs", algorithm->runs);
        out_close(a->out, '}');
    }
}

static enum err_code show_algorithms(struct tx *tx, const struct cell *cell, int limit,
                                     struct json_out *out, struct err *err)
{
    struct algorithms a = { .out = out, .limit = limit };
    enum err_code code;

    out_open(out, "algorithms", '[');
    code = cells_each_algorithm(tx, cell->id, limit + 1, show_algorithm, &a, err);
    out_close(out, ']');
    out_bool(out, "algorithms_truncated", a.truncated);
    return code;
}

/* Of CELL, against CONTROL, which is of its environment. */
static enum err_code read_cost(struct tx *tx, const struct cell *cell,
                               const struct cell *control, struct cost *ret_cost,
                               struct err *err)
{
    struct environment environment;
    char *json = NULL;

    if (environments_get(tx, cell->environment, &environment, &json, err) != ERR_OK) {
        return err->code;
    }
    *ret_cost = times_cost(&cell->times, &control->times, times_least(json));
    free(json);
    return ERR_OK;
}

/* CONTROL: NULL where there is none that COST is against. */
static void cell_json(const struct request *r, const struct cell *cell,
                      const struct cell *control, const struct cost *cost,
                      const char *cause, struct json_out *out)
{

    out_int(out, "id", cell->id);
    case_json(out, &cell->key);
    out_bool(out, "is_control", cell->is_control);
    subject_json(out, cell->subject, cell->subject_name);
    out_text(out, "environment", cell->environment);
    cell_verdict_show(r, cell, true, out);
    out_name(out, "last_cause", cause);
    out_time(out, "changed_at", cell->changed_ms);
    out_time(out, "first_run_at", cell->first_ms);
    out_time(out, "last_run_at", cell->last_ms);
    evidence_json(out, cell);
    checks_json(out, &cell->evidence.checks);
    challenges_json(out, cell);
    out_name(out, "digest", cell->digest);
    cell_departures_json(out, cell);
    times_json(out, cell);
    cost_json(out, cost, control ? control->key.variant : NULL, cell->key.size);
    out_format(out, "history", "/v1/cells/%" PRId64 "/history", cell->id);
    out_format(out, "digests", "/v1/cells/%" PRId64 "/evidence", cell->id);
    out_format(out, "runs", "/v1/runs?cell=%" PRId64, cell->id);
    out_format(out, "href", "/v1/cells/%" PRId64, cell->id);
}

static enum err_code read_one(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct view *view = r->state;
    struct cell cell;
    struct cell control;
    struct cost cost = { .known = false };
    struct runs_filter newest = { .cell = view->id };
    char cause[CASE_TITLE_SIZE * 2] = "";
    enum err_code code;

    if (cells_get(tx, view->id, &cell, err) != ERR_OK) {
        return err->code;
    }
    code = cells_get_control(tx, cell.id, &control, err);
    if (code != ERR_OK && code != ERR_NOT_FOUND) {
        return code;
    }
    if (code == ERR_OK && read_cost(tx, &cell, &control, &cost, err) != ERR_OK) {
        return err->code;
    }
    if (runs_list(tx, &newest, "", 1, take_cause, cause, err) != ERR_OK) {
        return err->code;
    }
    out_open(&view->page.out, NULL, '{');
    cell_json(r, &cell, code == ERR_OK ? &control : NULL, &cost, cause, &view->page.out);
    if (cell_witness_show(tx, &cell, &view->page.out, err) != ERR_OK ||
        show_spread(tx, &cell, &view->page.out, err) != ERR_OK ||
        show_algorithms(tx, &cell, ALGORITHMS_SHOWN, &view->page.out, err) != ERR_OK ||
        cell_devices_show(r, tx, &cell,
                          r->format == FORMAT_TEXT ? DEVICES_IN_TEXT : DEVICES_SHOWN,
                          &view->page.out, err) != ERR_OK) {
        return err->code;
    }
    out_close(&view->page.out, '}');
    reply_json(r, 200, &view->page.out);
    return ERR_OK;
}

void cells_get_one(struct request *r)
{
    keep_view(r);
    request_read(r, read_one, NULL);
}

static void show_change(void *arg, const struct cell_change *change)
{
    struct page *page = arg;
    struct json_out *out = &page->out;

    if (!page_takes(page, "%" PRId64, change->at_ms)) {
        return;
    }
    out_open(out, NULL, '{');
    out_time(out, "at", change->at_ms);
    out_text(out, "verdict", verdict_name(change->verdict));
    out_text(out, "reason", change->reason);
    out_int(out, "runs", change->runs);
    out_int(out, "iterations", change->iterations);
    out_int(out, "distinct_digests", change->distinct_digests);
    out_name(out, "run", change->run);
    out_close(out, '}');
}

static enum err_code read_history(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct view *view = r->state;
    struct page *page = &view->page;
    struct json_out *out = &page->out;
    struct cell cell;

    if (cells_get(tx, view->id, &cell, err) != ERR_OK) {
        return err->code;
    }
    out_open(out, NULL, '{');
    out_int(out, "cell", view->id);
    out_open(out, "items", '[');
    if (cells_each_change(tx, view->id, view->before_ms, page_rows(page), show_change,
                          page, err) != ERR_OK) {
        return err->code;
    }
    page_reply(r, page);
    return ERR_OK;
}

void cells_get_history(struct request *r)
{
    struct view *view = keep_view(r);

    view->before_ms = param_cursor_number(r, 'h');
    if (!params_refused(r)) {
        request_read(r, read_history, NULL);
    }
}

static void show_digest(void *arg, const struct cell_digest *digest)
{
    struct page *page = arg;
    struct json_out *out = &page->out;

    if (!page_has_room(page)) {
        return;
    }
    out_open(out, NULL, '{');
    out_text(out, "digest", digest->digest);
    out_int(out, "runs", digest->runs);
    out_int(out, "iterations", digest->iterations);
    sum_json(out, "weight_sum", digest->weight_sum);
    sum_json(out, "loss", digest->loss);
    out_text(out, "check", check_state_name(digest->checked));
    out_close(out, '}');
}

static void show_conditions(void *arg, const struct cell_conditions *conditions)
{
    struct page *page = arg;
    struct json_out *out = &page->out;

    if (!page_has_room(page)) {
        return;
    }
    out_open(out, NULL, '{');
    out_json(out, "options", conditions->options);
    out_int(out, "runs", conditions->runs);
    out_bool(out, "varied", conditions->varied);
    out_close(out, '}');
}

static enum err_code read_evidence(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct view *view = r->state;
    struct page *page = &view->page;
    struct json_out *out = &page->out;
    struct cell cell;

    if (cells_get(tx, view->id, &cell, err) != ERR_OK) {
        return err->code;
    }
    out_open(out, NULL, '{');
    out_int(out, "cell", cell.id);
    case_json(out, &cell.key);
    out_text(out, "environment", cell.environment);
    cell_verdict_show(r, &cell, false, out);
    challenges_json(out, &cell);
    cell_departures_json(out, &cell);
    if (show_algorithms(tx, &cell, page_rows(page) - 1, out, err) != ERR_OK ||
        cell_devices_show(r, tx, &cell, page_rows(page) - 1, out, err) != ERR_OK) {
        return err->code;
    }
    out_open(out, "items", '[');
    if (cells_each_digest(tx, view->id, page_rows(page), show_digest, page, err) !=
        ERR_OK) {
        return err->code;
    }
    out_close(out, ']');
    out_bool(out, "truncated", page->offered > page->limit);
    out_open(out, "alike", '[');
    page->offered = 0;
    if (cells_each_conditions(tx, view->id, page_rows(page), show_conditions, page,
                              err) != ERR_OK) {
        return err->code;
    }
    out_close(out, ']');
    out_bool(out, "alike_truncated", page->offered > page->limit);
    out_close(out, '}');
    reply_json(r, 200, out);
    return ERR_OK;
}

void cells_get_evidence(struct request *r)
{
    keep_view(r);
    if (!params_refused(r)) {
        request_read(r, read_evidence, NULL);
    }
}
