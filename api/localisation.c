/* GET /v1/jobs/{id}/localisation: where the runs of one case diverge, as JSON and, made
 * from that, as text. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/reply.h"
#include "api/render/nouns_json.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "db/jobs.h"
#include "db/localisations.h"

enum { LABEL_WIDTH = 14, LINE_WIDTH = 92 };

struct view {
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
    bool is_found = json_is_object(root);

    out_text(out, "place", in_text(root, "place"));
    out_int_if(out, "step", is_found, in_int(root, "step"));
    out_int_if(out, "iteration", is_found, in_int(root, "iteration"));
    json_decref(found);
}

static void render(const struct view *view, struct json_out *out)
{
    const struct localisation *l = &view->localisation;
    const struct job_item *items = view->job.items;

    out_open(out, NULL, '{');
    out_text(out, "job", view->job.id);
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

static void label(struct buf *buf, const char *name)
{
    buf_puts(buf, "  ");
    text_pad(buf, name, LABEL_WIDTH - 2);
}

static void heading(const json_t *l, struct buf *buf)
{
    const json_t *reason = json_object_get(l, "reason");

    buf_printf(buf, "Localisation of job %s: %s\n\n", in_text_or_empty(l, "job"),
               in_text_or_empty(l, "state"));
    label(buf, "Case");
    text_line(buf, "%s %s (%s, %s, seed %s) on %s, stack %s",
              in_text_or_empty(l, "workload"), in_text_or_empty(l, "variant"),
              in_text_or_empty(l, "size"), in_text_or_empty(l, "dtype"),
              in_text_or_empty(l, "seed"), in_text_or_empty(l, "device"),
              in_text_or_empty(l, "stack"));
    if (json_is_string(json_object_get(l, "place"))) {
        label(buf, "Place");
        text_line(buf, "%s", in_text_or_empty(l, "place"));
        label(buf, "Step");
        buf_printf(buf, "%" PRId64 " of iteration %" PRId64 "\n", in_int(l, "step"),
                   in_int(l, "iteration"));
    }
    label(buf, "Runs");
    buf_printf(buf,
               "%" PRId64 " searched (at least %" PRId64 ", at most %" PRId64
               "), %" PRId64 " captured, %" PRId64 " failed\n",
               in_int(l, "runs_searched"), in_int(l, "runs_min"), in_int(l, "runs_max"),
               in_int(l, "runs_captured"), in_int(l, "runs_failed"));
    if (json_is_string(reason)) {
        label(buf, "Finding");
        text_wrap(buf, json_string_value(reason), LINE_WIDTH, LABEL_WIDTH);
    }
}

static void place_line(const json_t *place, struct buf *buf)
{
    text_line(buf, "%s at step %" PRId64 " of iteration %" PRId64,
              in_text_or_empty(place, "place"), in_int(place, "step"),
              in_int(place, "iteration"));
}

static void structure_lines(const json_t *structure, struct buf *buf)
{
    static const char *const sides[] = { "a", "b" };

    label(buf, "Structure");
    buf_printf(
        buf, "diverges at record %" PRId64 "; %" PRId64 " runs diverge from the first\n",
        in_int(structure, "position"), in_int(structure, "runs_apart"));
    for (int i = 0; i < 2; i++) {
        const json_t *side = json_object_get(structure, sides[i]);

        label(buf, "");
        if (json_is_object(side)) {
            place_line(side, buf);
        } else {
            buf_puts(buf, "the trace ends\n");
        }
    }
}

static void search_lines(const json_t *search, struct buf *buf)
{
    const json_t *example = json_object_get(search, "example");
    const json_t *first = json_object_get(search, "first_difference");
    const json_t *root = json_object_get(search, "root");
    const json_t *structure = json_object_get(search, "structure");

    if (json_is_object(first) && in_int(first, "position") != in_int(root, "position")) {
        label(buf, "Before it");
        place_line(first, buf);
        label(buf, "");
        buf_puts(buf, "read something else already; its source has no probe\n");
    }
    if (json_is_object(structure)) {
        structure_lines(structure, buf);
    }
    if (json_is_array(example)) {
        const char *a = json_string_value(json_array_get(example, 0));
        const char *b = json_string_value(json_array_get(example, 1));

        label(buf, "For example");
        buf_printf(buf, "/v1/compare.txt?a=%s&b=%s\n", a ? a : "", b ? b : "");
    }
}

static void bits_line(const json_t *bits, struct buf *buf)
{
    bool any = false;
    json_t *count;
    size_t i;

    label(buf, "  XOR bits");
    json_array_foreach((json_t *)bits, i, count)
    {
        if (json_integer_value(count)) {
            buf_printf(buf, "%s%zu: %" PRId64, any ? ", " : "", i,
                       (int64_t)json_integer_value(count));
            any = true;
        }
    }
    buf_puts(buf, any ? "\n" : "none\n");
}

static int64_t pair_of(const json_t *signature, const char *key, size_t side)
{
    return json_integer_value(json_array_get(json_object_get(signature, key), side));
}

static void signature_lines(const json_t *s, struct buf *buf)
{
    const json_t *period = json_object_get(s, "period");
    char differ[TEXT_NUMBER_SIZE];
    char elements[TEXT_NUMBER_SIZE];

    label(buf, "  differ");
    buf_printf(buf, "%s of %s elements", text_number(in_int(s, "differ"), differ),
               text_number(in_int(s, "elements"), elements));
    if (in_int(s, "differ")) {
        buf_printf(buf, ", index %" PRId64 " to %" PRId64, in_int(s, "first"),
                   in_int(s, "last"));
    }
    buf_putc(buf, '\n');
    label(buf, "  distance");
    if (json_is_string(json_object_get(s, "max_ulp"))) {
        buf_printf(buf, "at most %s units in the last place, ",
                   in_text_or_empty(s, "max_ulp"));
    }
    buf_printf(buf, "at most %.9g\n",
               json_number_value(json_object_get(s, "max_absolute")));
    bits_line(json_object_get(s, "bits"), buf);
    if (json_is_object(period)) {
        label(buf, "  period");
        buf_printf(buf,
                   "%" PRId64 ": the indices leave %" PRId64 " remainder%s, from %" PRId64
                   "\n",
                   in_int(period, "period"), in_int(period, "residues"),
                   in_int(period, "residues") == 1 ? "" : "s", in_int(period, "phase"));
    }
    label(buf, "  special");
    buf_printf(buf,
               "NaN %" PRId64 " and %" PRId64 ", infinite %" PRId64 " and %" PRId64
               ", signs of zero %" PRId64 "\n",
               pair_of(s, "nan", 0), pair_of(s, "nan", 1), pair_of(s, "infinite", 0),
               pair_of(s, "infinite", 1), in_int(s, "zero_signs"));
}

static void tensor_lines(const json_t *tensor, struct buf *buf)
{
    const json_t *signature = json_object_get(tensor, "signature");
    json_t *extent;
    size_t i;

    buf_printf(buf, "\n  Output %" PRId64 "%s", in_int(tensor, "index"),
               *in_text_or_empty(tensor, "name") ? " " : "");
    text_pad(buf, in_text_or_empty(tensor, "name"), 0);
    buf_puts(buf, ": ");
    text_pad(buf, in_text_or_empty(tensor, "dtype"), 0);
    buf_putc(buf, '[');
    json_array_foreach(json_object_get(tensor, "shape"), i, extent)
    {
        buf_printf(buf, "%s%" PRId64, i ? "," : "", (int64_t)json_integer_value(extent));
    }
    buf_puts(buf, "]");
    if (in_int(tensor, "captured_bytes") < in_int(tensor, "bytes_total")) {
        buf_printf(buf, ", the first %" PRId64 " of %" PRId64 " bytes",
                   in_int(tensor, "captured_bytes"), in_int(tensor, "bytes_total"));
    }
    buf_putc(buf, '\n');
    if (json_is_object(signature)) {
        signature_lines(signature, buf);
    } else {
        label(buf, "  differ");
        buf_puts(buf, "in dtype or shape\n");
    }
}

static void difference_lines(const json_t *difference, struct buf *buf)
{
    json_t *tensor;
    size_t i;

    buf_printf(buf, "\nRuns %s and %s read the same there and wrote:\n",
               in_text_or_empty(difference, "a"), in_text_or_empty(difference, "b"));
    json_array_foreach(json_object_get(difference, "tensors"), i, tensor)
    {
        tensor_lines(tensor, buf);
    }
}

/* For a terminal, made from the JSON, so that the two cannot disagree. */
static void render_text(const char *json, struct buf *buf)
{
    json_t *l = json_loads(json, 0, NULL);
    const json_t *search = json_object_get(l, "search");
    const json_t *difference = json_object_get(l, "difference");

    heading(l, buf);
    if (json_is_object(search)) {
        search_lines(search, buf);
    }
    if (json_is_object(difference)) {
        difference_lines(difference, buf);
    }
    json_decref(l);
}

static enum err_code read_view(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct view *view = r->state;
    struct json_out out = JSON_OUT_INIT;
    struct buf text = BUF_INIT;

    if (localisations_get(tx, r->arguments[0], &view->localisation, err) != ERR_OK ||
        jobs_get(tx, r->arguments[0], &view->job, err) != ERR_OK) {
        return err->code;
    }
    render(view, &out);
    if (r->format == FORMAT_TEXT) {
        render_text(out.buf.data, &text);
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
    request_read(r, read_view, NULL);
}
