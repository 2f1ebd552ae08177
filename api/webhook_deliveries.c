/* /v1/webhooks/{id}/deliveries, and what of them is to be sent once more. */
#include <inttypes.h>
#include <stdlib.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "db/webhooks/deliveries.h"
#include "db/webhooks/outbox.h"

struct list {
    struct page page;
    int64_t before;
    enum delivery_state state;
};

static void add_delivery(void *arg, const struct delivery_row *row)
{
    struct page *page = arg;
    struct json_out *out = &page->out;

    if (!page_takes(page, "%" PRId64, row->number)) {
        return;
    }
    out_open(out, NULL, '{');
    out_int(out, "delivery", row->number);
    out_text(out, "message", row->message);
    out_text(out, "type", webhook_type_name(row->type));
    out_text(out, "state", delivery_state_name(row->state));
    out_time(out, "time", row->at_ms);
    out_int(out, "attempts", row->attempts);
    out_int_if(out, "status", row->status > 0, row->status);
    out_name(out, "cause", row->cause);
    out_time(out, "created_at", row->created_ms);
    out_time(out, "tried_at", row->tried_ms);
    out_time(out, "next_at", row->state == DELIVERY_WAITING ? row->next_ms : 0);
    out_time(out, "ended_at", row->ended_ms);
    out_json(out, "event", row->body);
    out_close(out, '}');
}

static enum err_code read_page(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct list *list = r->state;

    list_open(&list->page.out);
    if (deliveries_each(tx, r->arguments[0], list->state, list->before,
                        page_rows(&list->page), add_delivery, &list->page,
                        err) != ERR_OK) {
        return err->code;
    }
    page_reply(r, &list->page);
    return ERR_OK;
}

void webhook_deliveries_get(struct request *r)
{
    struct list *list = page_new(r, sizeof *list, 'w');
    const char *state = param_value(r, "state");

    list->before = param_cursor_number(r, 'w');
    list->state = state ? delivery_state_parse(state) : DELIVERY_STATES;
    if (!params_refused(r)) {
        request_read(r, read_page, NULL);
    }
}

/* Once more */

struct replay {
    bool by_time; /* since_ms and until_ms count, else DELIVERY */
    int64_t delivery, since_ms, until_ms;
    int64_t count;
    struct json_out out;
};

/* Members of the body; borrowed. */
struct asked {
    int64_t delivery;
    const char *since, *until;
    bool dead;
};

static const char not_a_time[] = "must be a time, as in 2026-11-26T10:00:00Z";

static void check_time(struct in_reader *r, const json_t *value)
{
    int64_t ignored;

    if (clock_parse_rfc3339(json_string_value(value), &ignored) != 0) {
        in_refuse(r, NULL, "%s", not_a_time);
    }
}

static const struct in_member asked_members[] = {
    { "delivery", IN_INT, IN_AT(struct asked, delivery), IN_OPTIONAL, .least = 1,
      .most = INT64_MAX },
    { "dead", IN_BOOL, IN_AT(struct asked, dead), IN_OPTIONAL },
    { "since", IN_TEXT, IN_AT(struct asked, since), IN_OPTIONAL, .check = check_time },
    { "until", IN_TEXT, IN_AT(struct asked, until), IN_OPTIONAL, .check = check_time },
};
static const struct in_shape asked_shape =
    IN_SHAPE(asked_members, "a replay has no member");

static void add_problem(void *problems, const struct in_fault *fault)
{
    problems_add(problems, fault->unknown ? PROBLEM_UNKNOWN_MEMBER : PROBLEM_INVALID,
                 fault->pointer, "%s", fault->reason);
}

static void replay_free(void *state)
{
    struct replay *replay = state;

    buf_release(&replay->out.buf);
    free(replay);
}

static enum err_code store_replay(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct replay *p = r->state;
    int64_t now_ms = clock_wall_ms();
    enum err_code code = p->by_time ? outbox_replay(tx, r->arguments[0], p->since_ms,
                                                    p->until_ms, now_ms, &p->count, err)
                                    : deliveries_replay(tx, r->arguments[0], p->delivery,
                                                        now_ms, &p->count, err);

    if (code == ERR_OK) {
        out_open(&p->out, NULL, '{');
        out_int(&p->out, "replayed", p->count);
        out_format(&p->out, "deliveries", "/v1/webhooks/%s/deliveries", r->arguments[0]);
        out_close(&p->out, '}');
    }
    return code;
}

static void replayed(struct request *r)
{
    const struct api_hooks *hooks = &r->api->hooks;
    struct replay *p = r->state;

    hooks->webhooks_changed(hooks->arg);
    r->format = FORMAT_JSON;
    reply_json(r, MHD_HTTP_OK, &p->out);
}

static void take_asked(struct request *r, const struct asked *asked)
{
    struct replay *p;

    if ((asked->delivery > 0) + asked->dead + (asked->since != NULL) != 1 ||
        (asked->until && !asked->since)) {
        reply_problem(r, PROBLEM_INVALID,
                      "a replay has one of 'delivery', 'dead' (true) and 'since', which "
                      "may have 'until'");
        return;
    }
    p = xcalloc(1, sizeof *p);
    request_keep(r, p, replay_free);
    p->delivery = asked->delivery;
    p->until_ms = INT64_MAX;
    p->by_time = asked->since != NULL;
    if (asked->since) {
        clock_parse_rfc3339(asked->since, &p->since_ms);
    }
    if (asked->until) {
        clock_parse_rfc3339(asked->until, &p->until_ms);
    }
    request_write(r, store_replay, replayed);
}

void webhooks_replay(struct request *r)
{
    json_t *body = body_json(r);
    struct asked asked = { .delivery = 0 };

    if (!body) {
        return;
    }
    if (!json_is_object(body)) {
        problems_add(&r->problems, PROBLEM_INVALID, "", "must be an object");
    } else {
        in_read(&asked_shape, body, &asked, add_problem, &r->problems);
    }
    if (r->problems.count > 0) {
        reply_problems(r);
    } else {
        take_asked(r, &asked);
    }
    json_decref(body);
}
