/* Writes JSON into a buffer: objects, arrays and values in order, commas by itself.
 *
 * For replies with many rows: about twice as fast as building a tree first.  KEY is NULL
 * inside arrays and for the outermost value.  Text that is not UTF-8 has its bad bytes
 * replaced by U+FFFD, so that the result is always valid JSON.  What acts on a terminal
 * (daemon/base/text.h) is escaped, so that JSON can be read on one. */
#ifndef DAEMON_BASE_JSON_OUT_H
#define DAEMON_BASE_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/buf.h"

struct json_out {
    struct buf buf; /* the text so far; detach or release it when done */
    bool comma;     /* the next value needs one */
};

#define JSON_OUT_INIT                                                                    \
    {                                                                                    \
        BUF_INIT, false                                                                  \
    }

void out_open(struct json_out *out, const char *key, char bracket); /* '{' or '[' */
void out_close(struct json_out *out, char bracket);                 /* '}' or ']' */

/* Opens an object if there IS one; writes null otherwise.  Returns IS. */
bool out_object(struct json_out *out, const char *key, bool is);

void out_text(struct json_out *out, const char *key, const char *value); /* NULL: null */
void out_bytes(struct json_out *out, const char *key, const char *value, size_t length);
void out_int(struct json_out *out, const char *key, int64_t value);
void out_real(struct json_out *out, const char *key, double value); /* not finite: null */
void out_bool(struct json_out *out, const char *key, bool value);
void out_null(struct json_out *out, const char *key);

/* Text where it says something, null for "". */
void out_name(struct json_out *out, const char *key, const char *value);

/* The value where it IS KNOWN, null otherwise. */
void out_int_if(struct json_out *out, const char *key, bool is_known, int64_t value);
void out_bool_if(struct json_out *out, const char *key, bool is_known, bool value);
void out_ms_if(struct json_out *out, const char *key, bool is_known, int64_t ns);

/* RFC 3339; null for 0. */
void out_time(struct json_out *out, const char *key, int64_t wall_ms);

/* Nanoseconds as milliseconds. */
void out_ms(struct json_out *out, const char *key, int64_t ns);

/* JSON that is already text; NULL or "": null. */
void out_json(struct json_out *out, const char *key, const char *json);

/* A formatted text value. */
void out_format(struct json_out *out, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
