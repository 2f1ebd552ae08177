#include "daemon/base/json_in.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "daemon/base/nearest.h"

enum { NAMES_MAX = 64 };

struct in_reader {
    struct buf pointer; /* to the value that is being read */
    in_fault_fn *refuse;
    void *arg;
    bool complete; /* absent members are added */
    bool wrong;
};

/* Extends the pointer by KEY; returns the length that it had, for leave. */
static size_t enter(struct in_reader *r, const char *key)
{
    size_t length = r->pointer.length;

    buf_putc(&r->pointer, '/');
    for (; *key; key++) {
        if (*key == '~' || *key == '/') {
            buf_puts(&r->pointer, *key == '~' ? "~0" : "~1");
        } else {
            buf_putc(&r->pointer, *key);
        }
    }
    return length;
}

static void leave(struct in_reader *r, size_t length)
{
    r->pointer.length = length;
}

static void refuse(struct in_reader *r, const char *reason, bool unknown)
{
    struct in_fault fault = { .reason = reason, .unknown = unknown };

    buf_add(&r->pointer, "", 1);
    r->pointer.length--;
    fault.pointer = r->pointer.data;
    r->wrong = true;
    r->refuse(r->arg, &fault);
}

void in_refuse(struct in_reader *r, const char *key, const char *format, ...)
{
    size_t length = r->pointer.length;
    char *reason;
    va_list args;

    va_start(args, format);
    reason = xvasprintf(format, args);
    va_end(args);
    if (key) {
        enter(r, key);
    }
    refuse(r, reason, false);
    leave(r, length);
    free(reason);
}

/* The bounds of a whole number: as declared, or those of its target. */
static void int_bounds(const struct in_member *m, int64_t *ret_least, int64_t *ret_most)
{
    bool is_narrow = m->size == sizeof(int32_t);

    *ret_least = m->least;
    *ret_most = m->most;
    if (m->least == 0 && m->most == 0) {
        *ret_least = is_narrow ? INT32_MIN : INT64_MIN;
        *ret_most = is_narrow ? INT32_MAX : INT64_MAX;
    }
}

static bool is_within(const struct in_member *m, size_t count)
{
    return (int64_t)count >= m->least && (m->most == 0 || (int64_t)count <= m->most);
}

static bool is_named(const struct in_member *m, const char *text)
{
    for (int i = 0; m->names && m->names[i]; i++) {
        if (strcmp(m->names[i], text) == 0) {
            return true;
        }
    }
    return m->names == NULL;
}

