#include "daemon/fleet/fleet_engine.h"

#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/fleet/fleet_facts.h"
#include "daemon/fleet/fleet_life.h"
#include "daemon/link/link.h"
#include "daemon/process/wire.h"

/* The fleet is not there yet while it starts its first hosts. */
static struct fleet_host *find(const struct fleet *fleet, const char *name)
{
    for (int i = 0; fleet && i < fleet->host_count; i++) {
        if (strcmp(fleet->hosts[i].name, name) == 0) {
            return &fleet->hosts[i];
        }
    }
    return NULL;
}

void fleet_hold(struct fleet *fleet, const char *name, const char *cause, bool when_idle)
{
    struct fleet_host *host = find(fleet, name);

    if (host) {
        if (!host->held || strcmp(host->held_cause, cause) != 0) {
            log_info("host %s: held: %s", name, cause);
        }
        host->held = true;
        host->held_when_idle = when_idle;
        copy_text(host->held_cause, sizeof host->held_cause, cause);
        wire_clean(host->held_cause);
        if (when_idle && host->link) {
            link_hold(host->link, true);
        }
        fleet_look_at(host, clock_monotonic_ms());
    }
}

void fleet_unhold(struct fleet *fleet, const char *name)
{
    struct fleet_host *host = find(fleet, name);

    if (host && host->held) {
        log_info("host %s: no longer held", name);
        host->held = host->held_when_idle = false;
        host->held_cause[0] = '\0';
        fleet_look_at(host, clock_monotonic_ms());
    }
}

void fleet_note(struct fleet *fleet, const char *name, const char *text)
{
    struct fleet_host *host = find(fleet, name);

    if (host && host->link && !host->online) {
        copy_text(host->note, sizeof host->note, text ? text : "");
        wire_clean(host->note);
        fleet_look_at(host, clock_monotonic_ms());
    }
}

void fleet_explain(struct fleet *fleet, const char *name, const char *text)
{
    struct fleet_host *host = find(fleet, name);

    if (host && host->lost) {
        fleet_life_settle(host, text);
    }
}

void fleet_heard(struct fleet *fleet)
{
    for (int i = 0; fleet && i < fleet->host_count; i++) {
        json_decref(fleet->hosts[i].node);
        fleet->hosts[i].node = NULL;
    }
    if (fleet) {
        fleet_changed(fleet);
    }
}

bool fleet_is_up(const struct fleet *fleet, const char *name)
{
    const struct fleet_host *host = find(fleet, name);

    return host && (host->online || host->link || host->wanted_ms);
}

bool fleet_has_agent(const struct fleet *fleet, const char *name)
{
    const struct fleet_host *host = find(fleet, name);

    return host && (host->link || host->lost || host->leaving > 0);
}

bool fleet_is_starting(const struct fleet *fleet, const char *name)
{
    const struct fleet_host *host = find(fleet, name);

    return host && host->link && !host->online;
}
