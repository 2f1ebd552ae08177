#include "daemon/fleet/fleet_store.h"

#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "db/fleet.h"

struct seen {
    struct host host;
    struct device *devices; /* attributes_json is owned */
    int count;
    bool *stored;
};

static void add_devices(struct seen *seen, const json_t *stack)
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
        struct device *d;

        if (!id || !backend) {
            continue;
        }
        seen->devices =
            xrealloc(seen->devices, (size_t)(seen->count + 1) * sizeof *seen->devices);
        d = &seen->devices[seen->count++];
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
        code = devices_seen(tx, &seen->devices[i], err);
    }
    return code;
}

static void seen_stored(void *arg, const struct err *err)
{
    struct seen *seen = arg;

    if (err->code != ERR_OK) {
        log_error("store: host %s: %s", seen->host.name, err->message);
    } else {
        *seen->stored = true;
    }
    for (int i = 0; i < seen->count; i++) {
        free((char *)seen->devices[i].attributes_json);
    }
    free(seen->devices);
    free(seen);
}

void fleet_store_hello(struct store *store, const char *host, const json_t *hello,
                       bool *ret_stored)
{
    struct seen *seen = xcalloc(1, sizeof *seen);
    const char *boot = json_string_value(json_object_get(hello, "boot_id"));
    size_t i;
    json_t *stack;

    seen->stored = ret_stored;
    seen->host.last_seen_ms = clock_wall_ms();
    copy_text(seen->host.name, sizeof seen->host.name, host);
    copy_text(seen->host.boot_id, sizeof seen->host.boot_id, boot ? boot : "");
    json_array_foreach(json_object_get(hello, "stacks"), i, stack)
    {
        add_devices(seen, stack);
    }
    store_write(store, store_seen, seen, seen_stored);
}
