/* GET /v1/export: the runs that were measured here, as another service takes them
 * (daemon/peers/peer_page.c reads it). */
#include <inttypes.h>
#include <stdlib.h>

#include "api/http/handlers.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/render/nouns_json.h"
#include "daemon/base/mem.h"
#include "db/peers/peer_export.h"

static void case_part(struct json_out *out, const struct peer_run *run)
{
    case_json(out, &run->run.key);
    out_format(out, "item_seed", "%" PRIu64, run->item_seed);
    out_bool(out, "challenge", run->run.is_challenge);
    out_bool(out, "control", run->is_control);
    out_text(out, "kind", run->kind);
    out_text(out, "no_control", run->no_control);
    out_bool(out, "unseeded", run->unseeded);
    out_text(out, "subject", subject_word(run->run.subject));
    out_text(out, "subject_name", run->run.subject_name);
    out_text(out, "stack", run->run.stack);
    out_text(out, "options", run->options);
}

static void device_part(struct json_out *out, const struct peer_run *run)
{
    out_text(out, "host", run->device.host);
    out_text(out, "boot_id", run->boot_id);
    out_text(out, "device", run->run.device);
    out_text(out, "backend", run->device.backend);
    out_text(out, "model", run->device.model);
    out_json(out, "attributes", run->attributes);
    out_text(out, "device_state", run->state);
    out_text(out, "device_state_since", run->state_since);
    out_json(out, "environment", run->environment);
}

static void check_part(struct json_out *out, const struct run_check *check)
{
    if (out_object(out, "check", check->state != CHECK_NONE)) {
        out_text(out, "state", check_state_name(check->state));
        out_text(out, "digest", check->digest);
        out_int(out, "share_ppm", check->share_ppm);
        out_text(out, "words", check->words);
        out_close(out, '}');
    }
}

static void results_part(struct json_out *out, const struct peer_run *run)
{
    const struct run_record *r = &run->run;

    out_int(out, "iterations", r->iterations);
    out_open(out, "digests", '[');
    for (int i = 0; i < run->digest_count; i++) {
        out_open(out, NULL, '{');
        out_text(out, "digest", run->digests[i].digest);
        out_int(out, "iterations", run->digests[i].iterations);
        out_int(out, "first_iteration", run->digests[i].first_iteration);
        out_close(out, '}');
    }
    out_close(out, ']');
    out_text(out, "input_digest", r->input_digest);
    out_text(out, "weight_sum", r->weight_sum);
    out_text(out, "loss", r->loss);
    out_text(out, "algorithm", r->algorithm);
    out_text(out, "claim", r->claim);
    out_int(out, "min_ns", r->min_ns);
    out_int(out, "median_ns", r->median_ns);
    out_int(out, "max_ns", r->max_ns);
    out_int(out, "elements", r->elements);
    out_int(out, "bytes_hashed", r->bytes_hashed);
    out_text(out, "device_read_back", r->device_read_back);
    out_int(out, "wall_ns", r->wall_ns);
    out_int(out, "max_rss_kb", r->max_rss_kb);
    check_part(out, &r->check);
}

static void run_part(struct json_out *out, const struct peer_run *run)
{
    const struct run_record *r = &run->run;

    out_text(out, "job", r->job);
    out_int(out, "item", r->item);
    out_int(out, "job_created_ms", run->job_created_ms);
    out_int(out, "asked", run->asked);
    case_part(out, run);
    device_part(out, run);
    out_int(out, "intent_ms", r->intent_ms);
    out_int(out, "started_ms", r->started_ms);
    out_int(out, "finished_ms", r->finished_ms);
    out_text(out, "outcome", outcome_name(r->outcome));
    out_text(out, "cause", r->cause);
    out_text(out, "circumstances", r->circumstances);
    results_part(out, run);
}

static bool hand_out(void *arg, const struct peer_run *run)
{
    struct json_out *out = arg;

    out_open(out, NULL, '{');
    out_text(out, "id", run->run.id);
    out_bool(out, "damaged", run->run.damaged);
    if (!run->run.damaged) {
        run_part(out, run);
    }
    out_close(out, '}');
    return out->buf.length < PEER_PAGE_BYTES;
}

struct asked {
    char since[ID_SIZE];
    int limit;
};

static enum err_code read_export(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    const struct asked *asked = r->state;
    struct json_out out = JSON_OUT_INIT;
    struct peer_page page;

    out_open(&out, NULL, '{');
    out_int(&out, "format", PEER_FORMAT);
    out_text(&out, "reprod", r->api->options.version);
    out_text(&out, "since", asked->since);
    out_open(&out, "items", '[');
    if (peers_export(tx, asked->since, asked->limit, hand_out, &out, &page, err) !=
        ERR_OK) {
        buf_release(&out.buf);
        return err->code;
    }
    out_close(&out, ']');
    out_text(&out, "service", page.service);
    out_text(&out, "cursor", page.cursor);
    out_bool(&out, "more", page.more);
    out_name(&out, "waits_for", page.waits_for);
    out_int(&out, "folded", page.folded);
    out_int(&out, "of_peers", page.of_peers);
    out_close(&out, '}');
    reply_json(r, 200, &out);
    return ERR_OK;
}

void export_get(struct request *r)
{
    struct asked *asked = xcalloc(1, sizeof *asked);
    const char *since = param_value(r, "since");

    request_keep(r, asked, NULL);
    copy_text(asked->since, sizeof asked->since, since ? since : PEER_CURSOR_FIRST);
    asked->limit = param_limit(r);
    r->heavy = true;
    if (!params_refused(r)) {
        request_read(r, read_export, NULL);
    }
}
