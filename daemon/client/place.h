/* The place where the runs of a case begin to diverge: of a job that localises, for
 * `reprod check --localise`. */
#ifndef DAEMON_CLIENT_PLACE_H
#define DAEMON_CLIENT_PLACE_H

#include <jansson.h>

#include "daemon/client/http.h"

/* The body of a job that localises ITEM, of GET /v1/jobs/{id}, in at most RUNS_MAX runs
 * under the circumstances that REQUEST, the job's own, asked for.  Caller frees. */
char *place_request(const json_t *request, const json_t *item, int runs_max);

/* Submits BODY, waits, and says in a sentence what was found, or why nothing was.  Caller
 * frees; never NULL. */
char *place_find(const struct server *server, const char *body);

#endif
