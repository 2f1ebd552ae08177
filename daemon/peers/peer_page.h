/* Reads what another service answers to GET /v1/export: a page, one JSON object.  Every
 * run in it is checked as a run of our own is, and gets the peer's name where its names
 * need it.  Pure. */
#ifndef DAEMON_PEERS_PEER_PAGE_H
#define DAEMON_PEERS_PEER_PAGE_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/peer_run.h"

/* Reads TEXT, what PEER answered to the question for runs behind SINCE.  A run that is
 * wrong is in the page, with why it is refused.  Release with peer_page_release, after an
 * error, too.
 *
 * A page ends before a run that is of a time after NOW_MS, by its id or its times: it can
 * be taken once that is past.
 *
 * ERR_PROTOCOL: it is no such page, or contradicts itself; ERR_UNSUPPORTED: it has
 * another PEER_FORMAT; ERR_BUSY: a run is more than PEER_AHEAD_MS ahead. */
enum err_code peer_page_read(const char *text, size_t length, const char *peer,
                             const char *since, int64_t now_ms,
                             struct peer_page *ret_page, struct err *err);

#endif
