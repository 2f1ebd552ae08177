#include "daemon/localise/localise_look.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json_out.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "daemon/evidence/verdict.h"
#include "daemon/trace/difference.h"
#include "daemon/trace/trace_reads.h"
#include "db/captures.h"
#include "db/traces.h"

/* What was found, as JSON, stored as it is shown (api/openapi.json says what it means).
 */

static void place_json(struct json_out *out, const char *key,
                       const struct divergence_place *place)
{
    if (!out_object(out, key, place->position >= 0)) {
        return;
    }
    out_int(out, "iteration", place->iteration);
    out_int(out, "step", place->step);
    out_text(out, "place", place->place);
    out_int(out, "position", place->position);
    out_int(out, "occurrence", place->occurrence);
    out_close(out, '}');
}

static void structure_json(struct json_out *out, const struct divergence_result *r)
{
    static const char *const keys[] = { "a", "b" };

    if (!out_object(out, "structure", r->structure[0].position >= 0)) {
        return;
    }
    out_int(out, "position", r->structure[0].position);
    for (int i = 0; i < 2; i++) {
        if (r->structure[i].place[0]) {
            place_json(out, keys[i], &r->structure[i]);
        } else {
            out_null(out, keys[i]);
        }
    }
    out_int(out, "runs_apart", r->runs_apart);
    out_close(out, '}');
}

/* The member "search" of GET /v1/jobs/{id}/localisation: what the traces showed.  RUNS
 * are the runs in order of feeding, DIGESTS how many results they had.  Caller frees. */
static char *search_json(const struct divergence_result *r, int64_t digests,
                         char (*runs)[ID_SIZE])
{
    bool alike = r->first.position < 0 && r->runs_apart == 0 && r->unplaced == 0 &&
                 r->truncated == 0 && digests == 1;
    struct json_out out = JSON_OUT_INIT;

    out_open(&out, NULL, '{');
    place_json(&out, "root", &r->root);
    out_int(&out, "runs", r->traces);
    out_int(&out, "runs_parted", r->runs_diverged);
    out_int(&out, "pairs", r->pairs);
    out_int(&out, "pairs_parted", r->pairs_diverged);
    if (r->root.position >= 0) {
        out_open(&out, "example", '[');
        out_text(&out, NULL, runs[r->example[0]]);
        out_text(&out, NULL, runs[r->example[1]]);
        out_close(&out, ']');
    } else {
        out_null(&out, "example");
    }
    out_int(&out, "roots", r->roots);
    place_json(&out, "first_difference", &r->first);
    structure_json(&out, r);
    out_int(&out, "records", r->records);
    out_int(&out, "truncated", r->truncated);
    out_int(&out, "not_followed", r->unplaced);
    out_int(&out, "distinct_digests", digests);
    out_real(&out, "difference_probability_upper_bound",
             alike ? verdict_difference_bound(r->traces) : 1);
    out_close(&out, '}');
    return buf_detach(&out.buf, NULL);
}

/* The tensors that a run captured. */
struct captured {
    struct captured_tensor *tensors;
    int count;
};

static void take_tensor(void *arg, const struct captured_tensor *tensor)
{
    struct captured *c = arg;
    struct captured_tensor *copy;

    c->tensors = xgrow(c->tensors, c->count, sizeof *c->tensors);
    copy = &c->tensors[c->count++];
    *copy = *tensor;
    copy->shape = xstrdup(tensor->shape);
    copy->data = xmalloc((size_t)tensor->bytes + 1);
    if (tensor->bytes) {
        memcpy(copy->data, tensor->data, (size_t)tensor->bytes);
    }
}

static void captured_release(struct captured *c)
{
    for (int i = 0; i < c->count; i++) {
        captured_tensor_release(&c->tensors[i]);
    }
    free(c->tensors);
}

