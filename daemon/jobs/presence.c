#include "daemon/jobs/presence.h"

#include <stdlib.h>

#include "daemon/base/mem.h"

void presence_begin(struct presence *p)
{
    for (int i = 0; i < p->host_count; i++) {
        lookup_put(&p->host_of, p->hosts[i].name, &p->hosts[i]);
    }
    /* From the last to the first, so that each device's are in order. */
    for (int i = p->device_count - 1; i >= 0; i--) {
        struct presence_device *device = &p->devices[i];

        device->next = lookup_get(&p->first_of, device->id);
        lookup_put(&p->first_of, device->id, device);
    }
    for (int i = 0; i < p->foreign_count; i++) {
        lookup_put(&p->foreign_of, p->foreign[i].device, &p->foreign[i]);
    }
    p->references = 1;
}

struct presence *presence_ref(struct presence *p)
{
    p->references++;
    return p;
}

void presence_unref(struct presence *p)
{
    if (!p || --p->references > 0) {
        return;
    }
    lookup_release(&p->host_of);
    lookup_release(&p->first_of);
    lookup_release(&p->foreign_of);
    for (int i = 0; i < p->host_count; i++) {
        free(p->hosts[i].cause);
        json_decref(p->hosts[i].node);
        json_decref(p->hosts[i].hello);
    }
    for (int i = 0; i < p->foreign_count; i++) {
        free(p->foreign[i].device);
        json_decref(p->foreign[i].processes);
        free(p->foreign[i].cause);
    }
    free(p->hosts);
    free(p->devices);
    free(p->foreign);
    free(p);
}

const struct presence_host *presence_host(const struct presence *p, const char *name)
{
    return lookup_get(&p->host_of, name);
}

const struct presence_device *presence_first(const struct presence *p, const char *device)
{
    return lookup_get(&p->first_of, device);
}

const struct presence_device *presence_default(const struct presence *p,
                                               const char *device)
{
    const struct presence_device *found = presence_first(p, device);

    while (found && !found->is_default) {
        found = found->next;
    }
    return found;
}

const struct presence_foreign *presence_foreign(const struct presence *p,
                                                const char *device)
{
    return lookup_get(&p->foreign_of, device);
}
