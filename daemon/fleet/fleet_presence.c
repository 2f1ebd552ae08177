#include "daemon/fleet/fleet_presence.h"

#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/fleet/fleet_foreign.h"
#include "daemon/fleet/fleet_words.h"

static char *text_or_null(const char *text)
{
    return text && text[0] ? xstrdup(text) : NULL;
}

/* Asked once for what the engine last heard. */
static json_t *node_of(struct fleet_host *host)
{
    const struct fleet_engine *engine = &host->fleet->options.engine;

    if (!host->node && engine->node) {
        host->node = engine->node(engine->arg, host->name);
    }
    return json_incref(host->node);
}

static void take_hosts(struct fleet *fleet, struct presence *p)
{
    p->host_count = fleet->host_count;
    p->hosts = xcalloc((size_t)p->host_count + 1, sizeof *p->hosts);
    for (int i = 0; i < p->host_count; i++) {
        struct fleet_host *host = &fleet->hosts[i];

        p->hosts[i] = (struct presence_host){ .name = host->name,
                                              .state = fleet_state_name(host->state),
                                              .since_ms = host->state_ms,
                                              .online = host->online,
                                              .cause = text_or_null(host->shown),
                                              .node = node_of(host),
                                              .hello = json_incref(host->hello) };
    }
}

/* Those of a host are next to each other. */
static void take_devices(const struct fleet *fleet, struct presence *p)
{
    struct presence_host *host = p->hosts;

    p->device_count = fleet->device_count;
    p->devices = xcalloc((size_t)p->device_count + 1, sizeof *p->devices);
    for (int i = 0; i < p->device_count; i++) {
        const struct device_stack *device = &fleet->devices[i];
        bool there = device_is_there(device);

        if (i == 0 || device->host != device[-1].host) { /* borrowed from the fleet's */
            for (host = p->hosts; host->name != device->host;) {
                host++;
            }
        }
        host->there += device->is_default && there;
        p->devices[i] = (struct presence_device){
            .id = device->id,
            .stack = device->stack,
            .host = host,
            .is_default = device->is_default,
            .online = device->online,
            .there = there,
            .cause = strcmp(host->state, "online") == 0 ? NULL
                     : host->cause                      ? host->cause
                                                        : "",

        };
    }
}

static void take_foreign(const struct fleet *fleet, struct presence *p)
{
    p->foreign_count = fleet->foreign_count;
    p->foreign = xcalloc((size_t)p->foreign_count + 1, sizeof *p->foreign);
    for (int i = 0; i < p->foreign_count; i++) {
        const struct fleet_foreign *f = fleet->foreign[i];

        p->foreign[i] = (struct presence_foreign){
            .device = xstrdup(f->device),
            .processes = json_incref(f->processes),
            .cause = text_or_null(f->cause),
            .since_ms = f->since_ms,
            .waits = fleet_foreign_waits(fleet, f->device),
        };
    }
}

struct presence *fleet_presence(struct fleet *fleet)
{
    bool waits = fleet->options.config->foreign_waits; /* a reload may change it */

    if (!fleet->presence || waits != fleet->presence_waits) {
        fleet_changed(fleet);
        fleet->presence = xcalloc(1, sizeof *fleet->presence);
        fleet->presence_waits = waits;
        take_hosts(fleet, fleet->presence);
        take_devices(fleet, fleet->presence);
        take_foreign(fleet, fleet->presence);
        presence_begin(fleet->presence);
    }
    return presence_ref(fleet->presence);
}
