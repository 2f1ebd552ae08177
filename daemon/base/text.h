/* Text for people: characters, widths in columns, wrapping, numbers, sums.  Pure. */
#ifndef DAEMON_BASE_TEXT_H
#define DAEMON_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/base/buf.h"

enum { TEXT_NUMBER_SIZE = 32, DECIMAL_SIZE = 48 };

/* Bytes, of at most LEFT, of the well-formed UTF-8 sequence at BYTES (Unicode 15, table
 * 3-7); 0 if there is none. */
size_t text_sequence(const char *bytes, size_t left);

/* The code point that begins BYTES, of at most LEFT, if it acts on a terminal instead of
 * being shown there: C0, DEL, C1, and what overrides the direction of the text behind it
 * (U+202A-202E, U+2066-2069) or breaks lines (U+2028, U+2029).  Else -1. */
int text_control(const char *bytes, size_t left);

/* Appends LENGTH BYTES as people are shown them: what acts on a terminal is spelt ("\n",
 * "\x1b", "\u202e"), as is a byte that is no UTF-8 ("\xff").  KEPT are the control
 * characters that stay as they are ("\n\t").  A backslash stays, too: a text that was
 * shown once is shown the same again; which bytes it had is said by JSON only. */
void text_show(struct buf *buf, const char *bytes, size_t length, const char *kept);

/* Formats one line, and appends it as people are shown it, and a newline. */
void text_line(struct buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same line to a file, which may be a terminal. */
void text_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Columns that TEXT takes as it is shown, a code point each. */
int text_width(const char *text);

/* Appends TEXT as it is shown, then spaces up to WIDTH columns. */
void text_pad(struct buf *buf, const char *text, int width);

/* Appends TEXT, as it is shown, as a CSV field, quoted where RFC 4180 wants it: a record
 * is a line.  What a spreadsheet would take for a formula begins with "'", as OWASP
 * advises; a number, negative ones too, stays one. */
void text_csv(struct buf *buf, const char *text);

/* Appends TEXT, as it is shown, and a newline, broken between words so that no line is
 * longer than WIDTH columns; the first begins at column INDENT already, the others are
 * indented there. */
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

/* The sum whose binary64 has BITS, 16 hexadecimal digits, with at least 17 significant
 * digits, which name the bits uniquely: sixteen places after the point
 * ("-9.6487178248353302") where that is exact enough and fits, else an exponent.  Any
 * other text, "" too: "". */
void decimal_from_bits(const char *bits, char ret_text[DECIMAL_SIZE]);

#endif
