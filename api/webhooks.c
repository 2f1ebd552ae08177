/* /v1/webhooks: who is told of what happens; made, read, paused, tried and removed. */
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/webhooks/webhook.h"
#include "db/webhooks/outbox.h"
#include "db/webhooks/webhooks.h"

/* As JSON */

static const char *state_of(const struct webhook *w)
{
    return w->disabled[0]  ? "disabled"
           : w->paused     ? "paused"
           : w->failing_ms ? "failing"
                           : "active";
}

static void types_json(struct json_out *out, unsigned types)
{
    out_open(out, "types", '[');
    for (int i = 0; i < WEBHOOK_TEST; i++) {
        if (types & 1U << i) {
            out_text(out, NULL, webhook_type_name((enum webhook_type)i));
        }
    }
    out_close(out, ']');
}

/* SECRET: the one time that it is shown; NULL: it is not. */
static void webhook_json(struct json_out *out, const struct webhook *w,
                         const char *secret)
{
    char url[URL_SIZE];

    url_shown(w->url, url);
    out_open(out, NULL, '{');
    out_text(out, "id", w->id);
    out_text(out, "name", w->name);
    out_text(out, "url", url);
    types_json(out, w->types);
    out_text(out, "origin", w->configured ? "configuration" : "api");
    out_text(out, "state", state_of(w));
    out_name(out, "disabled", w->disabled);
    out_int(out, "retry_ms", w->retry_ms);
    out_int(out, "timeout_ms", w->timeout_ms);
    out_time(out, "created_at", w->created_ms);
    out_int(out, "waiting", w->waiting);
    out_int(out, "dead", w->dead);
    out_int(out, "dropped", w->dropped);
    out_int(out, "delivered", w->delivered);
    out_int(out, "failures", w->failures);
    out_time(out, "delivered_at", w->delivered_ms);
    out_time(out, "failing_since", w->failing_ms);
    out_name(out, "last_failure", w->cause);
    if (secret) {
        out_text(out, "secret", secret);
    }
    out_close(out, '}');
}

static enum err_code one_json(struct tx *tx, const char *id, const char *secret,
                              struct json_out *out, struct err *err)
{
    struct webhook w;

    if (webhooks_get(tx, id, &w, err) != ERR_OK) {
        return err->code;
    }
    webhook_json(out, &w, secret);
    return ERR_OK;
}

/* Reading */

static enum err_code read_list(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct webhook *list = xcalloc(WEBHOOKS_MAX, sizeof *list);
    struct json_out out = JSON_OUT_INIT;
    int count;
    enum err_code code = webhooks_list(tx, true, list, &count, err);

    if (code == ERR_OK) {
        list_open(&out);
        for (int i = 0; i < count; i++) {
            webhook_json(&out, &list[i], NULL);
        }
        list_reply(r, &out);
    }
    free(list);
    return code;
}

void webhooks_get_list(struct request *r)
{
    request_read(r, read_list, NULL);
}

static enum err_code read_one(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct json_out out = JSON_OUT_INIT;

    if (one_json(tx, r->arguments[0], NULL, &out, err) != ERR_OK) {
        return err->code;
    }
    reply_json(r, MHD_HTTP_OK, &out);
    return ERR_OK;
}

void webhooks_get_one(struct request *r)
{
    request_read(r, read_one, NULL);
}

/* Writing */

/* What is asked for, on its way into the store. */
struct change {
    struct webhook webhook;
    bool shows_secret; /* reprod made it: it is shown, now and never again */
    bool pauses;
    int64_t delivery;
    struct json_out out;
};

static void change_free(void *state)
{
    struct change *c = state;

    buf_release(&c->out.buf);
    explicit_bzero(c->webhook.secret, sizeof c->webhook.secret);
    free(c);
}

static struct change *change_new(struct request *r)
{
    struct change *c = xcalloc(1, sizeof *c);

    request_keep(r, c, change_free);
    return c;
}

static void changed(struct request *r)
{
    const struct api_hooks *hooks = &r->api->hooks;
    struct change *c = r->state;

    hooks->webhooks_changed(hooks->arg);
    r->format = FORMAT_JSON;
    if (c->webhook.id[0]) {
        reply_header(r, "Location", "/v1/webhooks/%s", c->webhook.id);
    }
    reply_json(r, c->webhook.id[0] ? MHD_HTTP_CREATED : MHD_HTTP_OK, &c->out);
}