static const struct captured_tensor *find(const struct captured *c,
                                          const struct captured_tensor *like)
{
    for (int i = 0; i < c->count; i++) {
        const struct captured_tensor *t = &c->tensors[i];

        if (t->is_out == like->is_out && t->index == like->index &&
            t->bytes == like->bytes && t->total == like->total &&
            strcmp(t->dtype, like->dtype) == 0 && strcmp(t->shape, like->shape) == 0) {
            return t;
        }
    }
    return NULL;
}

static void pair_json(struct json_out *out, const char *key, const int64_t counts[2])
{
    out_open(out, key, '[');
    out_int(out, NULL, counts[0]);
    out_int(out, NULL, counts[1]);
    out_close(out, ']');
}

static void signature_json(struct json_out *out, const struct difference *d,
                           bool is_float)
{
    out_int(out, "elements", d->elements);
    out_int(out, "differ", d->differ);
    out_int_if(out, "first", d->differ, d->first);
    out_int_if(out, "last", d->differ, d->last);
    if (is_float) {
        out_format(out, "max_ulp", "%" PRIu64, d->max_ulp);
    } else {
        out_null(out, "max_ulp");
    }
    out_real(out, "max_absolute", d->max_absolute);
    out_open(out, "bits", '[');
    for (int i = 0; i < d->bit_count; i++) {
        out_int(out, NULL, d->bits[i]);
    }
    out_close(out, ']');
    if (out_object(out, "period", d->period)) {
        out_int(out, "period", d->period);
        out_int(out, "residues", d->residues);
        out_int(out, "phase", d->phase);
        out_close(out, '}');
    }
    pair_json(out, "nan", d->nan);
    pair_json(out, "infinite", d->infinite);
    out_int(out, "zero_signs", d->zero_signs);
}

static void tensor_json(struct json_out *out, const struct captured_tensor *a,
                        const struct captured_tensor *b)
{
    size_t bytes = difference_dtype_bytes(a->dtype);
    const char *dtype = bytes ? a->dtype : "uint8";
    struct difference d;

    out_open(out, NULL, '{');
    out_int(out, "index", a->index);
    out_name(out, "name", a->name);
    out_text(out, "dtype", a->dtype);
    out_json(out, "shape", a->shape);
    out_int(out, "bytes_total", a->total);
    out_int(out, "captured_bytes", a->bytes);
    if (out_object(out, "signature", b)) {
        difference_compute(dtype, a->bytes / (int64_t)(bytes ? bytes : 1), a->data,
                           b->data, &d);
        signature_json(out, &d, difference_dtype_is_float(dtype));
        out_close(out, '}');
    }
    out_close(out, '}');
}

/* The member "difference": the tensors that runs A and B captured, compared; CAPTURED is
 * how many runs captured any.  Caller frees *ret_json. */
static enum err_code difference_json(struct tx *tx, const char *a, const char *b,
                                     int captured, char **ret_json, struct err *err)
{
    struct captured runs[2] = { { NULL, 0 }, { NULL, 0 } };
    struct json_out out = JSON_OUT_INIT;
    enum err_code code = captures_each(tx, a, take_tensor, &runs[0], err);

    if (code == ERR_OK) {
        code = captures_each(tx, b, take_tensor, &runs[1], err);
    }
    if (code == ERR_OK) {
        out_open(&out, NULL, '{');
        out_text(&out, "a", a);
        out_text(&out, "b", b);
        out_int(&out, "runs_captured", captured);
        out_open(&out, "tensors", '[');
        for (int i = 0; i < runs[0].count; i++) {
            const struct captured_tensor *tensor = &runs[0].tensors[i];

            if (tensor->is_out) {
                tensor_json(&out, tensor, find(&runs[1], tensor));
            }
        }
        out_close(&out, ']');
        out_close(&out, '}');
        *ret_json = buf_detach(&out.buf, NULL);
    }
    captured_release(&runs[0]);
    captured_release(&runs[1]);
    return code;
}

/* Looking. */

enum { RUNS_A_LOOK = 16 }; /* so that no read takes long */

void look_state_release(struct look_state *state)
{
    divergence_free(state->divergence);
    free(state->runs);
    free(state->captures);
    *state = (struct look_state){ 0 };
}

