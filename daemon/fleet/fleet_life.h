/* The life of a host's agent: it is started, let go, and ends, as the policy says
 * (daemon/fleet/fleet_policy.h).  For fleet.c and fleet_engine.c; loop thread only. */
#ifndef DAEMON_FLEET_FLEET_LIFE_H
#define DAEMON_FLEET_FLEET_LIFE_H

#include "daemon/fleet/fleet_state.h"

/* Starts whose time has come, and lets go who is not needed. */
void fleet_life_tick(struct fleet *fleet, int64_t now_ms);

/* HOST said hello, and is online now. */
void fleet_life_online(struct fleet_host *host);

/* The link of HOST closed by itself because of CAUSE. */
void fleet_life_closed(struct fleet_host *host, const char *cause);

/* Its runs are recorded as lost; WHY says more of the cause, or is NULL. */
void fleet_life_settle(struct fleet_host *host, const char *why);

/* The same for all whose cause was waited for long enough. */
void fleet_life_settle_due(struct fleet *fleet, int64_t now_ms);

/* The service ends: so do all agents.  Returns how many are still there. */
int fleet_life_close(struct fleet *fleet);

#endif
