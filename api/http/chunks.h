/* Whether a body in chunks is written as RFC 9112 has it (section 7.1): sizes in hex,
 * lines that end with CR LF, no control character in them, CR LF behind each chunk and at
 * the end; and behind the chunks, names that are tokens up to their colon, as in a head
 * (head.h).  What another reader could split otherwise is refused.
 *
 * libmicrohttpd up to 0.9.76 takes a LF alone for the end of such a line, and its callers
 * see only what the chunks held.  So the bytes are read here as they came.  Pure. */
#ifndef API_HTTP_CHUNKS_H
#define API_HTTP_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

struct chunks {
    enum {
        CHUNKS_SIZE,      /* its digits */
        CHUNKS_EXTENSION, /* what follows them in the line */
        CHUNKS_SIZE_LF,   /* the LF of that line */
        CHUNKS_DATA,
        CHUNKS_DATA_CR, /* behind the data */
        CHUNKS_DATA_LF,
        CHUNKS_TRAILER, /* at the beginning of a line behind the last chunk */
        CHUNKS_NAME,    /* within the name that such a line begins with */
        CHUNKS_FIELD,   /* behind its colon */
        CHUNKS_FIELD_LF,
        CHUNKS_END_LF, /* of the empty line at the end */
        CHUNKS_DONE
    } at;
    int digits;
    uint64_t left; /* of the chunk's data; or its size, as far as it was read */
    const char *problem;
};

void chunks_begin(struct chunks *chunks);

/* The next bytes of the connection; behind the body's end they are of the next request.
 */
void chunks_take(struct chunks *chunks, const char *data, size_t length);

/* What is wrong, in words; NULL: nothing so far. */
const char *chunks_problem(const struct chunks *chunks);

/* The same, where the body is said to be over. */
const char *chunks_end(const struct chunks *chunks);

#endif