bool in_is_hex(const char *text, size_t digits)
{
    return strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

/* Whether VALUE, which is not null, is of the declared kind and within the bounds. */
static bool is_right(const struct in_member *m, const json_t *value)
{
    const char *text = json_string_value(value);
    double number = json_number_value(value);
    int64_t least, most;

    switch (m->kind) {
    case IN_TEXT:
        return text && is_within(m, strlen(text)) && is_named(m, text);
    case IN_HEX:
        return text && in_is_hex(text, (size_t)m->most);
    case IN_INT:
        int_bounds(m, &least, &most);
        return json_is_integer(value) && json_integer_value(value) >= least &&
               json_integer_value(value) <= most;
    case IN_REAL:
        return json_is_number(value) &&
               ((m->least == 0 && m->most == 0) ||
                (number >= (double)m->least && number <= (double)m->most));
    case IN_BOOL:
        return json_is_boolean(value);
    case IN_ARRAY:
        return json_is_array(value) && is_within(m, json_array_size(value));
    case IN_OBJECT:
        return json_is_object(value) && is_within(m, json_object_size(value));
    case IN_JSON:
        return true;
    }
    return false;
}

static void describe_names(const struct in_member *m, const char *said,
                           struct buf *reason)
{
    char hint[NEAREST_HINT_SIZE];
    int count = 0;

    while (m->names[count]) {
        count++;
    }
    buf_puts(reason, "must be ");
    for (int i = 0; i < count; i++) {
        buf_printf(reason, "%s%s",
                   i == 0          ? ""
                   : i + 1 < count ? ", "
                                   : " or ",
                   m->names[i]);
    }
    if (m->flags & IN_NULLABLE) {
        buf_puts(reason, ", or null");
    }
    if (said) {
        buf_puts(reason, nearest_hint(said, m->names, count, hint));
    }
}

/* " of 1 to 64 bytes" */
static void describe_count(const struct in_member *m, const char *unit,
                           struct buf *reason)
{
    if (m->most && m->least) {
        buf_printf(reason, " of %lld to %lld%s", (long long)m->least, (long long)m->most,
                   unit);
    } else if (m->most) {
        buf_printf(reason, " of at most %lld%s", (long long)m->most, unit);
    } else if (m->least) {
        buf_puts(reason, " that is not empty");
    }
}

/* " from 1 to 100" */
static void describe_range(const struct in_member *m, struct buf *reason)
{
    if (m->most == INT64_MAX) {
        buf_printf(reason, " from %lld", (long long)m->least);
    } else if (m->least != 0 || m->most != 0) {
        buf_printf(reason, " from %lld to %lld", (long long)m->least, (long long)m->most);
    }
}

static void describe_kind(const struct in_member *m, struct buf *reason)
{
    static const char *const kinds[] = {
        [IN_TEXT] = "a text",          [IN_INT] = "a whole number",
        [IN_REAL] = "a number",        [IN_BOOL] = "true or false",
        [IN_ARRAY] = "an array",       [IN_OBJECT] = "an object",
        [IN_JSON] = "some JSON value",
    };

    if (m->kind == IN_HEX) {
        buf_printf(reason, "must be %lld hex digits in lower case", (long long)m->most);
    } else {
        buf_printf(reason, "must be %s", kinds[m->kind]);
    }
    if (m->kind == IN_TEXT) {
        describe_count(m, " bytes", reason);
    } else if (m->kind == IN_INT || m->kind == IN_REAL) {
        describe_range(m, reason);
    } else if (m->kind == IN_ARRAY || m->kind == IN_OBJECT) {
        describe_count(m, "", reason);
    }
    if (m->flags & IN_NULLABLE) {
        buf_puts(reason, ", or null");
    }
}

static void refuse_value(struct in_reader *r, const struct in_member *m,
                         const json_t *value)
{
    struct buf reason = BUF_INIT;

    if (m->wanted) {
        buf_puts(&reason, m->wanted);
    } else if (m->names) {
        describe_names(m, json_string_value(value), &reason);
    } else {
        describe_kind(m, &reason);
    }
    buf_add(&reason, "", 1);
    refuse(r, reason.data, false);
    buf_release(&reason);
}

static void store(const struct in_member *m, const json_t *value, void *target)
{
    void *to = target ? (char *)target + m->offset : NULL;
    bool is_null = json_is_null(value) && m->kind != IN_JSON;

    if (!to || m->size == 0) {
        return;
    }
    switch (m->kind) {
    case IN_TEXT:
    case IN_HEX:
        *(const char **)to = json_string_value(value);
        break;
    case IN_INT:
        if (!is_null && m->size == sizeof(int32_t)) {
            *(int32_t *)to = (int32_t)json_integer_value(value);
        } else if (!is_null) {
            *(int64_t *)to = json_integer_value(value);
        }
        break;
    case IN_REAL:
        if (!is_null) {
            *(double *)to = json_number_value(value);
        }
        break;
    case IN_BOOL:
        if (!is_null) {
            *(bool *)to = json_is_true(value);
        }
        break;
    case IN_ARRAY:
    case IN_OBJECT:
    case IN_JSON:
        *(const json_t **)to = is_null ? NULL : value;
        break;
    }
}

static void read_members(struct in_reader *r, const struct in_shape *shape,
                         const json_t *object, void *target);

static void read_value(struct in_reader *r, const struct in_member *m,
                       const json_t *value, void *target);

/* What VALUE, an array or an object, holds. */
static void read_items(struct in_reader *r, const struct in_member *m,
                       const json_t *value)
{
    char index[24];
    const char *key;
    json_t *item;
    size_t length;
    size_t i;

    json_array_foreach((json_t *)value, i, item)
    {
        snprintf(index, sizeof index, "%zu", i);
        length = enter(r, index);
        read_value(r, m->item, item, NULL);
        leave(r, length);
    }
    json_object_foreach((json_t *)value, key, item)
    {
        length = enter(r, key);
        read_value(r, m->item, item, NULL);
        leave(r, length);
    }
}

static void read_value(struct in_reader *r, const struct in_member *m,
                       const json_t *value, void *target)
{
    bool is_null = json_is_null(value) && m->kind != IN_JSON;

    if (is_null ? !(m->flags & IN_NULLABLE) : !is_right(m, value)) {
        refuse_value(r, m, value);
        return;
    }
    if (!is_null) {
        if (m->item) {
            read_items(r, m, value);
        }
        if (m->shape) {
            read_members(r, m->shape, value, NULL);
        }
        if (m->check) {
            m->check(r, value);
        }
    }
    store(m, value, target);
}

static const struct in_member *find(const struct in_shape *shape, const char *key)
{
    for (int i = 0; i < shape->count; i++) {
        if (strcmp(shape->members[i].key, key) == 0) {
            return &shape->members[i];
        }
    }
    return NULL;
}

static void refuse_unknown(struct in_reader *r, const struct in_shape *shape,
                           const char *key)
{
    const char *names[NAMES_MAX];
    char hint[NEAREST_HINT_SIZE];
    size_t length = enter(r, key);
    char *reason;
    int count = 0;

    for (; count < shape->count && count < NAMES_MAX; count++) {
        names[count] = shape->members[count].key;
    }
    reason = xasprintf("%s '%.100s'%s", shape->unknown, key,
                       nearest_hint(key, names, count, hint));
    refuse(r, reason, true);
    free(reason);
    leave(r, length);
}

static void read_member(struct in_reader *r, const struct in_member *m,
                        const json_t *object, void *target)
{
    json_t *value = json_object_get(object, m->key);
    size_t length = enter(r, m->key);

    if (value) {
        read_value(r, m, value, target);
    } else if (r->complete && m->fallback) {
        json_object_set_new((json_t *)object, m->key,
                            json_loads(m->fallback, JSON_DECODE_ANY, NULL));
    } else if (!(m->flags & IN_OPTIONAL) && !m->fallback) {
        refuse(r, "is missing", false);
    }
    leave(r, length);
}

static void read_members(struct in_reader *r, const struct in_shape *shape,
                         const json_t *object, void *target)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object)) {
        refuse(r, "must be an object", false);
        return;
    }
    if (shape->unknown) {
        json_object_foreach((json_t *)object, key, value)
        {
            if (!find(shape, key)) {
                refuse_unknown(r, shape, key);
            }
        }
    }
    for (int i = 0; i < shape->count; i++) {
        read_member(r, &shape->members[i], object, target);
    }
}

