#include "daemon/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"

size_t text_sequence(const char *bytes, size_t left)
{
    const unsigned char *text = (const unsigned char *)bytes;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t length;

    if (text[0] < 0x80) {
        return 1;
    }
    if (text[0] < 0xc2 || text[0] > 0xf4) {
        return 0;
    }
    length = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    low = text[0] == 0xe0 ? 0xa0 : text[0] == 0xf0 ? 0x90 : low;
    high = text[0] == 0xed ? 0x9f : text[0] == 0xf4 ? 0x8f : high;
    if (length > left || text[1] < low || text[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return length;
}

int text_control(const char *bytes, size_t left)
{
    const unsigned char *text = (const unsigned char *)bytes;
    size_t length = text_sequence(bytes, left);
    int point = length == 1   ? text[0]
                : length == 2 ? (text[0] & 0x1f) << 6 | (text[1] & 0x3f)
                : length == 3
                    ? (text[0] & 0xf) << 12 | (text[1] & 0x3f) << 6 | (text[2] & 0x3f)
                    : -1;

    return (point >= 0 && point < 0x20) || (point >= 0x7f && point < 0xa0) ||
                   (point >= 0x2028 && point <= 0x202e) ||
                   (point >= 0x2066 && point <= 0x2069)
               ? point
               : -1;
}

enum { SPELT_SIZE = 16 };

/* How the character, or the byte that is none, at TEXT is shown: RET_SPELT, or "" where
 * it is shown as it is.  Returns the bytes of TEXT that it takes. */
static size_t spell_one(const char *text, size_t left, const char *kept,
                        char ret_spelt[SPELT_SIZE])
{
    size_t length = text_sequence(text, left);
    int control = length ? text_control(text, left) : -1;

    ret_spelt[0] = '\0';
    if (length == 0) {
        snprintf(ret_spelt, SPELT_SIZE, "\\x%02x", (unsigned char)*text);
    } else if (control > 0x7f) {
        snprintf(ret_spelt, SPELT_SIZE, "\\u%04x", (unsigned)control);
    } else if (control == '\n' || control == '\r' || control == '\t') {
        if (!strchr(kept, control)) {
            snprintf(ret_spelt, SPELT_SIZE, "\\%c",
                     control == '\n'   ? 'n'
                     : control == '\r' ? 'r'
                                       : 't');
        }
    } else if (control >= 0) {
        snprintf(ret_spelt, SPELT_SIZE, "\\x%02x", (unsigned)control);
    }
    return length ? length : 1;
}

void text_show(struct buf *buf, const char *bytes, size_t length, const char *kept)
{
    for (size_t i = 0; i < length;) {
        char spelt[SPELT_SIZE];
        size_t step = spell_one(bytes + i, length - i, kept, spelt);

        if (spelt[0]) {
            buf_puts(buf, spelt);
        } else {
            buf_add(buf, bytes + i, step);
        }
        i += step;
    }
}

static void add_line(struct buf *buf, char *line)
{
    text_show(buf, line, strlen(line), "");
    buf_putc(buf, '\n');
    free(line);
}

void text_line(struct buf *buf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_line(buf, xvasprintf(format, args));
    va_end(args);
}

void text_print(FILE *to, const char *format, ...)
{
    struct buf buf = BUF_INIT;
    va_list args;

    va_start(args, format);
    add_line(&buf, xvasprintf(format, args));
    va_end(args);
    fputs(buf.data, to);
    buf_release(&buf);
}

static int columns_of(const char *text, size_t length)
{
    int n = 0;

    for (size_t i = 0; i < length;) {
        char spelt[SPELT_SIZE];

        i += spell_one(text + i, length - i, "", spelt);
        n += spelt[0] ? (int)strlen(spelt) : 1;
    }
    return n;
}

int text_width(const char *text)
{
    return columns_of(text, strlen(text));
}

void text_pad(struct buf *buf, const char *text, int width)
{
    int columns = text_width(text);

    text_show(buf, text, strlen(text), "");
    for (; columns < width; columns++) {
        buf_putc(buf, ' ');
    }
}

/* What a spreadsheet would compute: a leading sign of what is no plain number, "=" or
 * "@", full-width ones (U+FF1D, FF0B, FF0D, FF20), too. Tabs and ends of lines are spelt.
 */
static bool is_formula(const char *text)
{
    static const char *const wide[] = { "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d",
                                        "\xef\xbc\xa0" };
    char *end;

    for (int i = 0; i < COUNT_OF(wide); i++) {
        if (strncmp(text, wide[i], strlen(wide[i])) == 0) {
            return true;
        }
    }
    if (!*text || !strchr("=+-@", *text)) {
        return false;
    }
    if (text[strspn(text, "+-.0123456789eE")]) {
        return true;
    }
    strtod(text, &end);
    return *end || end == text;
}

void text_csv(struct buf *buf, const char *text)
{
    const char *mark = is_formula(text) ? "'" : "";

    if (!strpbrk(text, ",\"\r\n")) {
        buf_puts(buf, mark);
        text_show(buf, text, strlen(text), "");
        return;
    }
    buf_printf(buf, "\"%s", mark);
    for (const char *end; *text; text = end) {
        end = text + strcspn(text, "\"");
        text_show(buf, text, (size_t)(end - text), "");
        if (*end) {
            buf_puts(buf, "\"\"");
            end++;
        }
    }
    buf_putc(buf, '"');
}

/* Bytes of TEXT that one line of WIDTH columns takes: at least one word. */
static size_t line_length(const char *text, int width)
{
    size_t best = strcspn(text, " ");

    for (size_t at = best; text[at];) {
        size_t end = at + 1 + strcspn(text + at + 1, " ");

        if (columns_of(text, end) > width) {
            break;
        }
        best = end;
        at = end;
    }
    return best;
}

void text_wrap(struct buf *buf, const char *text, int width, int indent)
{
    for (bool first = true; first || *text; first = false) {
        size_t length = line_length(text, width - indent);

        if (!first) {
            text_pad(buf, "", indent);
        }
        text_show(buf, text, length, "");
        buf_putc(buf, '\n');
        text += length;
        text += strspn(text, " ");
    }
}

bool text_wrapped_line(const char *text, int width, int line, char *ret_line, size_t size)
{
    for (int i = 0; *text; i++) {
        size_t length = line_length(text, width);

        if (i == line) {
            snprintf(ret_line, size, "%.*s", (int)length, text);
            return true;
        }
        text += length;
        text += strspn(text, " ");
    }
    ret_line[0] = '\0';
    return false;
}

int text_wrapped_width(const char *text, int width)
{
    int widest = 0;

    while (*text) {
        size_t length = line_length(text, width);
        int columns = columns_of(text, length);

        widest = columns > widest ? columns : widest;
        text += length;
        text += strspn(text, " ");
    }
    return widest;
}

const char *text_number(int64_t value, char ret_text[TEXT_NUMBER_SIZE])
{
    char digits[TEXT_NUMBER_SIZE];
    int length = snprintf(digits, sizeof digits, "%" PRId64, value);
    int to = 0;

    for (int i = 0; i < length; i++) {
        int left = length - i;

        if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') {
            ret_text[to++] = ',';
        }
        ret_text[to++] = digits[i];
    }
    ret_text[to] = '\0';
    return ret_text;
}

const char *text_bound(double bound, char ret_text[TEXT_NUMBER_SIZE])
{
    double percent = bound * 100;
    int places = percent >= 10 ? 0 : percent >= 1 ? 1 : 3;
    double scale = places == 0 ? 1 : places == 1 ? 10 : 1000;

    if (!(bound < 1)) {
        return "-";
    }
    snprintf(ret_text, TEXT_NUMBER_SIZE, "< %.*f %%", places,
             ceil(percent * scale) / scale);
    return ret_text;
}

void decimal_from_bits(const char *bits, char ret_text[DECIMAL_SIZE])
{
    uint64_t word;
    double value;
    double size;

    ret_text[0] = '\0';
    if (strlen(bits) != 16 || strspn(bits, "0123456789abcdefABCDEF") != 16) {
        return;
    }
    word = strtoull(bits, NULL, 16);
    memcpy(&value, &word, sizeof value);
    size = fabs(value);
    if (value == 0 || (size >= 1 && size < 1e15)) {
        snprintf(ret_text, DECIMAL_SIZE, "%.16f", value);
    } else {
        snprintf(ret_text, DECIMAL_SIZE, "%.17g", value);
    }
}
