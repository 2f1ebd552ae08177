/* Digest classes as JSON and as CSV. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/render/classes.h"
#include "api/render/nouns_json.h"
#include "daemon/base/array.h"
#include "daemon/base/text.h"

static void names_json(struct json_out *out, const char *key, const json_t *names)
{
    size_t i;
    json_t *name;

    out_open(out, key, '[');
    json_array_foreach(names, i, name)
    {
        out_text(out, NULL, json_string_value(name));
    }
    out_close(out, ']');
}

static void column_json(const struct classes_view *view, int c, const json_t *names,
                        struct json_out *out)
{
    const struct classes *classes = view->classes;
    const struct class_column *column = &classes->columns[c];
    char *title = classes_column_title(view, c, names);
    char *facts =
        column->facts ? json_dumps(column->facts, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    out_open(out, NULL, '{');
    out_text(out, "id", column->id);
    out_text(out, "title", title);
    out_int(out, "devices", view->of_devices ? column->members : 0);
    out_int(out, "hosts", column->hosts ? column->hosts : column->host[0] != '\0');
    out_name(out, "host", column->host);
    out_name(out, "model", column->model);
    out_json(out, "facts", facts);
    out_time(out, "first_seen_at", column->first_ms);
    out_time(out, "last_seen_at", column->last_ms);
    if (view->of_devices || c + 1 >= classes->column_count) {
        out_null(out, "drift");
    } else {
        out_format(out, "drift", "/v1/drift?from=%s&to=%s", classes->columns[c + 1].id,
                   column->id);
    }
    out_close(out, '}');
    free(title);
    free(facts);
}

static void entry_json(const struct classes_view *view, const struct class_row *row,
                       int c, struct json_out *out)
{
    const struct class_entry *e = &row->entries[c];
    int letter = classes_letter(row, e);
    char name[CLASS_NAME_SIZE] = "";
    char mark[CLASS_MARK_SIZE];

    if (!out_object(out, NULL, e->cell != 0)) {
        return;
    }
    classes_mark(view, row, c, mark);
    out_name(out, "class", letter < 0 ? "" : classes_name(letter, name));
    out_text(out, "mark", mark);
    out_text(out, "verdict", verdict_name(e->verdict));
    out_name(out, "digest", letter < 0 ? "" : row->digests[e->digest]);
    out_int(out, "runs", e->runs);
    out_bool(out, "other_conditions", e->apart);
    if (view->of_devices) {
        out_int(out, "devices", e->members);
    }
    out_format(out, "href", "/v1/cells/%" PRId64, e->cell);
    out_close(out, '}');
}

static void row_json(const struct classes_view *view, const struct class_row *row,
                     struct json_out *out)
{
    out_open(out, NULL, '{');
    case_json(out, &row->key);
    out_bool(out, "is_control", row->is_control);
    subject_json(out, row->subject, row->subject_name);
    out_int(out, "classes", classes_count(row));
    out_bool(out, "varies", row->varies);
    out_bool(out, "differs", row->differs);
    out_open(out, "cells", '[');
    for (int c = view->first; c < view->first + view->count; c++) {
        entry_json(view, row, c, out);
    }
    out_close(out, ']');
    out_close(out, '}');
}

/* Adjacent rows of a workload, from row FIRST on; returns the row behind them. */
static int group_json(const struct classes_view *view, int first, struct json_out *out)
{
    const struct classes *classes = view->classes;
    const char *workload = classes->rows[first].key.workload;
    int end = first;
    int shown = 0;
    int differing = 0;

    while (end < classes->row_count &&
           strcmp(classes->rows[end].key.workload, workload) == 0) {
        differing += classes->rows[end].differs;
        shown += classes_show_row(view, &classes->rows[end++]);
    }
    if (shown == 0) {
        return end;
    }
    out_open(out, NULL, '{');
    out_text(out, "workload", workload);
    out_int(out, "cases", end - first);
    out_int(out, "differing", differing);
    out_open(out, "rows", '[');
    for (int r = first; r < end; r++) {
        if (classes_show_row(view, &classes->rows[r])) {
            row_json(view, &classes->rows[r], out);
        }
    }
    out_close(out, ']');
    out_close(out, '}');
    return end;
}

void classes_json(const struct classes_view *view, struct json_out *out)
{
    char headline[CLASSES_HEADLINE_SIZE];
    json_t *differing = classes_facts(view, true);
    json_t *shared = classes_facts(view, false);

    out_open(out, NULL, '{');
    out_text(out, "view", view->of_devices ? "devices" : "environments");
    classes_headline(view, headline);
    out_text(out, "headline", headline);
    out_time(out, "as_of", view->as_of_ms);
    if (out_object(out, "environment", view->of_devices && view->environment)) {
        out_text(out, "id", view->environment);
        out_text(out, "title", view->environment_title);
        out_format(out, "href", "/v1/environments/%s", view->environment);
        out_close(out, '}');
    }
    names_json(out, "facts_that_differ", differing);
    names_json(out, "facts_that_are_shared", shared);
    out_int(out, "column_count", view->classes->column_count);
    out_open(out, "columns", '[');
    for (int c = view->first; c < view->first + view->count; c++) {
        column_json(view, c, differing, out);
    }
    out_close(out, ']');
    out_open(out, "groups", '[');
    for (int r = 0; r < view->classes->row_count;) {
        r = group_json(view, r, out);
    }
    out_close(out, ']');
    json_decref(differing);
    json_decref(shared);
}

void classes_csv(const struct classes_view *view, struct buf *buf)
{
    buf_puts(buf, view->of_devices ? "device" : "environment");
    buf_puts(buf,
             ",workload,version,variant,size,dtype,seed,subject,subject_name,class,"
             "verdict,digest,runs\r\n");
    for (int r = 0; r < view->classes->row_count; r++) {
        const struct class_row *row = &view->classes->rows[r];

        for (int c = view->first;
             c < view->first + view->count && classes_show_row(view, row); c++) {
            const struct class_entry *e = &row->entries[c];
            int letter = classes_letter(row, e);
            char name[CLASS_NAME_SIZE] = "";
            const char *const texts[] = { row->key.variant, row->key.size,
                                          row->key.dtype };

            if (!e->cell) {
                continue;
            }
            text_csv(buf, view->classes->columns[c].id);
            buf_putc(buf, ',');
            text_csv(buf, row->key.workload);
            buf_printf(buf, ",%d", row->key.version);
            for (int i = 0; i < COUNT_OF(texts); i++) {
                buf_putc(buf, ',');
                text_csv(buf, texts[i]);
            }
            buf_printf(buf, ",%" PRIu64 ",%s,", row->key.seed,
                       subject_word(row->subject));
            text_csv(buf, row->subject_name);
            buf_printf(buf, ",%s,%s,%s,%" PRId64 "\r\n",
                       letter < 0 ? "" : classes_name(letter, name),
                       verdict_name(e->verdict),
                       letter < 0 ? "" : row->digests[e->digest], e->runs);
        }
    }
}
