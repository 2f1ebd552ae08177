#include "daemon/fleet/fleet_record.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/changes.h"
#include "daemon/evidence/screening.h"
#include "daemon/fleet/fleet_claims.h"
#include "db/fleet.h"
#include "db/screening/screenings.h"
#include "db/views/changes.h"

static const int64_t DAY_MS = INT64_C(24) * 3600 * 1000;

struct seen {
    struct host host;
    struct seen_device {
        struct device device; /* attributes_json is owned */
        char *facts;          /* as of screening_facts; owned */
    } * devices;
    int count;
    int64_t returned_ms; /* as in struct screening_present */
    char *facts;         /* as of changes_facts; owned */
    struct fleet_host *of;
};

/* Owned by whoever calls. */
static char *text_of(json_t *facts)
{
    char *text = json_dumps(facts, JSON_COMPACT | JSON_SORT_KEYS);

    json_decref(facts);
    return text;
}

static void add_devices(struct seen *seen, const struct fleet_host *host,
                        const json_t *stack)
{
    json_t *probe = json_object_get(stack, "probe");
    const char *backend = json_string_value(json_object_get(probe, "backend"));
    size_t i;
    json_t *object;

    json_array_foreach(json_object_get(probe, "devices"), i, object)
    {
        const char *id = json_string_value(json_object_get(object, "id"));
        const char *model = json_string_value(json_object_get(object, "model"));
        json_t *attributes = json_object_get(object, "attributes");
        struct seen_device *of;
        struct device *d;

        if (!id || !backend || fleet_claims_host(host->fleet, id) != host) {
            continue;
        }
        seen->devices = xgrow(seen->devices, seen->count, sizeof *seen->devices);
        of = &seen->devices[seen->count++];
        of->facts = text_of(screening_facts(host->hello, id));
        d = &of->device;
        *d = (struct device){ .last_seen_ms = seen->host.last_seen_ms };
        copy_text(d->id, sizeof d->id, id);
        copy_text(d->host, sizeof d->host, seen->host.name);
        copy_text(d->backend, sizeof d->backend, backend);
        copy_text(d->model, sizeof d->model, model ? model : "");
        d->attributes_json = json_is_object(attributes)
                                 ? json_dumps(attributes, JSON_COMPACT | JSON_SORT_KEYS)
                                 : xstrdup("{}");
    }
}

static enum err_code store_seen(struct tx *tx, void *arg, struct err *err)
{
    const struct seen *seen = arg;
    enum err_code code = hosts_seen(tx, &seen->host, err);

    for (int i = 0; i < seen->count && code == ERR_OK; i++) {
        const struct screening_seen device = { &seen->devices[i].device,
                                               seen->devices[i].facts,
                                               seen->returned_ms };

        code = screenings_seen(tx, &device, err);
    }
    return code == ERR_OK ? changes_seen(tx, seen->host.name, seen->host.last_seen_ms,
                                         seen->facts, err)
                          : code;
}

static void seen_stored(void *arg, const struct err *err)
{
    struct seen *seen = arg;

    if (err->code != ERR_OK) {
        log_error("store: host %s: %s; trying again", seen->host.name, err->message);
    } else {
        seen->of->recorded = true;
    }
    seen->of->recording--;
    for (int i = 0; i < seen->count; i++) {
        free((char *)seen->devices[i].device.attributes_json);
        free(seen->devices[i].facts);
    }
    free(seen->devices);
    free(seen->facts);
    free(seen);
}

void fleet_record(struct fleet_host *host)
{
    struct seen *seen = xcalloc(1, sizeof *seen);
    size_t i;
    json_t *stack;

    seen->facts = text_of(changes_facts(host->hello));
    seen->returned_ms =
        (int64_t)host->fleet->options.config->screening.returned_days * DAY_MS;
    host->recording++;
    seen->of = host;
    seen->host.last_seen_ms = clock_wall_ms();
    copy_text(seen->host.name, sizeof seen->host.name, host->name);
    copy_text(seen->host.boot_id, sizeof seen->host.boot_id,
              in_text_or_empty(host->hello, "boot_id"));
    json_array_foreach(json_object_get(host->hello, "stacks"), i, stack)
    {
        add_devices(seen, host, stack);
    }
    store_write(host->fleet->options.store, store_seen, seen, seen_stored);
}
