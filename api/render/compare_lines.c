#include "api/render/compare_lines.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "daemon/base/text.h"

enum { PAGE_WIDTH = 100, NAME_WIDTH = 15 };

void compare_line(struct buf *buf, const char *name, const char *text)
{
    buf_pad(buf, name, NAME_WIDTH);
    text_wrap(buf, text, PAGE_WIDTH, NAME_WIDTH);
}

void compare_line_format(struct buf *buf, const char *name, const char *format, ...)
{
    char line[COMPARE_LINE_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    compare_line(buf, name, line);
}

/* Whether steps have to be told apart by their iteration. */
static bool is_iterated(const struct compare *c)
{
    return c->a.side.iterations > 1 || c->b.side.iterations > 1;
}

void compare_where(const struct compare *c, const struct trace *trace, int64_t position,
                   char *ret_text, size_t size)
{
    const struct trace_record *r = &trace->records[position];
    int64_t occurrence = trace_occurrence(trace, position);
    char iteration[32] = "";
    char again[48] = "";

    if (is_iterated(c)) {
        snprintf(iteration, sizeof iteration, " of iteration %" PRId32, r->iteration);
    }
    if (occurrence > 0) {
        snprintf(again, sizeof again, ", time %" PRId64 " in it", occurrence + 1);
    }
    snprintf(ret_text, size, "%s, step %" PRId64 "%s%s", trace_place_at(trace, position),
             r->step, iteration, again);
}
