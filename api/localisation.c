#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/reply.h"
#include "api/http/work.h"
#include "api/render/job_json.h"
#include "api/render/localisation_text.h"
#include "daemon/base/mem.h"
#include "db/jobs.h"
#include "db/localisations.h"

struct view {
    char id[ID_SIZE];
    struct job job;
    struct localisation localisation;
};

static void view_free(void *state)
{
    struct view *view = state;

    job_release(&view->job);
    localisation_release(&view->localisation);
    free(view);
}

/* A job that was cancelled before anything was concluded concludes nothing. */
static const char *state_of(const struct view *view)
{
    return view->job.state == JOB_CANCELLED && !view->localisation.ended_ms
               ? "cancelled"
               : localisation_state_name(view->localisation.state);
}

/* The place at the top, where a shell script looks for it. */
static void place_json(struct json_out *out, const char *search)
{
    json_t *found = search ? json_loads(search, 0, NULL) : NULL;
    const json_t *root = json_object_get(found, "root");

    if (json_is_object(root)) {
        out_text(out, "place", json_string_value(json_object_get(root, "place")));
        out_int(out, "step", json_integer_value(json_object_get(root, "step")));
        out_int(out, "iteration", json_integer_value(json_object_get(root, "iteration")));
    } else {
        out_null(out, "place");
        out_null(out, "step");
        out_null(out, "iteration");
    }
    json_decref(found);
}

static void render(const struct view *view, struct json_out *out)
{
    const struct localisation *l = &view->localisation;
    const struct job_item *items = view->job.items;

    out_open(out, NULL, '{');
    out_text(out, "job", view->id);
    out_text(out, "state", state_of(view));
    out_name(out, "reason", l->reason);
    place_json(out, l->search);
    case_json(out, &items[LOCALISATION_SEARCH].key);
    out_text(out, "device", items[LOCALISATION_SEARCH].device);
    out_text(out, "stack", items[LOCALISATION_SEARCH].stack);
    out_int(out, "runs_min", l->runs_min);
    out_int(out, "runs_max", items[LOCALISATION_SEARCH].runs_wanted);
    out_int(out, "runs_searched", items[LOCALISATION_SEARCH].runs_answered);
    out_int(out, "runs_captured", items[LOCALISATION_CAPTURE].runs_answered);
    out_int(out, "runs_failed",
            items[LOCALISATION_SEARCH].runs_failed +
                items[LOCALISATION_CAPTURE].runs_failed);
    out_time(out, "ended_at", l->ended_ms);
    out_json(out, "search", l->search);
    out_json(out, "difference", l->difference);
    out_close(out, '}');
}

static enum err_code read_view(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct view *view = r->state;
    struct json_out out = JSON_OUT_INIT;
    struct buf text = BUF_INIT;

    if (localisations_get(tx, view->id, &view->localisation, err) != ERR_OK ||
        jobs_get(tx, view->id, &view->job, err) != ERR_OK) {
        return err->code;
    }
    render(view, &out);
    if (r->format == FORMAT_TEXT) {
        localisation_text(out.buf.data, &text);
        buf_release(&out.buf);
        reply_text(r, &text);
    } else {
        reply_json(r, 200, &out);
    }
    return ERR_OK;
}

void localisation_get(struct request *r)
{
    struct view *view = xcalloc(1, sizeof *view);

    request_keep(r, view, view_free);
    if (!id_valid(r->arguments[0])) {
        reply_problem(r, PROBLEM_NOT_FOUND, "there is no job '%.64s'", r->arguments[0]);
        return;
    }
    copy_text(view->id, sizeof view->id, r->arguments[0]);
    request_read(r, read_view, NULL);
}
