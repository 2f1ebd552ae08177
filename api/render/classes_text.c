/* Digest classes for a terminal, and what all renderings say in the same words. */
#include "api/render/classes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "daemon/evidence/facts.h"

enum { TABLE_WIDTH = 118, MARK_WIDTH = 5, LABEL_MAX = 60, INDENT = 2 };

/* The sign of an entry, behind its letter or instead of it. */
static const struct {
    enum verdict verdict;
    const char *behind, *alone;
} signs[] = {
    { VERDICT_REPRODUCIBLE, "", "?" },      { VERDICT_STALE, "~", "~" },
    { VERDICT_INCONCLUSIVE, "?", "?" },     { VERDICT_VARIES, "?", "≈" },
    { VERDICT_DEVICES_DISAGREE, "≠", "≠" }, { VERDICT_FAILING, "!", "!" },
    { VERDICT_UNSUPPORTED, "–", "–" },
};

void classes_mark(const struct classes_view *view, const struct class_row *row,
                  int column, char ret_mark[CLASS_MARK_SIZE])
{
    const struct class_entry *e = &row->entries[column];
    int letter = classes_letter(row, e);
    char name[CLASS_NAME_SIZE] = "";
    const char *sign = !e->cell ? "·" : letter < 0 ? "≠" : "?";
    bool partly = e->cell && e->members < view->classes->columns[column].members;

    if (letter >= 0) {
        classes_name(letter, name);
    }
    for (int i = 0; i < COUNT_OF(signs) && e->cell; i++) {
        if (signs[i].verdict == e->verdict) {
            sign = letter < 0 ? signs[i].alone : signs[i].behind;
        }
    }
    if (e->apart && (e->verdict == VERDICT_REPRODUCIBLE || e->verdict == VERDICT_STALE ||
                     e->verdict == VERDICT_INCONCLUSIVE)) {
        sign = "×";
    }
    snprintf(ret_mark, CLASS_MARK_SIZE, "%s%s%s", name, sign, partly ? "°" : "");
}

bool classes_show_row(const struct classes_view *view, const struct class_row *row)
{
    return row->differs || !view->differing;
}

static bool is_shown(const struct classes_view *view, int column)
{
    return column >= view->first && column < view->first + view->count;
}

json_t *classes_facts(const struct classes_view *view, bool differ)
{
    const struct classes *classes = view->classes;
    const json_t **facts = xcalloc((size_t)view->count + 1, sizeof(json_t *));
    json_t *names;
    int count = 0;

    for (int c = 0; c < classes->column_count; c++) {
        if (is_shown(view, c) && classes->columns[c].facts) {
            facts[count++] = classes->columns[c].facts;
        }
    }
    names = count ? facts_names(facts, count, differ) : json_array();
    free(facts);
    return names;
}

char *classes_column_title(const struct classes_view *view, int column,
                           const json_t *names)
{
    const struct class_column *c = &view->classes->columns[column];

    if (!view->of_devices) {
        return facts_title(c->facts, names);
    }
    if (c->hosts) {
        return xasprintf("%d devices on %d host%s that show what most show%s%s",
                         c->members, c->hosts, c->hosts == 1 ? "" : "s",
                         c->model[0] ? ", " : "", c->model);
    }
    return c->members > 1 ? xasprintf("%s: %d devices, %s", c->host, c->members, c->model)
                          : xasprintf("%s on %s, %s", c->id, c->host, c->model);
}

void classes_headline(const struct classes_view *view,
                      char ret_text[CLASSES_HEADLINE_SIZE])
{
    const struct classes *classes = view->classes;
    int differing = 0;
    int members = 0;

    for (int r = 0; r < classes->row_count; r++) {
        differing += classes->rows[r].differs;
    }
    for (int c = 0; c < classes->column_count; c++) {
        members += classes->columns[c].members;
    }
    snprintf(
        ret_text, CLASSES_HEADLINE_SIZE,
        "%d case%s %s %d %s%s; %d of them with more than one class", classes->row_count,
        classes->row_count == 1 ? "" : "s", view->of_devices ? "on" : "in", members,
        view->of_devices ? "device" : "environment", members == 1 ? "" : "s", differing);
}

static void line(struct buf *buf, const char *name, const char *text)
{
    enum { NAME_WIDTH = 9 };

    text_pad(buf, name, NAME_WIDTH);
    text_wrap(buf, text, TABLE_WIDTH, NAME_WIDTH);
}

