#include "daemon/jobs/problem.h"

#include <stdarg.h>
#include <stdlib.h>

#include "daemon/base/mem.h"

static const struct problem_type types[PROBLEM_COUNT] = {
#define X(kind, name_, status_, title_)                                                  \
    [kind] = { .name = (name_), .title = (title_), .status = (status_) },
    PROBLEM_MAP(X)
#undef X
};

const struct problem_type *problem_type(enum problem_kind kind)
{
    return &types[kind];
}

/* The place is a POINTER or a PARAMETER; the other is NULL. */
__attribute__((format(printf, 5, 0))) static void
add(struct problems *problems, enum problem_kind kind, const char *pointer,
    const char *parameter, const char *format, va_list args)
{
    if (problems->count == PROBLEMS_MAX) {
        problems->more++;
        return;
    }
    problems->items[problems->count++] =
        (struct problem){ .kind = kind,
                          .pointer = pointer ? xstrdup(pointer) : NULL,
                          .parameter = parameter ? xstrdup(parameter) : NULL,
                          .detail = xvasprintf(format, args) };
}

void problems_add(struct problems *problems, enum problem_kind kind, const char *pointer,
                  const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add(problems, kind, pointer, NULL, format, args);
    va_end(args);
}

void problems_add_parameter(struct problems *problems, enum problem_kind kind,
                            const char *parameter, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add(problems, kind, NULL, parameter, format, args);
    va_end(args);
}

void problems_release(struct problems *problems)
{
    for (int i = 0; i < problems->count; i++) {
        free(problems->items[i].pointer);
        free(problems->items[i].parameter);
        free(problems->items[i].detail);
    }
    *problems = (struct problems){ .count = 0 };
}

enum problem_kind problems_kind(const struct problems *problems)
{
    for (int i = 1; i < problems->count; i++) {
        if (problems->items[i].kind != problems->items[0].kind) {
            return PROBLEM_INVALID;
        }
    }
    return problems->count > 0 ? problems->items[0].kind : PROBLEM_INVALID;
}

static void render_item(struct json_out *out, const struct problem *p)
{
    out_open(out, NULL, '{');
    if (p->pointer) {
        out_text(out, "pointer", p->pointer);
    } else {
        out_text(out, "parameter", p->parameter);
    }
    out_text(out, "detail", p->detail);
    out_format(out, "type", "/problems/%s", problem_type(p->kind)->name);
    out_close(out, '}');
}

void problem_render(struct json_out *out, enum problem_kind kind, const char *detail,
                    const struct problems *problems)
{
    const struct problem_type *type = problem_type(kind);

    out_open(out, NULL, '{');
    out_format(out, "type", "/problems/%s", type->name);
    out_text(out, "title", type->title);
    out_int(out, "status", type->status);
    out_text(out, "detail", detail);
    if (problems && problems->count > 0) {
        out_open(out, "errors", '[');
        for (int i = 0; i < problems->count; i++) {
            render_item(out, &problems->items[i]);
        }
        out_close(out, ']');
    }
    if (problems && problems->more > 0) {
        out_int(out, "errors_omitted", problems->more);
    }
    out_close(out, '}');
}
