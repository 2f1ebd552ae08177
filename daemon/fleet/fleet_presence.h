/* What the API shows of the fleet, made once for as long as it stays the same.
 *
 * Whoever changes what is in it says so: fleet_changed.  Loop thread only. */
#ifndef DAEMON_FLEET_FLEET_PRESENCE_H
#define DAEMON_FLEET_FLEET_PRESENCE_H

#include "daemon/fleet/fleet_state.h"

/* New reference; to be given back before fleet_free. */
struct presence *fleet_presence(struct fleet *fleet);

#endif
