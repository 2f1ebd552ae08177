/* Text for terminals: widths in columns, wrapping, numbers.  Pure. */
#ifndef DAEMON_BASE_TEXT_H
#define DAEMON_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/buf.h"

enum { TEXT_NUMBER_SIZE = 32 };

/* Columns that TEXT takes, a code point each. */
int text_width(const char *text);

/* Appends TEXT and a newline, broken between words so that no line is longer than WIDTH
 * columns; the first begins at column INDENT already, the others are indented there. */
void text_wrap(struct buf *buf, const char *text, int width, int indent);

/* The line LINE (0 …) of TEXT broken between words at WIDTH columns; false, and "", if it
 * has no such line. */
bool text_wrapped_line(const char *text, int width, int line, char *ret_line,
                       size_t size);

/* The width of its longest line. */
int text_wrapped_width(const char *text, int width);

/* "1,234,567"; returns RET_TEXT. */
const char *text_number(int64_t value, char ret_text[TEXT_NUMBER_SIZE]);

/* A probability's upper bound, rounded up so that it stays one: "< 5.9 %"; "-" for 1. */
const char *text_bound(double bound, char ret_text[TEXT_NUMBER_SIZE]);

#endif
