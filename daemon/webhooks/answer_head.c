#include "daemon/webhooks/answer_head.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "daemon/base/mem.h"

/* The line at BYTES ends at the returned newline; NULL: it goes on. */
static const char *line_end(const char *bytes, const char *end)
{
    return memchr(bytes, '\n', (size_t)(end - bytes));
}

/* "HTTP/1.1 204 …"; 0: it is something else. */
static int read_status(const char *line, const char *end)
{
    static const char version[] = "HTTP/1.";
    size_t length = strlen(version);
    const char *code = line + length + 2;

    if (end - line < 12 || memcmp(line, version, length) != 0 ||
        !isdigit((unsigned char)line[length]) || line[length + 1] != ' ' ||
        code[0] < '1' || code[0] > '5' || !isdigit((unsigned char)code[1]) ||
        !isdigit((unsigned char)code[2]) ||
        (code + 3 < end && code[3] != ' ' && code[3] != '\r')) {
        return 0;
    }
    return (code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0');
}

static void take_header(const char *line, const char *end, struct answer_head *head)
{
    static const char name[] = "Retry-After:";
    size_t length = strlen(name);

    if ((size_t)(end - line) < length || strncasecmp(line, name, length) != 0) {
        return;
    }
    line += length;
    while (line < end && (*line == ' ' || *line == '\t')) {
        line++;
    }
    while (end > line && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    if (end - line < RETRY_AFTER_SIZE) {
        copy_text(head->retry_after, (size_t)(end - line) + 1, line);
    }
}

enum answer_head_state answer_head_read(const char *bytes, size_t length,
                                        struct answer_head *head)
{
    const char *end = bytes + length;
    const char *line = bytes, *next;
    enum answer_head_state more =
        length > ANSWER_HEAD_MOST ? ANSWER_HEAD_BAD : ANSWER_HEAD_MORE;
    bool first = true;

    *head = (struct answer_head){ .status = 0 };
    while (line < end && (next = line_end(line, end))) {
        bool empty = next == line || (next == line + 1 && *line == '\r');

        if (first) {
            head->status = read_status(line, next);
            if (!head->status) {
                return ANSWER_HEAD_BAD;
            }
        } else if (!empty) {
            take_header(line, next, head);
        } else if (head->status >= 200) {
            return ANSWER_HEAD_WHOLE;
        } else {
            *head = (struct answer_head){ .status = 0 };
        }
        first = empty && !first;
        line = next + 1;
    }
    return more;
}
