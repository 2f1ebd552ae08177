/* GET /v1/profiles: framework eras and their recipes.  They never change while the
 * process lives, so this replies at once. */
#include "daemon/evidence/profile.h"

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/reply.h"
#include "api/render/nouns_json.h"

static void names_json(struct json_out *out, const char *key,
                       const struct profile_label *labels, int count)
{
    out_open(out, key, '[');
    for (int i = 0; i < count; i++) {
        out_text(out, NULL, labels[i].name);
    }
    out_close(out, ']');
}

static void cell_json(struct json_out *out, const struct profile_table *t, int column,
                      const struct profile_cell *cell)
{
    out_open(out, NULL, '{');
    out_text(out, "column", t->columns[column].name);
    out_open(out, "choices", '[');
    for (int i = 0; i < cell->choice_count; i++) {
        out_open(out, NULL, '{');
        out_text(out, "recipe", cell->choices[i].recipe);
        out_text(out, "variant", cell->choices[i].variant);
        out_bool(out, "raises", cell->choices[i].variant == NULL);
        out_close(out, '}');
    }
    out_close(out, ']');
    out_text(out, "documented", cell->documented);
    out_text(out, "note", cell->note);
    out_close(out, '}');
}

static void table_json(struct json_out *out, const struct profile_table *t)
{
    out_open(out, NULL, '{');
    out_text(out, "id", t->id);
    out_text(out, "title", t->title);
    out_text(out, "source", t->source);
    labels_json(out, "recipes", "name", t->recipes, t->recipe_count);
    names_json(out, "recipe_names", t->recipes, t->recipe_count);
    columns_json(out, t);
    names_json(out, "column_ids", t->columns, t->column_count);
    out_open(out, "rows", '[');
    for (int r = 0; r < t->row_count; r++) {
        out_open(out, NULL, '{');
        out_text(out, "id", t->rows[r].id);
        out_text(out, "workload", t->rows[r].workload);
        out_text(out, "title", t->rows[r].title);
        subject_json(out, t->rows[r].subject, t->rows[r].subject_name);
        out_bool(out, "is_source", t->rows[r].is_source);
        row_references_json(out, &t->rows[r]);
        row_operations_json(out, &t->rows[r]);
        out_open(out, "cells", '[');
        for (int c = 0; c < t->column_count; c++) {
            if (!t->rows[r].cells[c].absent) {
                cell_json(out, t, c, &t->rows[r].cells[c]);
            }
        }
        out_close(out, ']');
        out_close(out, '}');
    }
    out_close(out, ']');
    out_format(out, "href", "/v1/matrix?table=%s", t->id);
    out_close(out, '}');
}

void profiles_get(struct request *r)
{
    const struct profile_set *set = r->api->hooks.profiles(r->api->hooks.arg);
    struct json_out out = JSON_OUT_INIT;

    list_open(&out);
    for (int i = 0; i < profile_set_count(set); i++) {
        table_json(&out, profile_set_at(set, i));
    }
    list_reply(r, &out);
}
