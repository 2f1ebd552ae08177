/* What a host says of itself, on record: that it and its devices were seen, what changed
 * (db/views/changes.h), and which devices have to be screened (db/screening/).
 *
 * Loop thread only. */
#ifndef DAEMON_FLEET_FLEET_RECORD_H
#define DAEMON_FLEET_FLEET_RECORD_H

#include "daemon/fleet/fleet_state.h"

/* Stores the hello of HOST, in one transaction.  Host->recorded becomes true once that is
 * durable.  A failure is logged; where none was ever durable, fleet_tick tries again. */
void fleet_record(struct fleet_host *host);

#endif
