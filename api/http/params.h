/* What a request asks for: its parameters, checked as its route declares them, and its
 * body, JSON that is read strictly. */
#ifndef API_HTTP_PARAMS_H
#define API_HTTP_PARAMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/http/routes.h"

struct request;

enum { BODY_DEPTH_MAX = 32, BODY_DETAIL_SIZE = 256, IDEMPOTENCY_KEY_SIZE = 256 };

/* Adds to r->problems each parameter of R's query that its route does not have or that is
 * given twice. */
void params_check(struct request *r);

/* Checks the segments that fill {…} in R's path: false after having replied that there is
 * no such thing. */
bool params_check_path(struct request *r);

/* Replies with r->problems if there are any. */
bool params_refused(struct request *r);

/* The values, each checked where it is read: what is wrong is added to r->problems, and
 * the value is as if it were not given. */

/* Of any type; NULL if it is not given. */
const char *param_value(struct request *r, const char *name);

/* PARAM_LIMIT called "limit". */
int param_limit(struct request *r);

/* PARAM_NUMBER; 0 if it is not given. */
int64_t param_number(struct request *r, const char *name);

/* PARAM_TIME; 0 if it is not given. */
int64_t param_time(struct request *r, const char *name);

/* PARAM_RANGE; 0 and INT64_MAX if it is not given. */
void param_range(struct request *r, const char *name, int64_t *ret_first,
                 int64_t *ret_last);

/* Any text of at most SIZE - 1 bytes; "" if it is not given. */
void param_text(struct request *r, const char *name, char *ret_text, size_t size);

/* A decimal number of digits only, 1 … INT64_MAX; -1 for any other text. */
int64_t parse_id(const char *text);

/* Likewise from 0, as a Last-Event-ID is.  Pure. */
int64_t parse_event_id(const char *text);

/* The JSON in DATA (new reference), or NULL with RET_DETAIL saying why not: empty,
 * malformed, a key twice in an object, nested deeper than BODY_DEPTH_MAX.  Pure. */
json_t *body_parse(const char *data, size_t length, char ret_detail[BODY_DETAIL_SIZE]);

/* Whether a body of this Content-Type (NULL: none given) is taken for JSON.  The type
 * that curl -d says is: a page of another origin, the only one who could misuse it, is
 * refused by its Origin.  Pure. */
bool body_type_is_json(const char *content_type);

/* Whether KEY can be an idempotency key: 1 to IDEMPOTENCY_KEY_SIZE - 1 printable ASCII
 * characters.  Pure. */
bool idempotency_key_valid(const char *key);

/* The Idempotency-Key of R; "" if it has none.  False after having replied that it cannot
 * be one. */
bool read_idempotency_key(struct request *r, char ret_key[IDEMPOTENCY_KEY_SIZE]);

/* R's body (new reference), or NULL after having replied what is wrong with it. */
json_t *body_json(struct request *r);

#endif