void look_release(struct look *look)
{
    free(look->difference);
    free(look->search);
    look->difference = NULL;
    look->search = NULL;
}

/* Reading */

struct batch {
    char runs[RUNS_A_LOOK][ID_SIZE];
    int count;
};

static void add_to_batch(void *arg, const char *run)
{
    struct batch *batch = arg;

    copy_text(batch->runs[batch->count++], ID_SIZE, run);
}

static void feed(struct look_state *state, const char *run, const struct trace *trace)
{
    if (!state->divergence) {
        state->divergence = divergence_new();
    }
    divergence_add(state->divergence, trace);
    state->runs = xgrow(state->runs, state->run_count, sizeof *state->runs);
    copy_text(state->runs[state->run_count++], ID_SIZE, run);
}

/* The record that WHAT asks to be captured, or -1; a program may write others too.
 */
static int64_t find_captured(const struct trace *trace, const char *what)
{
    int32_t iteration;
    int64_t step;
    const char *name = run_capture_read(what, &iteration, &step);
    int place = name ? trace_find_place(trace, name) : -1;

    for (int64_t at = 0; place >= 0 && at < trace->count; at++) {
        const struct trace_record *r = &trace->records[at];

        if (r->place == place && r->step == step && r->iteration == iteration) {
            return at;
        }
    }
    return -1;
}

static void add_capture(struct look_state *state, const char *run,
                        const struct trace *trace, const char *what)
{
    int64_t at = find_captured(trace, what);
    struct look_capture *capture;

    state->captures =
        xgrow(state->captures, state->capture_count, sizeof *state->captures);
    capture = &state->captures[state->capture_count++];
    *capture = (struct look_capture){ .there = at >= 0 };
    copy_text(capture->run, sizeof capture->run, run);
    if (capture->there) {
        capture->in = trace_reads_at(trace, at);
        capture->out = trace->records[at].out;
    }
}

/* Takes in the next runs of ITEM; *ret_more: there may be others. */
static enum err_code take_in(struct tx *tx, const struct job *job, int item,
                             struct look_state *state, bool *ret_more, struct err *err)
{
    struct batch batch = { .count = 0 };

    if (localisations_each_run(tx, job->id, item, state->last[item], RUNS_A_LOOK,
                               add_to_batch, &batch, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < batch.count; i++) {
        struct trace trace;
        enum err_code code = runs_trace(tx, batch.runs[i], &trace, NULL, err);

        if (code != ERR_OK && code != ERR_NOT_FOUND && code != ERR_CORRUPT) {
            return code;
        }
        if (code == ERR_CORRUPT) {
            log_error("localise: run %s is left out: %s", batch.runs[i], err->message);
        } else if (item == LOCALISATION_SEARCH) {
            feed(state, batch.runs[i], &trace);
        } else {
            add_capture(state, batch.runs[i], &trace, job->items[item].options.capture);
        }
        trace_release(&trace);
        copy_text(state->last[item], ID_SIZE, batch.runs[i]);
    }
    *ret_more = batch.count == RUNS_A_LOOK;
    return ERR_OK;
}

/* Deciding */

static bool item_is_open(const struct job_item *item)
{
    return !item->given_up && item->runs_answered < item->runs_wanted;
}

static void conclude(struct look *look, enum localisation_state state)
{
    look->next = LOOK_CONCLUDE;
    look->state = state;
}

static void say_where(const struct divergence_result *r, struct look *look)
{
    snprintf(look->reason, sizeof look->reason,
             "the first place where runs that read the same wrote something else is '%s' "
             "at step %" PRId64 " of iteration %" PRId32 ": %" PRId64 " of %" PRId64
             " runs, %" PRId64 " of %" PRId64 " pairs",
             r->root.place, r->root.step, r->root.iteration, r->runs_diverged, r->traces,
             r->pairs_diverged, r->pairs);
}

/* What is asked of runs that capture PLACE.  They record what comes before it too where
 * that is part of what it reads. */
static struct run_options capture_options(const struct job *job,
                                          const struct divergence_place *place)
{
    int like = place->says_all ? LOCALISATION_CAPTURE : LOCALISATION_SEARCH;
    struct run_options options = job->items[like].options;

    run_capture_write(place->iteration, place->step, place->place, options.capture);
    return options;
}

/* The place is known, and that is all. */
static void conclude_without_tensors(struct look *look, const char *cause)
{
    size_t length = strlen(look->reason);

    conclude(look, LOCALISATION_LOCALISED);
    snprintf(look->reason + length, sizeof look->reason - length,
             "; %s, so its tensors cannot be captured", cause);
}

static void decide_found(const struct job *job, const struct divergence_result *r,
                         struct look *look)
{
    struct run_options options = capture_options(job, &r->root);
    char text[RUN_OPTIONS_SIZE];

