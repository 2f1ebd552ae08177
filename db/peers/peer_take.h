/* Taking one run of a peer.  Private to db/peers. */
#ifndef DB_PEERS_PEER_TAKE_H
#define DB_PEERS_PEER_TAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/peer_run.h"

struct tx;

/* Takes RUN, which is refused by nothing that it says itself, for ORIGIN (a number of
 * peer_origin), which is SERVICE.  RET_KNOWN: it is here already.  Refuses RUN, with
 * nothing changed, where the database has something against it. */
enum err_code peer_take(struct tx *tx, struct peer_run *run, int64_t origin,
                        const char *peer, const char *service, int64_t now_ms,
                        bool *ret_known, struct err *err);

#endif
