/* GET /v1/inputs and POST /v1/inputs/{id}/decision: cases whose runs disagree about what
 * they compute from, and what a person says about it. */
#include <inttypes.h>
#include <stdlib.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "db/case_keys.h"
#include "db/inputs.h"

struct list {
    struct page page;
    int64_t after; /* a case */
};

static const char *state_of(const struct case_inputs *inputs)
{
    return inputs->decided[0]         ? "decided"
           : inputs->inputs.contested ? "contested"
                                      : "agreed";
}

static void camps_json(struct json_out *out, const struct case_inputs *inputs)
{
    out_open(out, "camps", '[');
    for (int i = 0; i < inputs->camp_count; i++) {
        const struct case_input *camp = &inputs->camps[i];

        out_open(out, NULL, '{');
        out_text(out, "digest", camp->digest);
        out_name(out, "host", camp->host);
        out_int(out, "runs", camp->runs);
        out_text(out, "first_run", camp->run);
        out_close(out, '}');
    }
    out_close(out, ']');
}

static void inputs_json(struct json_out *out, int64_t id,
                        const struct case_inputs *inputs)
{
    const struct case_key *key = &inputs->key;

    out_open(out, NULL, '{');
    out_int(out, "id", id);
    out_text(out, "workload", key->workload);
    out_int(out, "version", key->version);
    out_text(out, "size", key->size);
    out_text(out, "dtype", key->dtype);
    out_format(out, "seed", "%" PRIu64, key->seed);
    out_text(out, "state", state_of(inputs));
    out_name(out, "digest", inputs->inputs.digest);
    out_name(out, "reason", inputs->reason);
    out_time(out, "decided_at", inputs->decided_ms);
    camps_json(out, inputs);
    out_close(out, '}');
}

static void show(void *arg, int64_t id, const struct case_inputs *inputs)
{
    struct page *page = arg;

    if (page_takes(page, "%" PRId64, id)) {
        inputs_json(&page->out, id, inputs);
    }
}

static enum err_code read_page(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct list *list = r->state;
    struct page *page = &list->page;

    list_open(&page->out);
    if (case_inputs_each(tx, list->after, page_rows(page), show, page, err) != ERR_OK) {
        return err->code;
    }
    page_reply(r, page);
    return ERR_OK;
}

void inputs_get(struct request *r)
{
    struct list *list = page_new(r, sizeof *list, 'i');

    list->after = param_cursor_number(r, 'i');
    if (!params_refused(r)) {
        request_read(r, read_page, NULL);
    }
}

enum { REASON_MAX = CASE_TITLE_SIZE - 1 };

/* What a person says. */
struct decision {
    int64_t id;
    char digest[DIGEST_TEXT_SIZE], reason[REASON_MAX + 1];
    struct json_out out;
};

struct said {
    const char *digest, *reason; /* borrowed from the body */
};

static const struct in_member said_members[] = {
    { "digest", IN_HEX, IN_AT(struct said, digest), .flags = IN_NULLABLE,
      .most = DIGEST_TEXT_SIZE - 1,
      .wanted = "must be a digest of 32 hex digits, or null: the majority rules again" },
    { "reason", IN_TEXT, IN_AT(struct said, reason), .least = 1, .most = REASON_MAX },
};
static const struct in_shape said_shape =
    IN_SHAPE(said_members, "a decision has no member");

static void add_problem(void *problems, const struct in_fault *fault)
{
    problems_add(problems, fault->unknown ? PROBLEM_UNKNOWN_MEMBER : PROBLEM_INVALID,
                 fault->pointer, "%s", fault->reason);
}

static void decision_free(void *state)
{
    struct decision *decision = state;

    buf_release(&decision->out.buf);
    free(decision);
}

static void show_decided(void *arg, int64_t id, const struct case_inputs *inputs)
{
    struct decision *decision = arg;

    if (id == decision->id) {
        inputs_json(&decision->out, id, inputs);
    }
}

static enum err_code decide(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct decision *d = r->state;
    enum err_code code =
        case_inputs_decide(tx, d->id, d->digest, d->reason, clock_wall_ms(), err);

    if (code == ERR_INVALID) {
        problems_add(&r->problems, PROBLEM_INVALID, "/digest", "%s", err->message);
        reply_problems(r);
        return ERR_OK;
    }
    return code == ERR_OK ? case_inputs_each(tx, d->id - 1, 1, show_decided, d, err)
                          : code;
}

static void decided(struct request *r)
{
    struct decision *d = r->state;

    log_warning("inputs of case %" PRId64 ": a request decided for %s: %s", d->id,
                d->digest[0] ? d->digest : "the majority", d->reason);
    r->format = FORMAT_JSON;
    reply_json(r, MHD_HTTP_OK, &d->out);
}

void inputs_decide(struct request *r)
{
    json_t *body = body_json(r);
    struct said said = { NULL, NULL };
    struct decision *d;

    if (!body) {
        return;
    }
    if (!json_is_object(body)) {
        problems_add(&r->problems, PROBLEM_INVALID, "", "must be an object");
    } else {
        in_read(&said_shape, body, &said, add_problem, &r->problems);
    }
    if (r->problems.count > 0) {
        reply_problems(r);
    } else {
        d = xcalloc(1, sizeof *d);
        request_keep(r, d, decision_free);
        d->id = parse_id(r->arguments[0]);
        copy_text(d->digest, sizeof d->digest, said.digest ? said.digest : "");
        copy_text(d->reason, sizeof d->reason, said.reason);
        request_write(r, decide, decided);
    }
    json_decref(body);
}
