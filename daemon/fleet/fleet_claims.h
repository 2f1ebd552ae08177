/* Which host has which device.
 *
 * A device is of the host that says so first, as long as that host says so.  What another
 * host says of it is refused, with the reason, until the first one came without it.  Only
 * a device of a host that is away goes to another one that has it now: it was moved.  Not
 * so once both had it at a time: then one of them is wrong, and which is not known.  Of
 * the CPU it is known: "cpu:NAME" is of the host whose agent calls it NAME, if there is
 * one.
 *
 * Loop thread only. */
#ifndef DAEMON_FLEET_FLEET_CLAIMS_H
#define DAEMON_FLEET_FLEET_CLAIMS_H

#include "daemon/fleet/fleet_state.h"

/* HOST said hello and is online: gives it the devices that are its own, and takes from it
 * what its hello no longer has.  True: other hosts say that they have one of these, too,
 * and may then have gained some, when they are asked again, or lost some. */
bool fleet_claims_take(struct fleet *fleet, const struct fleet_host *host);

/* The host that has DEVICE; NULL: none. */
const struct fleet_host *fleet_claims_host(const struct fleet *fleet, const char *device);

void fleet_claims_release(struct fleet *fleet);

/* Why HOST does not have some device that it says it has; NULL: it has all.  Caller
 * frees. */
char *fleet_claims_refused(const struct fleet *fleet, const struct fleet_host *host);

#endif
