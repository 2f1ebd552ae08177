/* The nouns as JSON: a case, a job, a run (daemon/jobs), a cost, recipes and columns. */
#ifndef API_RENDER_NOUNS_JSON_H
#define API_RENDER_NOUNS_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "daemon/base/json_out.h"
#include "daemon/evidence/profile.h"
#include "daemon/evidence/rate.h"
#include "daemon/evidence/times.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/run.h"

/* The members that name a case: workload, version, variant, size, dtype, seed. */
void case_json(struct json_out *out, const struct case_key *key);

/* Whose computation it is: "subject", and "subject_name", null for a model (NAME "" or
 * NULL). */
void subject_json(struct json_out *out, enum subject subject, const char *name);

/* The job's members, without its items.  ETA_MS: -1 if unknown. */
void job_json(struct json_out *out, const char *key, const struct job *job,
              int64_t eta_ms);

/* As above, with "items" and "waits_for".  WAITS: an array of {"device","text"}, the
 * devices on which a run would wait now, and why ("is used by others").  KNOWN: the keys
 * are the devices that hosts have now. */
void job_json_with_items(struct json_out *out, const struct job *job, int64_t eta_ms,
                         const json_t *waits, const json_t *known);

/* The run's members, into an object that is open. */
void run_json(struct json_out *out, const struct run_record *run);

/* "NAME" as decimal text and "NAME_bits" as hex, both null for "". */
void sum_json(struct json_out *out, const char *name, const char *bits);

/* Key "departures"; NULL: the cell does not vary, or not among like runs, or its counts
 * are not known. */
void departures_json(struct json_out *out, const struct departures *departures);

/* Key "share": of its bound that the worst element of a check took; null unless it IS
 * KNOWN. */
void share_json(struct json_out *out, bool is_known, int64_t share_ppm);

/* Key "cost": how many times as long as AGAINST in SIZE; null where it is not known.
 * Key "cost_note": why it is not told although both have runs enough; else null. */
void cost_json(struct json_out *out, const struct cost *cost, const char *against,
               const char *size);

/* Recipes or columns with their titles; NAME is the member that names each. */
void labels_json(struct json_out *out, const char *key, const char *name,
                 const struct profile_label *labels, int count);

/* The columns of TABLE, each with its images; and what documents say of the source of
 * ROW: only a row without a workload gives it here, the others' workloads have it. */
void columns_json(struct json_out *out, const struct profile_table *table);
void row_references_json(struct json_out *out, const struct profile_row *row);

/* Key "operations": the workloads of frameworks' packs that compute its source. */
void row_operations_json(struct json_out *out, const struct profile_row *row);

#endif
