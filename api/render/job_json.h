/* A job as JSON, for the list and for its own page. */
#ifndef API_RENDER_JOB_JSON_H
#define API_RENDER_JOB_JSON_H

#include <stdint.h>

#include "daemon/base/json_out.h"
#include "daemon/jobs/job.h"

/* The job's members, without its items.  ETA_MS: -1 if unknown. */
void job_json(struct json_out *out, const char *key, const struct job *job,
              int64_t eta_ms);

/* As above, with "items". */
void job_json_with_items(struct json_out *out, const struct job *job, int64_t eta_ms);

/* The members that name a case: workload, version, variant, size, dtype, seed. */
void case_json(struct json_out *out, const struct case_key *key);

#endif
