/* GET /healthz and /readyz: whether the process answers, and whether it can run jobs. */
#include "api/http/handlers.h"
#include "api/http/reply.h"

static void reply_status(struct request *r, const char *status)
{
    struct json_out out = JSON_OUT_INIT;

    out_open(&out, NULL, '{');
    out_text(&out, "status", status);
    out_text(&out, "version", r->api->options.version);
    out_close(&out, '}');
    reply_json(r, 200, &out);
}

void health_get(struct request *r)
{
    reply_status(r, "ok");
}

void ready_get(struct request *r)
{
    const char *reason = r->api->hooks.not_ready(r->api->hooks.arg);

    if (reason) {
        reply_problem(r, PROBLEM_NOT_READY, "%s", reason);
    } else {
        reply_status(r, "ready");
    }
}
