/* What a fleet has for an engine: the part of the service that knows a site's scheduler,
 * and why a host cannot be had, is waited for, or went away.
 *
 * Names are those of the configuration; others are ignored.  Loop thread only. */
#ifndef DAEMON_FLEET_FLEET_ENGINE_H
#define DAEMON_FLEET_FLEET_ENGINE_H

#include <stdbool.h>

#include "daemon/fleet/fleet_hooks.h"

struct fleet;

/* HOST is not started any more because of CAUSE ("slurm: drained: flaky ECC"), which is
 * shown; one that is being started is let go.  WHEN_IDLE: so is one that is online, after
 * the runs that it has. Again: another cause. */
void fleet_hold(struct fleet *fleet, const char *host, const char *cause, bool when_idle);
void fleet_unhold(struct fleet *fleet, const char *host);

/* HOST waits for TEXT while it is started ("slurm: job 17 is pending: Resources"); NULL:
 * not any more.  Forgotten when it is online or its agent ended. */
void fleet_note(struct fleet *fleet, const char *host, const char *text);

/* Why the agent of HOST ended ("slurm: node failure of gpu1, job 17"), as promised by
 * `ended`; NULL: nothing more is known. */
void fleet_explain(struct fleet *fleet, const char *host, const char *text);

/* What `node` says may be other than before. */
void fleet_heard(struct fleet *fleet);

/* Whether HOST is online, is being started, or wants to be: what an engine asks its
 * scheduler about. */
bool fleet_is_up(const struct fleet *fleet, const char *host);
bool fleet_is_starting(const struct fleet *fleet, const char *host);

/* Whether HOST has an agent, or one that starts or ends. */
bool fleet_has_agent(const struct fleet *fleet, const char *host);

#endif
