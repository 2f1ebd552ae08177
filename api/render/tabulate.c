#include "api/render/tabulate.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/base/text.h"

enum { COLUMNS_MAX = 24, COLUMN_SIZE = 64, WIDTH_MAX = 72 };

struct column {
    char path[COLUMN_SIZE];
    char title[COLUMN_SIZE];
    int width;
    bool numeric; /* every value is a number */
};

static int parse_columns(const char *spec, struct column columns[COLUMNS_MAX])
{
    int count = 0;

    for (const char *at = spec; at && *at && count < COLUMNS_MAX; count++) {
        struct column *c = &columns[count];
        size_t length = strcspn(at, " ");
        char word[2 * COLUMN_SIZE];
        char *title;
        char *dot;

        snprintf(word, sizeof word, "%.*s", (int)length, at);
        title = strchr(word, ':');
        if (title) {
            *title++ = '\0';
        }
        copy_text(c->path, sizeof c->path, word);
        dot = strrchr(word, '.');
        copy_text(c->title, sizeof c->title, title ? title : dot ? dot + 1 : word);
        for (char *t = c->title; *t; t++) {
            *t = (char)(*t == '_' ? ' ' : *t >= 'a' && *t <= 'z' ? *t - 32 : *t);
        }
        c->numeric = true;
        at += length;
        at += strspn(at, " ");
    }
    return count;
}

static json_t *value_at(json_t *object, const char *path)
{
    char name[COLUMN_SIZE];

    while (object && *path) {
        size_t length = strcspn(path, ".");

        snprintf(name, sizeof name, "%.*s", (int)length, path);
        object = json_object_get(object, name);
        path += length + (path[length] == '.');
    }
    return object;
}

/* Appends VALUE as one line of text; nothing for null. */
static void add_value(struct buf *buf, const json_t *value)
{
    if (!value || json_is_null(value)) {
        return;
    }
    if (json_is_string(value)) {
        text_show(buf, json_string_value(value), json_string_length(value), "");
    } else if (json_is_integer(value)) {
        buf_printf(buf, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        buf_printf(buf, "%.10g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        buf_puts(buf, json_is_true(value) ? "true" : "false");
    } else if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            buf_puts(buf, i ? ", " : "");
            add_value(buf, json_array_get(value, i));
        }
    } else {
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

        text_show(buf, text, strlen(text), "");
        free(text);
    }
}

static char *text_of(const json_t *value)
{
    struct buf buf = BUF_INIT;

    add_value(&buf, value);
    return buf_detach(&buf, NULL);
}

static void csv_table(json_t *items, const struct column *columns, int count,
                      struct buf *buf)
{
    for (int c = 0; c < count; c++) {
        buf_puts(buf, c ? "," : "");
        text_csv(buf, columns[c].path);
    }
    buf_puts(buf, "\r\n");
    for (size_t i = 0; i < json_array_size(items); i++) {
        for (int c = 0; c < count; c++) {
            char *text = text_of(value_at(json_array_get(items, i), columns[c].path));

            buf_puts(buf, c ? "," : "");
            text_csv(buf, text);
            free(text);
        }
        buf_puts(buf, "\r\n");
    }
}

static void add_cell(struct buf *buf, const char *text, const struct column *c, bool last)
{
    if (c->numeric) {
        text_pad(buf, "", c->width - text_width(text));
        buf_puts(buf, text);
    } else {
        text_pad(buf, text, last ? 0 : c->width);
    }
    buf_puts(buf, last ? "\n" : "  ");
}

static void measure(struct column *c, const json_t *value, const char *text)
{
    int width = text_width(text);

    c->width = width > c->width ? width : c->width;
    c->width = c->width > WIDTH_MAX ? WIDTH_MAX : c->width;
    c->numeric &= !value || json_is_null(value) || json_is_number(value);
}

static void text_table(json_t *items, struct column *columns, int count, struct buf *buf)
{
    size_t rows = json_array_size(items);
    char **texts = xcalloc(rows * (size_t)count + 1, sizeof *texts);

    for (int c = 0; c < count; c++) {
        columns[c].width = text_width(columns[c].title);
        for (size_t i = 0; i < rows; i++) {
            json_t *value = value_at(json_array_get(items, i), columns[c].path);
            char *text = text_of(value);

            if (!*text) {
                free(text);
                text = xstrdup("-");
            }
            texts[i * (size_t)count + (size_t)c] = text;
            measure(&columns[c], value, text);
        }
        columns[c].numeric &= rows > 0;
    }
    for (int c = 0; c < count; c++) {
        add_cell(buf, columns[c].title, &columns[c], c == count - 1);
    }
    for (size_t i = 0; i < rows; i++) {
        for (int c = 0; c < count; c++) {
            char *text = texts[i * (size_t)count + (size_t)c];

            add_cell(buf, text, &columns[c], c == count - 1);
            free(text);
        }
    }
    free(texts);
    buf_puts(buf, rows ? "" : "(none)\n");
}

/* Calls LINE for every plain value below VALUE. */
static void each_line(const char *path, json_t *value,
                      void (*line)(void *arg, const char *path, const json_t *value),
                      void *arg)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_object(value)) {
        json_object_foreach(value, key, member)
        {
            char *below = *path ? xasprintf("%s.%s", path, key) : xstrdup(key);

            each_line(below, member, line, arg);
            free(below);
        }
    } else if (json_is_array(value) && json_is_object(json_array_get(value, 0))) {
        json_array_foreach(value, i, member)
        {
            char *below = xasprintf("%s.%zu", path, i);

            each_line(below, member, line, arg);
            free(below);
        }
    } else {
        line(arg, path, value);
    }
}

struct lines {
    struct buf *buf;
    int width;
};

static void measure_line(void *arg, const char *path, const json_t *value)
{
    struct lines *lines = arg;
    int width = text_width(path);

    (void)value;
    lines->width = width > lines->width ? width : lines->width;
}

static void add_line(void *arg, const char *path, const json_t *value)
{
    struct lines *lines = arg;
    char *text = text_of(value);

    text_pad(lines->buf, path, lines->width);
    buf_printf(lines->buf, "  %s\n", *text ? text : "-");
    free(text);
}

static void text_document(json_t *root, struct column *columns, int count,
                          struct buf *buf)
{
    struct lines lines = { buf, 0 };
    json_t *items = json_incref(json_object_get(root, "items"));
    const char *next = json_string_value(json_object_get(root, "next"));
    char *more = next ? xasprintf("more with ?cursor=%s\n", next) : xstrdup("");

    json_object_del(root, "items");
    json_object_del(root, "next");
    each_line("", root, measure_line, &lines);
    each_line("", root, add_line, &lines);
    if (items) {
        buf_puts(buf, json_object_size(root) > 0 ? "\n" : "");
        text_table(items, columns, count, buf);
        buf_puts(buf, more);
        json_decref(items);
    }
    free(more);
}

void tabulate(const char *json, const char *columns, bool csv, struct buf *buf)
{
    struct column parsed[COLUMNS_MAX] = { 0 };
    int count = parse_columns(columns, parsed);
    json_t *root = json_loads(json, 0, NULL);

    if (csv) {
        csv_table(json_object_get(root, "items"), parsed, count, buf);
    } else {
        text_document(root, parsed, count, buf);
    }
    json_decref(root);
}
