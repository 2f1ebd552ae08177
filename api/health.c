/* GET /healthz and /readyz: whether the process answers, and whether it can run jobs and
 * keep what it accepts. */
#include "api/http/handlers.h"
#include "api/http/reply.h"
#include "daemon/base/buf.h"

static void open_status(struct request *r, struct json_out *out, const char *status)
{
    out_open(out, NULL, '{');
    out_text(out, "status", status);
    out_text(out, "version", r->api->options.version);
}

void health_get(struct request *r)
{
    struct json_out out = JSON_OUT_INIT;

    open_status(r, &out, "ok");
    out_close(&out, '}');
    reply_json(r, 200, &out);
}

static void conditions_json(struct json_out *out, const struct health *health)
{
    out_open(out, "conditions", '[');
    for (int i = 0; i < HEALTH_CONDITIONS; i++) {
        if (health->conditions[i].cause[0]) {
            out_open(out, NULL, '{');
            out_text(out, "name", health_name((enum health_condition)i));
            out_text(out, "cause", health->conditions[i].cause);
            out_time(out, "since", health->conditions[i].since_ms);
            out_close(out, '}');
        }
    }
    out_close(out, ']');
}

/* "storage: …; devices: …" */
static void reply_not_ready(struct request *r, const struct health *health)
{
    struct buf detail = BUF_INIT;

    for (int i = 0; i < HEALTH_CONDITIONS; i++) {
        if (health->conditions[i].cause[0]) {
            buf_printf(&detail, "%s%s: %s", detail.length ? "; " : "",
                       health_name((enum health_condition)i),
                       health->conditions[i].cause);
        }
    }
    reply_problem(r, PROBLEM_NOT_READY, "%s", detail.data);
    buf_release(&detail);
}

void ready_get(struct request *r)
{
    const struct health *health = r->api->hooks.health(r->api->hooks.arg);
    struct json_out out = JSON_OUT_INIT;

    if (!health_ready(health)) {
        reply_not_ready(r, health);
        return;
    }
    open_status(r, &out, "ready");
    conditions_json(&out, health);
    out_close(&out, '}');
    reply_json(r, 200, &out);
}