static bool run(struct in_reader *r, const struct in_shape *shape, const json_t *object,
                void *target)
{
    read_members(r, shape, object, target);
    buf_release(&r->pointer);
    return !r->wrong;
}

bool in_read(const struct in_shape *shape, const json_t *object, void *target,
             in_fault_fn *on_fault, void *arg)
{
    struct in_reader r = { .refuse = on_fault, .arg = arg };

    return run(&r, shape, object, target);
}

/* Where the first fault goes. */
struct first {
    struct err *err;
    const char *where; /* NULL: on the wire */
    bool set;
};

/* Whether WHERE ends before a pointer: "t.json: ", not "t.json: /stacks/0". */
static bool is_file_alone(const char *where)
{
    size_t length = strlen(where);

    return length > 0 && where[length - 1] == ' ';
}

static void keep_first(void *arg, const struct in_fault *fault)
{
    struct first *first = arg;

    if (first->set) {
        return;
    }
    first->set = true;
    if (first->where) {
        const char *pointer = fault->pointer;

        err_set(first->err, ERR_INVALID, "%s%s: %s", first->where,
                !pointer[0] && is_file_alone(first->where) ? "at the top" : pointer,
                fault->reason);
    } else {
        err_set(first->err, ERR_PROTOCOL, "%s %s",
                fault->pointer[0] ? fault->pointer + 1 : "it", fault->reason);
    }
}

enum err_code in_read_wire(const struct in_shape *shape, const json_t *object,
                           void *target, struct err *err)
{
    struct first first = { .err = err };

    return in_read(shape, object, target, keep_first, &first) ? ERR_OK : err->code;
}

enum err_code in_read_file(const struct in_shape *shape, const json_t *object,
                           const char *where, void *target, struct err *err)
{
    struct first first = { .err = err, .where = where };

    return in_read(shape, object, target, keep_first, &first) ? ERR_OK : err->code;
}

enum err_code in_complete(const struct in_shape *shape, json_t *object, const char *where,
                          struct err *err)
{
    struct first first = { .err = err, .where = where };
    struct in_reader r = { .refuse = keep_first, .arg = &first, .complete = true };

    return run(&r, shape, object, NULL) ? ERR_OK : err->code;
}

char *in_pointer(const char *key)
{
    struct in_reader r = { .wrong = false };

    enter(&r, key);
    return buf_detach(&r.pointer, NULL);
}

int in_depth(const char *text, size_t length)
{
    int depth = 0;
    int deepest = 0;
    bool in_string = false;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];

        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
            deepest = depth > deepest ? depth : deepest;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return deepest;
}

const char *in_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

const char *in_text_or_empty(const json_t *object, const char *key)
{
    const char *text = in_text(object, key);

    return text ? text : "";
}

int64_t in_int(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}