static void column_lines(const struct classes_view *view, struct buf *buf)
{
    json_t *names = classes_facts(view, true);
    int end = view->first + view->count;

    for (int c = view->first; c < end; c++) {
        const struct class_column *column = &view->classes->columns[c];
        char *title = classes_column_title(view, c, names);
        char when[CLOCK_RFC3339_SIZE];
        char text[2 * CASE_TITLE_SIZE + CLOCK_RFC3339_SIZE + 32];
        char number[TEXT_NUMBER_SIZE];

        clock_rfc3339(column->first_ms, when);
        snprintf(text, sizeof text, "%.300s%s(%.*s%ssince %.10s)", title,
                 *title ? "  " : "", view->of_devices ? 0 : 8, column->id,
                 view->of_devices ? "" : ", ", when);
        snprintf(number, sizeof number, "%4d ", c + 1);
        buf_puts(buf, number);
        text_wrap(buf, text, TABLE_WIDTH, 5);
        free(title);
    }
    json_decref(names);
}

static void head(const struct classes_view *view, struct buf *buf)
{
    char headline[CLASSES_HEADLINE_SIZE];
    char when[CLOCK_RFC3339_SIZE];
    int all = view->classes->column_count;

    buf_printf(buf, "reprod: cases by %s; in a row, equal letters are equal bits\n\n",
               view->of_devices ? "device" : "environment, newest first");
    clock_rfc3339(view->as_of_ms, when);
    line(buf, "As of", when);
    classes_headline(view, headline);
    line(buf, "Known", headline);
    if (view->of_devices) {
        line(buf, "Where", view->environment_title);
    } else if (view->count > 0) {
        json_t *names = classes_facts(view, false);
        char *shared = facts_title(view->classes->columns[view->first].facts, names);

        line(buf, "Shared", *shared ? shared : "nothing");
        free(shared);
        json_decref(names);
    }
    if (view->count < all) {
        buf_printf(buf, "Columns  %d to %d of %d\n", view->first + 1,
                   view->first + view->count, all);
    }
    buf_putc(buf, '\n');
}

static const char *label(const struct class_row *row, char *ret_text, size_t size)
{
    const struct case_key *k = &row->key;
    char version[24] = "";

    if (k->version != 1) {
        snprintf(version, sizeof version, " v%d", k->version);
    }
    snprintf(ret_text, size, "%s%s%s%s  %s %s seed %" PRIu64 "%s", k->variant,
             row->subject == SUBJECT_MODEL ? "" : " (", row->subject_name,
             row->subject == SUBJECT_MODEL ? "" : ")", k->size, k->dtype, k->seed,
             version);
    return ret_text;
}

enum { LABEL_SIZE = 4 * CASE_NAME_SIZE + SUBJECT_NAME_SIZE + 64 };

static int label_width(const struct classes_view *view)
{
    int width = 0;

    for (int r = 0; r < view->classes->row_count; r++) {
        const struct class_row *row = &view->classes->rows[r];
        char text[LABEL_SIZE];

        if (classes_show_row(view, row)) {
            int w = text_width(label(row, text, sizeof text)) + INDENT;

            width = w > width ? w : width;
        }
    }
    return width < LABEL_MAX ? width : LABEL_MAX;
}

static void end_line(struct buf *buf)
{
    while (buf->length > 0 && buf->data[buf->length - 1] == ' ') {
        buf->length--;
    }
    buf_putc(buf, '\n');
}

static void row_line(const struct classes_view *view, const struct class_row *row,
                     int first, int end, int width, struct buf *buf)
{
    char text[LABEL_SIZE];

    text_pad(buf, "", INDENT);
    label(row, text, sizeof text);
    if (text_width(text) > width - INDENT) { /* on a line of its own */
        text_pad(buf, text, 0);
        end_line(buf);
        text_pad(buf, "", width);
    } else {
        text_pad(buf, text, width - INDENT);
    }
    for (int c = first; c < end; c++) {
        char mark[CLASS_MARK_SIZE];

        classes_mark(view, row, c, mark);
        buf_putc(buf, ' ');
        text_pad(buf, mark, MARK_WIDTH - 1);
    }
    end_line(buf);
}

