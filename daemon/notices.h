/* What the service tells of itself in events: a host is lost or back, the database is
 * damaged or whole again.  Loop thread only.
 *
 * A host that is away for a short time is not lost; one that was never heard since the
 * start has longer.  Nor is one that was let go, waits in a queue, or is withheld: nobody
 * wants an agent there now.  What was told is on record, so that a host that comes back
 * after a restart is told of, and no loss twice; a database likewise.  What could not be
 * stored is told once it can be, if it is still so. */
#ifndef DAEMON_NOTICES_H
#define DAEMON_NOTICES_H

#include <stdint.h>

#include "daemon/jobs/presence.h"
#include "db/store.h"

struct notices;

enum { NOTICES_AWAY_MS = 10 * 1000, NOTICES_UNHEARD_MS = 60 * 1000 };

struct notices *notices_new(struct store *store);
void notices_free(struct notices *notices); /* after the store; NULL is fine */

/* Looks at the hosts of PRESENCE.  DATABASE says what is wrong with it, "": nothing,
 * NULL: it was not looked at yet.  To be called about once a second. */
void notices_tick(struct notices *notices, const struct presence *presence,
                  const char *database, int64_t now_wall_ms, int64_t now_monotonic_ms);

#endif
