#include "api/http/head.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LINE_END = 2, FIRST_KNOWN = 64, LAST_KNOWN = 76 };

static void refuse(struct head *head, const char *problem)
{
    if (!head->problem) {
        head->problem = problem;
    }
}

bool head_is_name_byte(char byte)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";

    return isalnum((unsigned char)byte) || (byte && strchr(marks, byte));
}

static bool is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!head_is_name_byte(text[i])) {
            return false;
        }
    }
    return length > 0;
}

bool head_knows_places(const char *library)
{
    int patch;

    return sscanf(library, "0.9.%d", &patch) == 1 && patch >= FIRST_KNOWN &&
           patch <= LAST_KNOWN;
}

void head_begin(struct head *head, const char *version, const char *library)
{
    *head = (struct head){ .knows_places = head_knows_places(library),
                           .next = (uintptr_t)version + strlen(version) + LINE_END };
}

/* Between the name, whose colon is gone, and the value there is only blank. */
static bool is_blank(const char *from, const char *to)
{
    while (from < to && (*from == ' ' || *from == '\t')) {
        from++;
    }
    return from == to;
}

static void check_places(struct head *head, const char *name, size_t name_length,
                         const char *value, size_t value_length)
{
    const char *colon = name + name_length;

    if ((uintptr_t)name != head->next || (uintptr_t)value < (uintptr_t)colon + 1 ||
        !is_blank(colon + 1, value)) {
        refuse(head,
               "a line of the head does not end with CR LF, continues another line, "
               "or holds a NUL");
    }
    head->next = (uintptr_t)value + value_length + LINE_END;
}

void head_field(struct head *head, const char *name, size_t name_length,
                const char *value, size_t value_length)
{
    if (!is_token(name, name_length)) {
        refuse(head, "the name of a header is not a token up to its colon");
    }
    for (size_t i = 0; i < value_length; i++) {
        if (iscntrl((unsigned char)value[i]) && value[i] != '\t') {
            refuse(head, "the value of a header holds a control character");
        }
    }
    if (head->knows_places && !head->problem) {
        check_places(head, name, name_length, value, value_length);
    }
}

const char *head_end(struct head *head, uintptr_t end)
{
    if (head->knows_places && head->next + LINE_END != end) {
        refuse(head, "the last lines of the head do not end with CR LF, or hold a NUL");
    }
    return head->problem;
}
