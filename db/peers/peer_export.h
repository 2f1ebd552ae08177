/* Runs that were measured here, for another service (daemon/jobs/peer_run.h): finished
 * ones, by id, each once.
 *
 * Ids grow in the order in which runs are begun (daemon/base/id.h), not in that in which
 * they end.  So nothing is handed out behind the first run that goes on: whoever has read
 * up to a cursor has read all there will ever be up to there. */
#ifndef DB_PEERS_PEER_EXPORT_H
#define DB_PEERS_PEER_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/peer_run.h"

struct tx;

/* The page behind SINCE, of at most LIMIT runs.  VISIT(arg, run) is called for each that
 * is handed out, which is borrowed for the call (one that is damaged has its refusal and
 * its id only); false: the page ends with it.  Fills all of RET_PAGE but the runs and the
 * version. */
enum err_code peers_export(struct tx *tx, const char *since, int limit,
                           bool (*visit)(void *arg, const struct peer_run *run),
                           void *arg, struct peer_page *ret_page, struct err *err);

#endif
