#include "daemon/engine/elements.h"

#include <string.h>

enum { OUTERMOST = 1, ARRAY = 2, ELEMENT = 3 };

static void open_array(struct elements *e)
{
    for (int i = 0; i < ELEMENTS_ARRAYS; i++) {
        if (e->arrays[i].key && strcmp(e->last, e->arrays[i].key) == 0) {
            e->array = &e->arrays[i];
            e->found = e->found || e->array->counts;
        }
    }
}

static void open_bracket(struct elements *e, char c)
{
    e->depth++;
    if (e->depth == ARRAY && c == '[') {
        open_array(e);
    } else if (e->depth == ELEMENT && e->array && c == '{') {
        e->keeps = true;
        e->element.length = 0;
    }
}

static void close_bracket(struct elements *e)
{
    if (e->depth == ELEMENT && e->keeps) {
        buf_putc(&e->element, '}');
        e->keeps = false;
        e->array->take(e->arg, e->element.data, e->element.length);
    } else if (e->depth == ELEMENT && e->array && e->element.length > ELEMENT_MAX) {
        e->skipped++;
        buf_release(&e->element);
    } else if (e->depth == ARRAY) {
        e->array = NULL;
    } else if (e->depth == OUTERMOST) {
        e->whole = true;
    }
    e->depth -= e->depth > 0;
}

/* A key is longer than what it is compared with, or fits. */
static void add_to_last(struct elements *e, char c)
{
    if (e->depth == OUTERMOST && e->last_length + 1 < sizeof e->last) {
        e->last[e->last_length++] = c;
        e->last[e->last_length] = '\0';
    }
}

static void take_text(struct elements *e, char c)
{
    if (e->escaped) {
        e->escaped = false;
    } else if (c == '\\') {
        e->escaped = true;
    } else if (c == '"') {
        e->in_text = false;
        return;
    }
    add_to_last(e, c);
}

static void take_sign(struct elements *e, char c)
{
    if (c == '"') {
        e->in_text = true;
        if (e->depth == OUTERMOST) {
            e->last_length = 0;
            e->last[0] = '\0';
        }
    } else if (c == '{' || c == '[') {
        open_bracket(e, c);
    } else if (c == '}' || c == ']') {
        close_bracket(e);
    }
}

void elements_feed(struct elements *e, const char *data, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (e->in_text) {
            take_text(e, data[i]);
        } else {
            take_sign(e, data[i]);
        }
        if (e->keeps) {
            buf_putc(&e->element, data[i]);
            e->keeps = e->element.length <= ELEMENT_MAX;
        }
    }
}

bool elements_whole(const struct elements *e)
{
    return e->found && e->whole;
}

void elements_release(struct elements *e)
{
    buf_release(&e->element);
}
