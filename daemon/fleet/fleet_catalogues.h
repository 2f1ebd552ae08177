/* Catalogues of many hosts: those that are equal are kept once, and looked at once.
 *
 * Loop thread only. */
#ifndef DAEMON_FLEET_FLEET_CATALOGUES_H
#define DAEMON_FLEET_FLEET_CATALOGUES_H

#include <jansson.h>

#include "daemon/fleet/fleet_state.h"

/* Replaces what the stacks of HELLO can compute by what is equal and was heard before. */
void fleet_catalogues_share(struct fleet *fleet, json_t *hello);

/* Adds CATALOGUE, if it is one, to SEEN, an array; false: it is there already, or none.
 */
bool fleet_catalogues_see(json_t *seen, json_t *catalogue);

#endif
