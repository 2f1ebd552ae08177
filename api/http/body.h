/* Request bodies: JSON, read strictly.  Pure. */
#ifndef API_HTTP_BODY_H
#define API_HTTP_BODY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { BODY_DEPTH_MAX = 32, BODY_DETAIL_SIZE = 256 };

/* The JSON in DATA (new reference), or NULL with RET_DETAIL saying why not: empty,
 * malformed, a key twice in an object, nested deeper than BODY_DEPTH_MAX. */
json_t *body_parse(const char *data, size_t length, char ret_detail[BODY_DETAIL_SIZE]);

/* Whether a body of this Content-Type (NULL: none given) is taken for JSON.  The type
 * that curl -d says is: a page of another origin, the only one who could misuse it, is
 * refused by its Origin. */
bool body_type_is_json(const char *content_type);

#endif
