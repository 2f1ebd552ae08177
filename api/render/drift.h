/* Drift between environments (daemon/evidence/drift.h): for a terminal, as JSON, as CSV.
 * Pure. */
#ifndef API_RENDER_DRIFT_H
#define API_RENDER_DRIFT_H

#include <jansson.h>

#include "daemon/base/buf.h"
#include "daemon/base/json_out.h"
#include "db/views/drift.h"

/* "driver 550 → 560 on 12 hosts"; of one environment "gpu1 since …, in the same
 * environment".  Caller frees. */
char *drift_title(const struct drift *drift);

/* Where it is shown.  Caller frees. */
char *drift_href(const struct drift *drift);

/* The page that shows what HREF, of drift_href, does: "/?drift=…".  Caller frees. */
char *drift_page(const char *href);

/* What would tell what cannot be told: an array of bodies of POST /v1/jobs, each for all
 * cases of a workload that lack runs in the same environment.  New reference. */
json_t *drift_jobs(const struct drift *drift);

/* An object; cases are judged and sorted. */
void drift_json(const struct drift *drift, struct json_out *out);
void drift_text(const struct drift *drift, struct buf *buf);

/* The table's head, and the lines of one. */
void drift_csv_head(struct buf *buf);
void drift_csv(const struct drift *drift, struct buf *buf);

#endif
