/* What is known of the fleet: its hosts and what they said, as the scheduler, the survey
 * and the API read it.  Loop thread only. */
#ifndef DAEMON_FLEET_FLEET_FACTS_H
#define DAEMON_FLEET_FLEET_FACTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/evidence/catalogue.h"
#include "daemon/fleet/fleet_state.h"
#include "daemon/jobs/device.h"

/* NULL until the first hello. */
const struct catalogue *fleet_catalogue(const struct fleet *fleet);

/* Every host of the configuration said hello at least once: the catalogue is whole. */
bool fleet_complete(const struct fleet *fleet);

/* The same, but for hosts that an engine holds: those may not come for weeks. */
bool fleet_settled(const struct fleet *fleet);

/* Each device once for every stack that serves it.  Borrowed until the loop runs on. */
int fleet_devices(const struct fleet *fleet, const struct device_stack **ret_devices);

/* Array: {"name","host","worker","library_path","backend","worker_build","versions",
 * "problems","problem_texts","devices","device_ids","online","cause"}.  New reference. */
json_t *fleet_stacks(const struct fleet *fleet);

/* The names of the stacks that each host of the configuration has, usable or not, an
 * array by the host's name; null for one that never said hello.  New reference. */
json_t *fleet_stack_names(const struct fleet *fleet);

/* Returns how many hosts the configuration has. */
int fleet_count_hosts(const struct fleet *fleet, int *ret_online, int *ret_waiting);

/* NULL when a device is online whose agent answers, or can be had; else why not. Borrowed
 * until the loop runs on. */
const char *fleet_not_ready(const struct fleet *fleet);

/* NULL when all hosts that are wanted now are online and answer; else which do not.
 * Caller frees. */
char *fleet_missing(const struct fleet *fleet);

/* What the hosts that are online said of themselves is in the database, where the API
 * reads it. */
bool fleet_recorded(const struct fleet *fleet);

/* For fleet.c and fleet_life.c. */

/* Rebuilds the list of devices from every host's last hello. */
void fleet_list_devices(struct fleet *fleet);

/* What is shown of HOST and its devices follows from what it is now (monotonic): to be
 * called after each change of what fleet_host_state and fleet_host_cause look at. */
void fleet_look_at(struct fleet_host *host, int64_t now_ms);

#endif
