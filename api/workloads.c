/* GET /v1/workloads: the catalogue.  It belongs to the loop and is small, so these reply
 * at once. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/reply.h"
#include "daemon/base/mem.h"
#include "daemon/base/nearest.h"
#include "daemon/base/text.h"
#include "daemon/evidence/catalogue.h"

enum { WIDTH = 96, NAME_COLUMN = 2, TEXT_COLUMN = 4 };

static bool is_cuda(const struct catalogue_workload *w)
{
    return strcmp(w->backend, "cuda") == 0;
}

static json_t *verified_json(const struct verified *v, int version)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:s}", "date", v->date, "gpu", v->gpu,
                     "driver", v->driver, "worker_build", v->worker_build, "version",
                     v->version, "outcome", verified_outcome(v, version));
}

static json_t *executed_json(const struct executed *e, int version)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:s}", "date", e->date, "toolkit",
                     e->toolkit, "target", e->target, "sizes", e->sizes, "version",
                     e->version, "outcome", executed_outcome(e, version));
}

/* What the worker printed, and for each CUDA variant whether it was verified on a GPU,
 * and whether its PTX was executed on a CPU.  Caller frees. */
static char *catalogue_json(const struct catalogue_workload *w,
                            const struct verified_set *set)
{
    json_t *copy = json_deep_copy(w->json);
    char *text;

    for (int i = 0; is_cuda(w) && i < w->variant_count; i++) {
        json_t *variant = json_array_get(json_object_get(copy, "variants"), (size_t)i);
        const char *name = w->variants[i].name;
        struct verified v;
        struct executed e;

        json_object_set_new(variant, "verified",
                            verified_find(set, w->name, name, &v)
                                ? verified_json(&v, w->version)
                                : json_null());
        json_object_set_new(variant, "ptx_on_cpu",
                            executed_find(verified_executed(set), w->name, name, &e)
                                ? executed_json(&e, w->version)
                                : json_null());
    }
    text = json_dumps(copy, JSON_COMPACT);
    json_decref(copy);
    return text;
}

/* How many variants no GPU judged, but whose PTX passed on a CPU. */
static int executed_only(const struct catalogue_workload *w,
                         const struct verified_set *set)
{
    int count = 0;

    for (int i = 0; i < w->variant_count; i++) {
        const char *name = w->variants[i].name;
        struct verified v;
        struct executed e;

        count += !verified_find(set, w->name, name, &v) &&
                 executed_find(verified_executed(set), w->name, name, &e) &&
                 strcmp(executed_outcome(&e, w->version), "passed") == 0;
    }
    return count;
}

/* The same for a table: "unverified", or a text for each variant that was judged. */
static void verification_json(struct json_out *out, const struct catalogue_workload *w,
                              const struct verified_set *set)
{
    int judged = 0;
    int executed;

    if (!is_cuda(w)) {
        out_null(out, "verification");
        return;
    }
    out_open(out, "verification", '[');
    for (int i = 0; i < w->variant_count; i++) {
        const char *name = w->variants[i].name;
        struct verified v;

        if (verified_find(set, w->name, name, &v)) {
            out_format(out, NULL, "%s %s %.10s", name, verified_outcome(&v, w->version),
                       v.date);
            judged++;
        }
    }
    if (judged < w->variant_count) {
        out_text(out, NULL, judged ? "others unverified" : "unverified");
        executed = executed_only(w, set);
        if (executed > 0) {
            out_format(out, NULL, "of these %d passed as nvcc's PTX on a CPU, no GPU",
                       executed);
        }
    }
    out_close(out, ']');
}

static void workload_json(struct json_out *out, const struct catalogue_workload *w,
                          const struct verified_set *set)
{
    char *json = catalogue_json(w, set);

    /* And what only a table needs. */
    json[strlen(json) - 1] = '\0';
    out_json(out, NULL, json);
    free(json);
    out_open(out, "variant_names", '[');
    for (int i = 0; i < w->variant_count; i++) {
        out_text(out, NULL, w->variants[i].name);
    }
    out_close(out, ']');
    out_open(out, "size_names", '[');
    for (int i = 0; i < w->size_count; i++) {
        out_text(out, NULL, w->sizes[i].name);
    }
    out_close(out, ']');
    verification_json(out, w, set);
    out_format(out, "href", "/v1/workloads/%s", w->name);
    out_close(out, '}');
}

/* Into open "items": the workloads called NAME, or all for NULL.  Returns how many. */
static int list_json(struct json_out *out, const struct request *r,
                     const struct catalogue *catalogue, const char *name)
{
    const struct verified_set *set = r->api->hooks.verified(r->api->hooks.arg);
    int found = 0;

    for (int i = 0; i < catalogue_count(catalogue); i++) {
        const struct catalogue_workload *w = catalogue_at(catalogue, i);

        if (!name || strcmp(w->name, name) == 0) {
            workload_json(out, w, set);
            found++;
        }
    }
    return found;
}

/* NULL after having replied. */
static const struct catalogue *known_catalogue(struct request *r)
{
    const struct catalogue *catalogue = r->api->hooks.catalogue(r->api->hooks.arg);

    if (!catalogue) {
        reply_problem(r, PROBLEM_NOT_READY, "no agent has said yet what it can run");
    }
    return catalogue;
}

