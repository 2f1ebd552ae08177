#include "daemon/fleet/fleet_claims.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/json_in.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"

const struct fleet_host *fleet_claims_host(const struct fleet *fleet, const char *device)
{
    const struct fleet_claim *claim = lookup_get(&fleet->claim_of, device);

    return claim ? claim->host : NULL;
}

/* Whether DEVICE is the CPU of HOST, by the name that its agent gives it. */
static bool is_own_cpu(const struct fleet_host *host, const char *device)
{
    static const char prefix[] = "cpu:";
    const char *name = in_text_or_empty(host->hello, "host");

    return strncmp(device, prefix, sizeof prefix - 1) == 0 &&
           strcmp(device + sizeof prefix - 1, name) == 0;
}

/* Calls VISIT for each device of HOST's hello, as often as it has stacks, until it
 * returns false. */
static void each_device(const struct fleet_host *host,
                        bool (*visit)(void *arg, const char *device), void *arg)
{
    size_t s;
    size_t d;
    json_t *stack;
    json_t *device;

    json_array_foreach(json_object_get(host->hello, "stacks"), s, stack)
    {
        json_t *probe = json_object_get(stack, "probe");

        json_array_foreach(json_object_get(probe, "devices"), d, device)
        {
            if (!visit(arg, in_text_or_empty(device, "id"))) {
                return;
            }
        }
    }
}

struct asked {
    struct fleet *fleet;
    const struct fleet_host *host;
    const char *device; /* is looked for, */
    bool found;         /* and was found */
    bool shared;        /* with another host */
    char *refusal;
};

static bool is_it(void *arg, const char *device)
{
    struct asked *asked = arg;

    asked->found = strcmp(device, asked->device) == 0;
    return !asked->found;
}

static bool has(const struct fleet_host *host, const char *device)
{
    struct asked asked = { .device = device };

    each_device(host, is_it, &asked);
    return asked.found;
}

static void add(struct fleet *fleet, const char *device, const struct fleet_host *host)
{
    struct fleet_claim *claim = xcalloc(1, sizeof *claim);

    claim->host = host;
    copy_text(claim->device, sizeof claim->device, device);
    fleet->claims =
        xgrow(fleet->claims, fleet->claim_count, sizeof(struct fleet_claim *));
    fleet->claims[fleet->claim_count++] = claim;
    lookup_put(&fleet->claim_of, claim->device, claim);
}

static bool take(void *arg, const char *device)
{
    struct asked *asked = arg;
    struct fleet *fleet = asked->fleet;
    struct fleet_claim *claim = lookup_get(&fleet->claim_of, device);

    if (!claim) {
        add(fleet, device, asked->host);
        return true;
    }
    claim->shared = claim->shared || claim->host != asked->host;
    asked->shared = asked->shared || claim->shared;
    if (is_own_cpu(asked->host, device) && !is_own_cpu(claim->host, device)) {
        log_warning("device %s is of host %s, and not of host %s", device,
                    asked->host->name, claim->host->name);
        claim->host = asked->host;
        claim->contested = true;
    } else if (claim->host != asked->host) {
        claim->contested = claim->contested || claim->host->online;
        if (!claim->contested) {
            log_info("device %s was moved from host %s to host %s", device,
                     claim->host->name, asked->host->name);
            claim->host = asked->host;
        }
    }
    return true;
}

bool fleet_claims_take(struct fleet *fleet, const struct fleet_host *host)
{
    struct asked asked = { .fleet = fleet, .host = host };

    for (int i = fleet->claim_count; i-- > 0;) {
        struct fleet_claim *claim = fleet->claims[i];

        if (claim->host == host && !has(host, claim->device)) {
            asked.shared = asked.shared || claim->shared;
            fleet->claims[i] = fleet->claims[--fleet->claim_count];
            lookup_remove(&fleet->claim_of, claim->device);
            free(claim);
        }
    }
    each_device(host, take, &asked);
    return asked.shared;
}

void fleet_claims_release(struct fleet *fleet)
{
    for (int i = 0; i < fleet->claim_count; i++) {
        free(fleet->claims[i]);
    }
    free(fleet->claims);
    lookup_release(&fleet->claim_of);
}

static bool refuse(void *arg, const char *device)
{
    struct asked *asked = arg;
    const struct fleet_host *other = fleet_claims_host(asked->fleet, device);

    if (other != asked->host) {
        asked->refusal = xasprintf(
            "it says that it has device %s, which host %s has: it is not used there",
            device, other ? other->name : "?");
    }
    return !asked->refusal;
}

char *fleet_claims_refused(const struct fleet *fleet, const struct fleet_host *host)
{
    struct asked asked = { .fleet = (struct fleet *)fleet, .host = host };

    each_device(host, refuse, &asked);
    return asked.refusal;
}
