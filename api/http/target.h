/* The request target, taken apart: path segments and query parameters, percent-decoded
 * one by one, so that an encoded "/" or "&" never separates anything.  Pure.
 *
 * The server's library decodes before it shows the path and ends it at the first NUL; so
 * the raw target is parsed here instead, strictly. */
#ifndef API_HTTP_TARGET_H
#define API_HTTP_TARGET_H

enum { TARGET_SEGMENTS_MAX = 16, TARGET_PARAMETERS_MAX = 32 };

struct target_parameter {
    const char *name, *value;
};

struct target {
    char *text;            /* owns every text below */
    const char *authority; /* "host:port" of "GET http://host:port/…"; else NULL */
    const char *path;      /* raw, without the query */
    const char *segments[TARGET_SEGMENTS_MAX]; /* "/" has none */
    int segment_count;
    struct target_parameter parameters[TARGET_PARAMETERS_MAX];
    int parameter_count;
};

/* Returns NULL, or what is wrong with RAW (a sentence; static).  RET_TARGET is to be
 * released in either case. */
const char *target_parse(const char *raw, struct target *ret_target);
void target_release(struct target *target);

/* The value of the query parameter NAME, or NULL. */
const char *target_parameter(const struct target *target, const char *name);

#endif