/* What every column that is shown has in ROW; false: they differ. */
static bool same_mark(const struct classes_view *view, const struct class_row *row,
                      char ret_mark[CLASS_MARK_SIZE])
{
    classes_mark(view, row, view->first, ret_mark);
    for (int c = view->first + 1; c < view->first + view->count; c++) {
        char mark[CLASS_MARK_SIZE];

        classes_mark(view, row, c, mark);
        if (strcmp(mark, ret_mark) != 0) {
            return false;
        }
    }
    return true;
}

static void block_head(int first, int end, int width, struct buf *buf)
{
    text_pad(buf, "", width);
    for (int c = first; c < end; c++) {
        buf_printf(buf, " %-*d", MARK_WIDTH - 1, c + 1);
    }
    end_line(buf);
}

/* Columns FIRST to END - 1.  Where they are not all (PART), a row that has the same mark
 * in every column is said once, behind all. */
static void block(const struct classes_view *view, int first, int end, int width,
                  bool part, struct buf *buf)
{
    const char *workload = "";

    for (int r = 0; r < view->classes->row_count; r++) {
        const struct class_row *row = &view->classes->rows[r];
        char mark[CLASS_MARK_SIZE];

        if (!classes_show_row(view, row) || (part && same_mark(view, row, mark))) {
            continue;
        }
        if (!*workload) {
            block_head(first, end, width, buf);
        }
        if (strcmp(workload, row->key.workload) != 0) {
            workload = row->key.workload;
            text_pad(buf, workload, 0);
            buf_putc(buf, '\n');
        }
        row_line(view, row, first, end, width, buf);
    }
    buf_puts(buf, *workload ? "\n" : "");
}

/* The rows that have the same mark in every column. */
static void same_rows(const struct classes_view *view, int width, struct buf *buf)
{
    const char *workload = "";

    for (int r = 0; r < view->classes->row_count; r++) {
        const struct class_row *row = &view->classes->rows[r];
        char mark[CLASS_MARK_SIZE];
        char text[LABEL_SIZE];

        if (!classes_show_row(view, row) || !same_mark(view, row, mark)) {
            continue;
        }
        if (!*workload) {
            buf_printf(buf, "The same in columns %d to %d\n", view->first + 1,
                       view->first + view->count);
        }
        if (strcmp(workload, row->key.workload) != 0) {
            workload = row->key.workload;
            text_pad(buf, workload, 0);
            buf_putc(buf, '\n');
        }
        text_pad(buf, "", INDENT);
        text_pad(buf, label(row, text, sizeof text), width - INDENT);
        buf_putc(buf, ' ');
        text_pad(buf, mark, 0);
        buf_putc(buf, '\n');
    }
    buf_puts(buf, *workload ? "\n" : "");
}

static void legend(const struct classes_view *view, struct buf *buf)
{
    buf_puts(
        buf,
        "  A B …  reproducible there; another letter of the row is another digest\n"
        "  A?     one digest, but the proof is not complete\n"
        "  A~     measured too long ago\n"
        "  ≈      several digests: it varies, and has no letter\n"
        "  A≠     it dissents from its equals\n"
        "  ≠      several digests: devices disagree\n"
        "  ×      measured only under other conditions than its row: load, poison, …\n"
        "  !      runs fail, or compute what is wrong\n"
        "  –      cannot be computed there\n"
        "  ·      not measured there\n");
    if (view->of_devices) {
        buf_puts(buf, "  A°     not measured on all devices of the column\n");
    }
}

void classes_text(const struct classes_view *view, struct buf *buf)
{
    int width = label_width(view);
    int room = (TABLE_WIDTH - width) / MARK_WIDTH;
    int end = view->first + view->count;

    head(view, buf);
    column_lines(view, buf);
    buf_putc(buf, '\n');
    for (int first = view->first; first < end && width > 0; first += room) {
        block(view, first, first + room < end ? first + room : end, width,
              view->count > room, buf);
    }
    if (width > 0 && view->count > room) {
        same_rows(view, width, buf);
    }
    if (width == 0) {
        buf_puts(buf, view->differing ? "No row has more than one class.\n\n"
                                      : "Nothing has been run yet.\n\n");
    }
    legend(view, buf);
    if (view->next) {
        buf_printf(buf, "\n%d more columns: &cursor=%s\n",
                   view->classes->column_count - end, view->next);
    }
}