    say_where(r, look);
    if (r->root.occurrence > 0) {
        conclude_without_tensors(look, "it comes by several times a step");
    } else if (!run_options_write(&options, text)) {
        conclude_without_tensors(look, "its name is too long for what else is asked for");
    } else {
        look->next = LOOK_CAPTURE;
        look->options = options;
    }
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void decide_no_records(const struct job_item *item,
                              const struct divergence_result *r, struct look *look)
{
    conclude(look, LOCALISATION_FAILED);
    if (r->traces > 0) {
        snprintf(look->reason, sizeof look->reason,
                 "%" PRId64 " run%s left no record: the workload has no probes",
                 r->traces, plural(r->traces));
    } else {
        snprintf(look->reason, sizeof look->reason, "none of %d run%s completed%s%s",
                 item->runs_answered, plural(item->runs_answered),
                 item->given_up ? ": " : "", item->given_up_reason);
    }
}

/* The end of the search without a root.  A bound is given only where every run was
 * compared to its end with every other. */
static void decide_not_found(const struct job_item *item,
                             const struct divergence_result *r, int64_t digests,
                             struct look *look)
{
    char *reason = look->reason;
    size_t size = sizeof look->reason;
    char bound[TEXT_NUMBER_SIZE];

    conclude(look, LOCALISATION_NOT_FOUND);
    if (r->first.position >= 0) {
        snprintf(
            reason, size,
            "what '%s' reads at step %" PRId64 " of iteration %" PRId32
            " differs although nothing before it does: what makes the difference has "
            "no probe",
            r->first.place, r->first.step, r->first.iteration);
    } else if (digests > 1) {
        snprintf(
            reason, size,
            "%" PRId64 " runs ended with %" PRId64
            " results, but no record differs: what makes the difference has no probe",
            r->traces, digests);
    } else if (r->runs_apart > 0 || r->unplaced > 0 || r->truncated > 0) {
        snprintf(reason, size,
                 "no pair of %" PRId64
                 " runs parted as far as they could be compared: "
                 "%" PRId64 " went another way, %" PRId64
                 " could not be followed, %" PRId64 " have truncated traces",
                 r->traces, r->runs_apart, r->unplaced, r->truncated);
    } else if (r->traces < 2) {
        snprintf(reason, size, "%" PRId64 " run%s: no pair was compared", r->traces,
                 plural(r->traces));
    } else {
        snprintf(reason, size,
                 "no pair parted in %" PRId64
                 " runs; per-run difference probability %s (95 %%)",
                 r->traces, text_bound(verdict_difference_bound(r->traces), bound));
    }
    if (item->given_up) {
        size_t length = strlen(reason);

        snprintf(reason + length, size - length, "; ended early: %.200s",
                 item->given_up_reason);
    }
}

static enum err_code decide_search(struct tx *tx, const struct job *job,
                                   const struct look_state *state, int runs_min,
                                   struct look *look, struct err *err)
{
    const struct job_item *item = &job->items[LOCALISATION_SEARCH];
    struct divergence_result r = { .root.position = -1, .first.position = -1 };
    bool enough = item->runs_answered >= runs_min;
    int64_t digests = 0;

