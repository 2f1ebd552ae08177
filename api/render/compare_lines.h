/* Lines of a comparison as text: a name, and what is to be said about it. */
#ifndef API_RENDER_COMPARE_LINES_H
#define API_RENDER_COMPARE_LINES_H

#include <stddef.h>

#include "api/compare.h"

enum { COMPARE_LINE_SIZE = 1024 };

/* NAME in a column of its own, "" in the lines that belong to the one before; TEXT is
 * wrapped beside it. */
void compare_line(struct buf *buf, const char *name, const char *text);
void compare_line_format(struct buf *buf, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "conv2/dw, step 37", and what tells the record at POSITION of TRACE from others of that
 * name. */
void compare_where(const struct compare *compare, const struct trace *trace,
                   int64_t position, char *ret_text, size_t size);

/* What the records show: causes, what follows, structure. */
void compare_records_text(const struct compare *compare, struct buf *buf);

#endif
