/* What the records of two traces show, as JSON: members of an object that is open. */
#ifndef API_RENDER_COMPARE_RECORDS_H
#define API_RENDER_COMPARE_RECORDS_H

#include "api/compare.h"

/* The pair of records at POSITION; null for -1. */
void compare_difference_json(struct json_out *out, const char *name,
                             const struct compare *compare, int64_t position);

/* First difference, root cause, where structure parts, counts, roots, places. */
void compare_records_json(const struct compare *compare, struct json_out *out);

#endif
