/* GET /v1/drift: what happened to each case between two environments, or between those
 * that a host had before and after a time. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/render/drift.h"
#include "api/unknown.h"
#include "daemon/base/array.h"
#include "daemon/base/choices.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "db/fleet.h"

enum { DRIFTS_MAX = 16 };

struct asked {
    char from[DIGEST_TEXT_SIZE], to[DIGEST_TEXT_SIZE]; /* "": by host and time */
    char host[CASE_TITLE_SIZE];
    int64_t since_ms, until_ms, now_ms; /* until 0: now */
    struct drift *drifts;
    bool unmeasured; /* something was before, and nothing since, before `until` */
    int count, more; /* pairs that are shown; beyond DRIFTS_MAX */
};

static void asked_free(void *state)
{
    struct asked *asked = state;

    for (int i = 0; i < asked->count; i++) {
        drift_release(&asked->drifts[i]);
    }
    free(asked->drifts);
    free(asked);
}

static void read_asked(struct request *r, struct asked *asked)
{
    bool by_host = request_parameter(r, "host") || request_parameter(r, "since") ||
                   request_parameter(r, "until");
    static const char *const names[] = { "from", "to", "host", "since" };

    asked->now_ms = clock_wall_ms();
    param_text(r, "from", asked->from, sizeof asked->from);
    param_text(r, "to", asked->to, sizeof asked->to);
    param_text(r, "host", asked->host, sizeof asked->host);
    asked->since_ms = param_time(r, "since");
    asked->until_ms = param_time(r, "until");
    for (int i = 0; i < COUNT_OF(names); i++) {
        if ((i >= 2) != by_host && request_parameter(r, names[i])) {
            problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, names[i],
                                   "give either 'from' and 'to', or 'host' and 'since'");
        } else if ((i >= 2) == by_host && !request_parameter(r, names[i])) {
            problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, names[i],
                                   "must be given: 'from' and 'to' are environments, "
                                   "'host' and 'since' a host and a time");
        }
    }
    if (asked->since_ms > asked->now_ms) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "since",
                               "lies in the future");
    }
    if (asked->until_ms && asked->until_ms <= asked->since_ms) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "until",
                               "is not after 'since'");
    }
    if (asked->from[0] && strcmp(asked->from, asked->to) == 0) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "to",
                               "is the same environment");
    }
}

/* What there is instead. */

static void add_host(void *arg, const struct host *host)
{
    choices_add(arg, host->name);
}

static enum err_code check_host(struct tx *tx, struct request *r, const char *name,
                                struct err *err)
{
    struct choices known = { .count = 0 };
    char hint[NEAREST_HINT_SIZE];
    enum err_code code = hosts_each(tx, add_host, &known, err);

    if (code == ERR_OK && !choices_hold(&known, name)) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "host",
                               "there is no host '%.100s'%s; see /v1/hosts", name,
                               choices_hint(&known, name, hint));
    }
    choices_release(&known);
    return code;
}

/* On a reader. */

static enum err_code add_drift(struct tx *tx, struct request *r, const char *from,
                               const char *to, struct err *err)
{
    struct asked *asked = r->state;
    const char *missing;
    enum err_code code;

    asked->drifts = xgrow(asked->drifts, asked->count, sizeof *asked->drifts);
    code = drift_read(tx, from, to, asked->now_ms, r->api->stale_after_ms,
                      &asked->drifts[asked->count++], &missing, err);
    return code == ERR_NOT_FOUND
               ? unknown_environment_parameter(tx, r, missing == from ? "from" : "to",
                                               missing, err)
               : code;
}

static enum err_code add_pair(struct tx *tx, struct request *r,
                              const struct drift_pair *pair, struct err *err)
{
    struct asked *asked = r->state;

    if (!pair->to[0]) { /* nothing was measured: there is nothing to show */
        asked->unmeasured = true;
        return ERR_OK;
    }
    asked->drifts = xgrow(asked->drifts, asked->count, sizeof *asked->drifts);
    return drift_read_pair(tx, pair, asked->host, asked->since_ms, asked->until_ms,
                           asked->now_ms, r->api->stale_after_ms,
                           &asked->drifts[asked->count++], err);
}

static enum err_code add_pairs(struct tx *tx, struct request *r, struct err *err)
{
    struct asked *asked = r->state;
    struct drift_pair pairs[DRIFT_PAIRS_MAX];
    int count = 0;

    if (check_host(tx, r, asked->host, err) != ERR_OK ||
        drift_pairs(tx, asked->host, asked->since_ms, asked->until_ms, pairs, &count,
                    err) != ERR_OK) {
        return err->code;
    }
    asked->more = count > DRIFTS_MAX ? count - DRIFTS_MAX : 0;
    for (int i = 0; i < count - asked->more; i++) {
        if (add_pair(tx, r, &pairs[i], err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

static enum err_code read_drift(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    const struct asked *asked = r->state;

    if ((asked->from[0] ? add_drift(tx, r, asked->from, asked->to, err)
                        : add_pairs(tx, r, err)) != ERR_OK) {
        return err->code;
    }
    if (r->problems.count > 0) {
        reply_problems(r);
    }
    return ERR_OK;
}

/* On the loop, which knows what can be run now. */

static void reply_as_json(struct request *r, const struct asked *asked)
{
    struct json_out out = JSON_OUT_INIT;

    out_open(&out, NULL, '{');
    out_name(&out, "host", asked->host);
    out_time(&out, "since", asked->since_ms);
    out_time(&out, "until", asked->until_ms);
    out_bool(&out, "unmeasured", asked->unmeasured);
    out_open(&out, "items", '[');
    for (int i = 0; i < asked->count; i++) {
        drift_json(&asked->drifts[i], &out);
    }
    out_close(&out, ']');
    out_int(&out, "more", asked->more);
    out_close(&out, '}');
    reply_json(r, 200, &out);
}

static void reply_as_text(struct request *r, const struct asked *asked)
{
    struct buf buf = BUF_INIT;

    for (int i = 0; i < asked->count; i++) {
        buf_puts(&buf, i ? "\n\n" : "");
        drift_text(&asked->drifts[i], &buf);
    }
    if (asked->count == 0) {
        buf_puts(&buf, asked->unmeasured
                           ? "Nothing of this host was measured between these times.\n"
                           : "Nothing of this host was measured before that time.\n");
    }
    reply_text(r, &buf);
}

static void reply_as_csv(struct request *r, const struct asked *asked)
{
    struct buf buf = BUF_INIT;

    drift_csv_head(&buf);
    for (int i = 0; i < asked->count; i++) {
        drift_csv(&asked->drifts[i], &buf);
    }
    reply_csv(r, &buf);
}

static void show(struct request *r)
{
    struct asked *asked = r->state;
    const struct device_stack *devices;
    int count = r->api->hooks.devices(r->api->hooks.arg, &devices);

    for (int i = 0; i < asked->count; i++) {
        drift_settle(&asked->drifts[i], devices, count);
    }
    if (r->format == FORMAT_TEXT) {
        reply_as_text(r, asked);
    } else if (r->format == FORMAT_CSV) {
        reply_as_csv(r, asked);
    } else {
        reply_as_json(r, asked);
    }
}

void drift_get(struct request *r)
{
    struct asked *asked = xcalloc(1, sizeof *asked);

    request_keep(r, asked, asked_free);
    read_asked(r, asked);
    if (!params_refused(r)) {
        request_read(r, read_drift, show);
    }
}
