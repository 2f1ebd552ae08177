/* Query parameters with a meaning, checked.  What is wrong is added to r->problems; a
 * handler reads all of them, then asks params_refused once. */
#ifndef API_HTTP_PARAMS_H
#define API_HTTP_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/http/cursor.h"
#include "daemon/base/id.h"

struct request;

enum { PARAM_LIMIT_DEFAULT = 100, PARAM_LIMIT_MAX = 1000 };

/* "limit", at most PARAM_LIMIT_MAX, or MAX; PARAM_LIMIT_DEFAULT if it is not given. */
int param_limit(struct request *r);
int param_limit_up_to(struct request *r, int max);

/* "cursor" of a list of KIND whose keys are ids; "" if it is not given. */
void param_cursor_id(struct request *r, char kind, char ret_id[ID_SIZE]);

/* The same of a list whose keys are positive numbers; 0 if it is not given. */
int64_t param_cursor_number(struct request *r, char kind);

/* The same of a list whose keys are two positive numbers, "7.30". */
void param_cursor_pair(struct request *r, char kind, int64_t *ret_first,
                       int64_t *ret_second);

/* An RFC 3339 time; 0 if it is not given. */
int64_t param_time(struct request *r, const char *name);

/* A positive number; 0 if it is not given. */
int64_t param_id(struct request *r, const char *name);

/* "7" or "30-40": numbers from 0; 0 and INT64_MAX if it is not given. */
void param_range(struct request *r, const char *name, int64_t *ret_first,
                 int64_t *ret_last);

/* The id of a run, which must be given. */
void param_run(struct request *r, const char *name, char *ret_id, size_t size);

/* Text of at most SIZE - 1 bytes; "" if it is not given. */
void param_text(struct request *r, const char *name, char *ret_text, size_t size);

/* Replies with r->problems if there are any. */
bool params_refused(struct request *r);

/* A decimal number of digits only, 1 … INT64_MAX; -1 for any other text. */
int64_t parse_id(const char *text);

#endif
