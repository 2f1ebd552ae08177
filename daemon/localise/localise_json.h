/* What a localisation found, as JSON: the members "search" and "difference" of
 * GET /v1/jobs/{id}/localisation, stored as they are shown (api/openapi.json says what
 * they mean). */
#ifndef DAEMON_LOCALISE_LOCALISE_JSON_H
#define DAEMON_LOCALISE_LOCALISE_JSON_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"
#include "daemon/trace/divergence.h"

struct tx;

/* What the traces showed.  RUNS are the runs in order of feeding, DIGESTS how many
 * results they had.  Caller frees. */
char *localise_search_json(const struct divergence_result *result, int64_t digests,
                           char (*runs)[ID_SIZE]);

/* The tensors that runs A and B captured, compared; CAPTURED is how many runs captured
 * any.  Caller frees *ret_json. */
enum err_code localise_difference_json(struct tx *tx, const char *a, const char *b,
                                       int captured, char **ret_json, struct err *err);

#endif
