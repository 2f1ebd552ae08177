/* The fleet: the hosts of the configuration (this one, if it names none), an agent on
 * each, and what their hellos said: stacks, devices, catalogue.
 *
 * The happy path of a host: its launch command is started when the policy says so
 * (daemon/fleet/fleet_policy.h), the agent says hello, its catalogue joins the fleet's,
 * its devices go online in the runner.  One that is kept where needed is let go when it
 * has nothing to do; its devices stay known.
 *
 * What can go wrong: the command cannot be started, there is no hello in time, or the
 * agent goes away or no longer answers (the runs there end as lost; tried again after 1
 * s, 2 s, … 60 s), or is told to end (its runs end, or are cancelled and made again).  Or
 * its catalogue contradicts that of a host that is online (it stays out until that host
 * goes away, and says why).  Or it has a device that another host has
 * (daemon/fleet/fleet_claims.h: that device is not used there, and it says why).
 *
 * What is known of the fleet then is daemon/fleet/fleet_facts.h.  Loop thread only. */
#ifndef DAEMON_FLEET_FLEET_H
#define DAEMON_FLEET_FLEET_H

#include <stdint.h>

#include "daemon/fleet/fleet_facts.h"

/* Starts the agents that are wanted.  Everything in OPTIONS is borrowed for the fleet's
 * life.
 */
struct fleet *fleet_new(const struct fleet_options *options);

/* Starts hosts whose time has come, and lets go who is not needed; to be called about
 * once a second. */
void fleet_tick(struct fleet *fleet, int64_t now_monotonic_ms);

/* The same while the service stops: nothing is started, but runs whose agents are gone
 * are recorded as lost when their cause has been waited for long enough. */
void fleet_settle(struct fleet *fleet, int64_t now_monotonic_ms);

/* Ends the agents; CLOSED(arg) is called when they are gone, then fleet_free is due. */
void fleet_close(struct fleet *fleet, void (*closed)(void *arg), void *arg);
void fleet_free(struct fleet *fleet); /* NULL is fine */

#endif
