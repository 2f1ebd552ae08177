/* A run as JSON. */
#ifndef API_RENDER_RUN_JSON_H
#define API_RENDER_RUN_JSON_H

#include "daemon/base/json_out.h"
#include "daemon/jobs/run.h"

/* The run's members, into an object that is open. */
void run_json(struct json_out *out, const struct run_record *run);

/* "NAME" as decimal text and "NAME_bits" as hex, both null for "". */
void sum_json(struct json_out *out, const char *name, const char *bits);

#endif
