#include "api/http/chunks.h"

#include <ctype.h>
#include <stdbool.h>

#include "api/http/head.h"

enum { SIZE_DIGITS_MAX = 15 };

void chunks_begin(struct chunks *c)
{
    *c = (struct chunks){ .at = CHUNKS_SIZE };
}

static void refuse(struct chunks *c, const char *problem)
{
    c->problem = problem;
}

static bool is_text(char byte)
{
    return !iscntrl((unsigned char)byte) || byte == '\t';
}

static uint64_t value_of(char digit)
{
    return isdigit((unsigned char)digit)
               ? (uint64_t)(digit - '0')
               : (uint64_t)(tolower((unsigned char)digit) - 'a' + 10);
}

static void take_size(struct chunks *c, char byte)
{
    if (isxdigit((unsigned char)byte) && c->digits < SIZE_DIGITS_MAX) {
        c->digits++;
        c->left = c->left << 4 | value_of(byte);
    } else if (c->digits == 0 || isxdigit((unsigned char)byte)) {
        refuse(c, "the size of a chunk is no number in hex, or too large");
    } else if (byte == '\r') {
        c->at = CHUNKS_SIZE_LF;
    } else if (byte == ';' || byte == ' ' || byte == '\t') {
        c->at = CHUNKS_EXTENSION;
    } else {
        refuse(c, "the line of a chunk's size does not end with CR LF");
    }
}

/* Text up to CR, behind which the LF is expected in state NEXT. */
static void take_text(struct chunks *c, char byte, int next, const char *problem)
{
    if (byte == '\r') {
        c->at = next;
    } else if (!is_text(byte)) {
        refuse(c, problem);
    }
}

/* BYTE must be WANTED; then NEXT is the state. */
static void take_wanted(struct chunks *c, char byte, char wanted, int next,
                        const char *problem)
{
    if (byte == wanted) {
        c->at = next;
    } else {
        refuse(c, problem);
    }
}

static void take_size_end(struct chunks *c, char byte)
{
    int next = c->left ? CHUNKS_DATA : CHUNKS_TRAILER;

    take_wanted(c, byte, '\n', next,
                "the line of a chunk's size does not end with CR LF");
    c->digits = 0;
}

/* Up to its colon; a line that continues another one has none. */
static void take_name(struct chunks *c, char byte)
{
    if (byte == ':' && c->at == CHUNKS_NAME) {
        c->at = CHUNKS_FIELD;
    } else if (head_is_name_byte(byte)) {
        c->at = CHUNKS_NAME;
    } else {
        refuse(c, "the name of a line behind the chunks is not a token up to its colon");
    }
}

static void take_trailer(struct chunks *c, char byte)
{
    if (byte == '\r') {
        c->at = CHUNKS_END_LF;
    } else if (byte == '\n') {
        refuse(c, "a line behind the chunks does not end with CR LF");
    } else {
        take_name(c, byte);
    }
}

static void take_one(struct chunks *c, char byte)
{
    static const char line[] =
        "the line of a chunk's size does not end with CR LF, or "
        "holds a control character",
                      data[] = "a chunk is not followed by CR LF",
                      field[] =
                          "a line behind the chunks does not end with CR LF, or "
                          "holds a control character";

    switch (c->at) {
    case CHUNKS_SIZE:
        take_size(c, byte);
        break;
    case CHUNKS_EXTENSION:
        take_text(c, byte, CHUNKS_SIZE_LF, line);
        break;
    case CHUNKS_SIZE_LF:
        take_size_end(c, byte);
        break;
    case CHUNKS_DATA_CR:
        take_wanted(c, byte, '\r', CHUNKS_DATA_LF, data);
        break;
    case CHUNKS_DATA_LF:
        take_wanted(c, byte, '\n', CHUNKS_SIZE, data);
        break;
    case CHUNKS_TRAILER:
        take_trailer(c, byte);
        break;
    case CHUNKS_NAME:
        take_name(c, byte);
        break;
    case CHUNKS_FIELD:
        take_text(c, byte, CHUNKS_FIELD_LF, field);
        break;
    case CHUNKS_FIELD_LF:
        take_wanted(c, byte, '\n', CHUNKS_TRAILER, field);
        break;
    case CHUNKS_END_LF:
        take_wanted(c, byte, '\n', CHUNKS_DONE, field);
        break;
    case CHUNKS_DATA:
    case CHUNKS_DONE:
        break;
    }
}

void chunks_take(struct chunks *c, const char *data, size_t length)
{
    size_t i = 0;

    while (i < length && !c->problem && c->at != CHUNKS_DONE) {
        if (c->at == CHUNKS_DATA) {
            size_t taken = c->left < length - i ? (size_t)c->left : length - i;

            i += taken;
            c->left -= taken;
            c->at = c->left ? CHUNKS_DATA : CHUNKS_DATA_CR;
        } else {
            take_one(c, data[i++]);
        }
    }
}

const char *chunks_problem(const struct chunks *c)
{
    return c->problem;
}

const char *chunks_end(const struct chunks *c)
{
    return c->problem || c->at == CHUNKS_DONE ? c->problem
                                              : "the chunks of the body do not end";
}
