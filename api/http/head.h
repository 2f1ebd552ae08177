/* Whether the head of a request is written as RFC 9112 has it: lines that end with CR LF,
 * names that are tokens up to the colon, no line that continues another, no NUL.  What
 * another reader could split otherwise is refused.
 *
 * libmicrohttpd up to 0.9.76 accepts more, and shows what it made of it, not what was
 * there.  But its texts lie in the buffer that it read: each CR and LF of a line's end
 * became a NUL, and so did the colon.  So what is not between them shows by their places.
 * Later versions are strict themselves (MHD_OPTION_CLIENT_DISCIPLINE_LVL).  Pure. */
#ifndef API_HTTP_HEAD_H
#define API_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether BYTE may stand in the name of a header. */
bool head_is_name_byte(char byte);

struct head {
    bool knows_places; /* of the texts: the library's version is one of those */
    uintptr_t next;    /* where the next line must begin */
    const char *problem;
};

/* Whether the texts of LIBRARY, a version, lie where they were read. */
bool head_knows_places(const char *library);

/* VERSION is the request line's last word, as the library has it; LIBRARY its own. */
void head_begin(struct head *head, const char *version, const char *library);

/* The next field, in the order of the lines. */
void head_field(struct head *head, const char *name, size_t name_length,
                const char *value, size_t value_length);

/* END is where the body begins.  What is wrong, in words; NULL: nothing. */
const char *head_end(struct head *head, uintptr_t end);

#endif
