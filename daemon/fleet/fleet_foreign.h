/* Processes of others on devices, as the agents tell them (workloads/PROTOCOL.md:
 * `processes`).  As the configuration says, runs wait until a device is left alone, or
 * are made and marked: each tells in its telemetry what it saw.
 *
 * What is not known is not waited for: an agent whose backend cannot tell, or whose
 * driver does not answer.
 *
 * Loop thread only. */
#ifndef DAEMON_FLEET_FLEET_FOREIGN_H
#define DAEMON_FLEET_FLEET_FOREIGN_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/fleet/fleet_state.h"

/* HOST says who uses its DEVICES, an array of {"id","foreign","cause"}. */
void fleet_foreign_take(struct fleet *fleet, const struct fleet_host *host,
                        const json_t *devices);

/* HOST is away: nothing is known of its devices. */
void fleet_foreign_forget(struct fleet *fleet, const struct fleet_host *host);

/* Whether runs on DEVICE have to wait. */
bool fleet_foreign_waits(const struct fleet *fleet, const char *device);

/* Array of {"device","processes" (null: not known),"cause","since","waits"}, the devices
 * of which anything was told.  New reference. */
json_t *fleet_foreign_json(const struct fleet *fleet);

void fleet_foreign_release(struct fleet *fleet);

#endif
