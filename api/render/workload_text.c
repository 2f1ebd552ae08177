#include "api/render/workload_text.h"

#include "daemon/base/text.h"

enum { WIDTH = 96, NAME_COLUMN = 2, TEXT_COLUMN = 4 };

static void paragraph(struct buf *buf, int indent, const char *text)
{
    buf_pad(buf, "", indent);
    text_wrap(buf, text, WIDTH, indent);
}

static void variants_text(const struct catalogue_workload *w, struct buf *buf)
{
    buf_puts(buf, "\nVARIANTS\n");
    for (int i = 0; i < w->variant_count; i++) {
        const struct catalogue_variant *v = &w->variants[i];

        buf_pad(buf, "", NAME_COLUMN);
        buf_printf(buf, "%s%s\n", v->name, v->control ? " (control)" : "");
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
        buf_pad(buf, "", NAME_COLUMN);
        buf_printf(buf, "%s: %s\n", w->sizes[i].name, w->sizes[i].description);
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
        const char *id = json_string_value(json_object_get(reference, "id"));
        const char *title = json_string_value(json_object_get(reference, "title"));
        const char *solved = json_string_value(json_object_get(reference, "solved"));

        buf_pad(buf, "", NAME_COLUMN);
        buf_printf(buf, "%s%s%s%s\n", id ? id : "", solved ? " (" : "",
                   solved ? solved : "", solved ? ")" : "");
        paragraph(buf, TEXT_COLUMN, title ? title : "");
    }
}

void workload_text(const struct catalogue_workload *w, struct buf *buf)
{
    buf_printf(buf, "%s: %s\n", w->name, w->title);
    paragraph(buf, 0, w->summary);
    buf_printf(buf, "backend %s, version %d; weight sum: %s; loss: %s\n", w->backend,
               w->version, w->weight_sum, w->loss ? w->loss : "none");
    variants_text(w, buf);
    sizes_text(w, buf);
    references_text(w, buf);
}