    if (state->divergence) {
        divergence_result(state->divergence, &r);
    }
    if (item_is_open(item) && !(enough && (r.root.position >= 0 || r.records == 0))) {
        look->next = LOOK_GO_ON;
        look->item = LOCALISATION_SEARCH;
        return ERR_OK;
    }
    if (localisations_count_digests(tx, job->id, LOCALISATION_SEARCH, &digests, err) !=
        ERR_OK) {
        return err->code;
    }
    if (r.root.position >= 0) {
        decide_found(job, &r, look);
    } else if (r.records == 0) {
        decide_no_records(item, &r, look);
    } else {
        decide_not_found(item, &r, digests, look);
    }
    if (state->divergence) {
        look->search = search_json(&r, digests, state->runs);
    }
    return ERR_OK;
}

/* Two captured runs that read the same and wrote something else. */
static bool find_pair(const struct look_state *state, const struct look_capture **ret_a,
                      const struct look_capture **ret_b)
{
    for (int b = 1; b < state->capture_count; b++) {
        for (int a = 0; a < b; a++) {
            *ret_a = &state->captures[a];
            *ret_b = &state->captures[b];
            if ((*ret_a)->there && (*ret_b)->there &&
                digest_equal((*ret_a)->in, (*ret_b)->in) &&
                !digest_equal((*ret_a)->out, (*ret_b)->out)) {
                return true;
            }
        }
    }
    return false;
}

static int count_there(const struct look_state *state)
{
    int count = 0;

    for (int i = 0; i < state->capture_count; i++) {
        count += state->captures[i].there;
    }
    return count;
}

static enum err_code decide_capture(struct tx *tx, const struct job *job,
                                    const struct look_state *state,
                                    const struct localisation *l, struct look *look,
                                    struct err *err)
{
    const struct job_item *item = &job->items[LOCALISATION_CAPTURE];
    const struct look_capture *a, *b;
    bool missing = item->runs_answered >= l->runs_min && count_there(state) == 0;

    if (find_pair(state, &a, &b)) {
        conclude(look, LOCALISATION_LOCALISED);
        copy_text(look->runs[0], ID_SIZE, a->run);
        copy_text(look->runs[1], ID_SIZE, b->run);
        copy_text(look->reason, sizeof look->reason, l->reason);
        return difference_json(tx, a->run, b->run, state->capture_count,
                               &look->difference, err);
    }
    if (item_is_open(item) && !missing) {
        look->next = LOOK_GO_ON;
        look->item = LOCALISATION_CAPTURE;
        return ERR_OK;
    }
    conclude(look, LOCALISATION_LOCALISED);
    if (count_there(state) > 0) {
        snprintf(look->reason, sizeof look->reason,
                 "%.350s; none of %d runs that captured it parted there again", l->reason,
                 count_there(state));
    } else {
        snprintf(look->reason, sizeof look->reason, "%.350s; none of %d runs captured it",
                 l->reason, item->runs_answered);
    }
    return ERR_OK;
}

enum err_code look_at(struct tx *tx, const char *job_id, struct look_state *state,
                      struct look *ret_look, struct err *err)
{
    struct localisation l;
    struct job job;
    enum err_code code;
    bool more = false;
    int item;

    *ret_look = (struct look){ .next = LOOK_AGAIN };
    if (localisations_get(tx, job_id, &l, err) != ERR_OK) {
        return err->code;
    }
    item = l.state == LOCALISATION_SEARCHING ? LOCALISATION_SEARCH : LOCALISATION_CAPTURE;
    if (jobs_get(tx, job_id, &job, err) != ERR_OK) {
        localisation_release(&l);
        return err->code;
    }
    code = take_in(tx, &job, item, state, &more, err);
    if (code == ERR_OK && !more) {
        code = item == LOCALISATION_SEARCH
                   ? decide_search(tx, &job, state, l.runs_min, ret_look, err)
                   : decide_capture(tx, &job, state, &l, ret_look, err);
    }
    job_release(&job);
    localisation_release(&l);
    return code;
}