static enum err_code store_new(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct change *c = r->state;
    enum err_code code = webhooks_insert(tx, &c->webhook, err);

    if (code == ERR_CONFLICT || code == ERR_BUSY) {
        reply_problem(r, code == ERR_BUSY ? PROBLEM_TOO_MANY : PROBLEM_CONFLICT, "%s",
                      err->message);
        return ERR_OK;
    }
    return code == ERR_OK
               ? one_json(tx, c->webhook.id, c->shows_secret ? c->webhook.secret : NULL,
                          &c->out, err)
               : code;
}

static void add_problem(void *problems, const struct in_fault *fault)
{
    problems_add(problems, fault->unknown ? PROBLEM_UNKNOWN_MEMBER : PROBLEM_INVALID,
                 fault->pointer, "%s", fault->reason);
}

/* A name is looked at when it is resolved, each time. */
static void check_address(struct request *r, const struct webhook *w)
{
    const struct api_hooks *hooks = &r->api->hooks;
    char refusal[REFUSAL_SIZE];
    struct url url;

    url_read(w->url, &url);
    if (host_refusal(url.host, hooks->webhook_networks(hooks->arg), refusal)) {
        problems_add(&r->problems, PROBLEM_INVALID, "/url",
                     "leads to %s, which only 'webhook_networks' of the configuration "
                     "can allow",
                     refusal);
    }
}

static void take_body(struct request *r, const json_t *body)
{
    struct change *c = change_new(r);

    if (!json_is_object(body)) {
        problems_add(&r->problems, PROBLEM_INVALID, "", "must be an object");
    } else if (webhook_read(body, &c->webhook, add_problem, &r->problems)) {
        check_address(r, &c->webhook);
    }
    if (r->problems.count > 0) {
        reply_problems(r);
        return;
    }
    if (!c->webhook.secret[0]) {
        c->shows_secret = true;
        secret_new(c->webhook.secret);
    }
    c->webhook.created_ms = clock_wall_ms();
    id_new(c->webhook.created_ms, c->webhook.id);
    request_write(r, store_new, changed);
}

void webhooks_post(struct request *r)
{
    json_t *body = body_json(r);

    if (body) {
        take_body(r, body);
        json_decref(body);
    }
}

static bool refuse_body(struct request *r)
{
    if (r->body.length > 0) {
        reply_problem(r, PROBLEM_INVALID, "this takes no body");
    }
    return r->body.length > 0;
}

static enum err_code store_pause(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct change *c = r->state;

    return webhooks_pause(tx, r->arguments[0], c->pauses, clock_wall_ms(), err) == ERR_OK
               ? one_json(tx, r->arguments[0], NULL, &c->out, err)
               : err->code;
}

static void change_pause(struct request *r, bool pauses)
{
    struct change *c = change_new(r);

    c->pauses = pauses;
    if (!refuse_body(r)) {
        request_write(r, store_pause, changed);
    }
}

void webhooks_pause_one(struct request *r)
{
    change_pause(r, true);
}

void webhooks_resume_one(struct request *r)
{
    change_pause(r, false);
}

static enum err_code delete_one(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct change *c = r->state;
    enum err_code code = one_json(tx, r->arguments[0], NULL, &c->out, err);

    if (code == ERR_OK) {
        code = webhooks_delete(tx, r->arguments[0], err);
    }
    if (code == ERR_CONFLICT) {
        reply_problem(r, PROBLEM_CONFLICT, "%s", err->message);
        return ERR_OK;
    }
    return code;
}

void webhooks_delete_one(struct request *r)
{
    change_new(r);
    request_write(r, delete_one, changed);
}

static enum err_code store_test(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct change *c = r->state;

    if (outbox_test(tx, r->arguments[0], clock_wall_ms(), &c->delivery, err) != ERR_OK) {
        return err->code;
    }
    out_open(&c->out, NULL, '{');
    out_int(&c->out, "delivery", c->delivery);
    out_format(&c->out, "deliveries", "/v1/webhooks/%s/deliveries", r->arguments[0]);
    out_close(&c->out, '}');
    return ERR_OK;
}

void webhooks_test_one(struct request *r)
{
    change_new(r);
    if (!refuse_body(r)) {
        request_write(r, store_test, changed);
    }
}