void workloads_get_list(struct request *r)
{
    const struct catalogue *catalogue = known_catalogue(r);
    struct json_out out = JSON_OUT_INIT;

    if (!catalogue) {
        return;
    }
    list_open(&out);
    list_json(&out, r, catalogue, NULL);
    list_reply(r, &out);
}

static void reply_unknown(struct request *r, const struct catalogue *catalogue)
{
    int count = catalogue_count(catalogue);
    const char **names = xcalloc((size_t)count + 1, sizeof *names);
    char hint[NEAREST_HINT_SIZE];

    for (int i = 0; i < count; i++) {
        names[i] = catalogue_at(catalogue, i)->name;
    }
    reply_problem(r, PROBLEM_NOT_FOUND, "there is no workload '%.64s'%s", r->arguments[0],
                  nearest_hint(r->arguments[0], names, count, hint));
    free(names);
}

static void paragraph(struct buf *buf, int indent, const char *text)
{
    text_pad(buf, "", indent);
    text_wrap(buf, text, WIDTH, indent);
}

static void variants_text(const struct catalogue_workload *w, struct buf *buf)
{
    buf_puts(buf, "\nVARIANTS\n");
    for (int i = 0; i < w->variant_count; i++) {
        const struct catalogue_variant *v = &w->variants[i];

        text_pad(buf, "", NAME_COLUMN);
        text_line(buf, "%s%s%s%s", v->name, v->control ? " (control: " : "",
                  v->control ? v->kind : "", v->control ? ")" : "");
        paragraph(buf, TEXT_COLUMN, v->summary);
        paragraph(buf, TEXT_COLUMN, v->models);
    }
    if (w->no_control) {
        paragraph(buf, NAME_COLUMN, w->no_control);
    }
}

static void sizes_text(const struct catalogue_workload *w, struct buf *buf)
{
    buf_puts(buf, "\nSIZES\n");
    for (int i = 0; i < w->size_count; i++) {
        text_pad(buf, "", NAME_COLUMN);
        text_line(buf, "%s: %s", w->sizes[i].name, w->sizes[i].description);
    }
}

/* "tensorflow PR 31465: pull request, merged 2020-06, solved: TF 2.1", its title and its
 * address. */
static void reference_text(const json_t *reference, struct buf *buf)
{
    const char *id = json_string_value(json_object_get(reference, "id"));
    const char *kind = json_string_value(json_object_get(reference, "kind"));
    const char *title = json_string_value(json_object_get(reference, "title"));
    const char *url = json_string_value(json_object_get(reference, "url"));
    const char *state = json_string_value(json_object_get(reference, "state"));
    const char *solved = json_string_value(json_object_get(reference, "solved"));

    text_pad(buf, "", NAME_COLUMN);
    text_line(buf, "%s%s%s%s%s%s%s", id ? id : "", kind ? ": " : "", kind ? kind : "",
              state ? ", " : "", state ? state : "", solved ? ", solved: " : "",
              solved ? solved : "");
    paragraph(buf, TEXT_COLUMN, title ? title : "");
    if (url) {
        text_pad(buf, "", TEXT_COLUMN);
        text_line(buf, "%s", url);
    }
}

static void references_text(const struct catalogue_workload *w, struct buf *buf)
{
    const json_t *references = json_object_get(w->json, "references");
    size_t i;
    json_t *reference;

    buf_puts(buf, json_array_size(references) ? "\nREFERENCES\n" : "");
    json_array_foreach(references, i, reference)
    {
        reference_text(reference, buf);
    }
}

static void workload_text(const struct catalogue_workload *w, struct buf *buf)
{
    text_line(buf, "%s: %s", w->name, w->title);
    paragraph(buf, 0, w->summary);
    text_line(buf, "backend %s, version %d; weight sum: %s; loss: %s", w->backend,
              w->version, w->weight_sum, w->loss ? w->loss : "none");
    variants_text(w, buf);
    sizes_text(w, buf);
    references_text(w, buf);
}

/* The workload called NAME, on every backend. */
static void reply_in_words(struct request *r, const struct catalogue *catalogue,
                           const char *name)
{
    struct buf buf = BUF_INIT;

    for (int i = 0; i < catalogue_count(catalogue); i++) {
        const struct catalogue_workload *w = catalogue_at(catalogue, i);

        if (strcmp(w->name, name) == 0) {
            buf_puts(&buf, buf.length > 0 ? "\n" : "");
            workload_text(w, &buf);
        }
    }
    reply_text(r, &buf);
}

void workloads_get_one(struct request *r)
{
    const struct catalogue *catalogue = known_catalogue(r);
    struct json_out out = JSON_OUT_INIT;

    if (!catalogue) {
        return;
    }
    if (r->format == FORMAT_TEXT && catalogue_find(catalogue, r->arguments[0], NULL)) {
        reply_in_words(r, catalogue, r->arguments[0]);
        return;
    }
    out_open(&out, NULL, '{');
    out_text(&out, "workload", r->arguments[0]);
    out_open(&out, "items", '[');
    if (list_json(&out, r, catalogue, r->arguments[0]) == 0) {
        buf_release(&out.buf);
        reply_unknown(r, catalogue);
        return;
    }
    out_close(&out, ']');
    out_close(&out, '}');
    reply_json(r, 200, &out);
}
