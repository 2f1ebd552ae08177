#include "daemon/fleet/fleet_foreign.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/fleet/fleet_claims.h"

static bool is_used(const struct fleet_foreign *f)
{
    return f && json_array_size(f->processes) > 0;
}

/* Those of another PID namespace, which have no name here, may be our own while a run is
 * made. */
static bool are_strangers(const json_t *processes)
{
    size_t i;
    json_t *process;

    json_array_foreach(processes, i, process)
    {
        const char *text = json_string_value(process);
        size_t length = json_string_length(process);

        if (length > 2 && strcmp(text + length - 2, " ?") == 0) {
            return true;
        }
    }
    return false;
}

static void tell(const struct fleet *fleet, const struct fleet_foreign *f, bool was_used)
{
    char *list = json_dumps(f->processes, JSON_ENCODE_ANY);

    if (is_used(f) && !was_used) {
        log_warning("device %s is used by others: %s; runs %s", f->device, list,
                    fleet->options.config->foreign_waits ? "wait"
                                                         : "are made and marked");
    } else if (was_used && f->processes) {
        log_info("device %s is no longer used by others", f->device);
    }
    free(list);
}

/* Which it says now and then. */
static bool is_told(const struct fleet_foreign *f, const json_t *processes,
                    const char *cause)
{
    bool same = json_is_array(processes) ? json_equal(f->processes, processes)
                                         : f->processes == NULL;

    return same && strncmp(f->cause, cause, sizeof f->cause - 1) == 0;
}

static void take(struct fleet *fleet, const struct fleet_host *host, const json_t *device)
{
    const char *id = in_text_or_empty(device, "id");
    json_t *processes = json_object_get(device, "foreign");
    struct fleet_foreign *f = lookup_get(&fleet->foreign_of, id);
    const char *cause = in_text_or_empty(device, "cause");
    bool was_used = is_used(f);

    if (fleet_claims_host(fleet, id) != host ||
        (are_strangers(processes) && runner_uses(fleet->options.runner, id))) {
        return;
    }
    if (!f) {
        f = xcalloc(1, sizeof *f);
        f->since_ms = clock_wall_ms();
        copy_text(f->device, sizeof f->device, id);
        fleet->foreign =
            xgrow(fleet->foreign, fleet->foreign_count, sizeof(struct fleet_foreign *));
        fleet->foreign[fleet->foreign_count++] = f;
        lookup_put(&fleet->foreign_of, f->device, f);
    } else if (is_told(f, processes, cause)) {
        return;
    }
    fleet_changed(fleet);
    if (was_used != (json_array_size(processes) > 0)) {
        f->since_ms = clock_wall_ms();
    }
    json_decref(f->processes);
    f->processes = json_is_array(processes) ? json_incref(processes) : NULL;
    copy_text(f->cause, sizeof f->cause, cause);
    tell(fleet, f, was_used);
}

void fleet_foreign_take(struct fleet *fleet, const struct fleet_host *host,
                        const json_t *devices)
{
    size_t i;
    json_t *device;

    json_array_foreach(devices, i, device)
    {
        take(fleet, host, device);
    }
}

void fleet_foreign_forget(struct fleet *fleet, const struct fleet_host *host)
{
    for (int i = fleet->foreign_count; i-- > 0;) {
        struct fleet_foreign *f = fleet->foreign[i];

        if (fleet_claims_host(fleet, f->device) == host) {
            fleet_changed(fleet);
            fleet->foreign[i] = fleet->foreign[--fleet->foreign_count];
            lookup_remove(&fleet->foreign_of, f->device);
            json_decref(f->processes);
            free(f);
        }
    }
}

/* Its agent will tell, and has not yet. */
static bool is_awaited(const struct fleet *fleet, const char *device)
{
    const struct fleet_host *host = fleet_claims_host(fleet, device);
    size_t i;
    json_t *id;

    json_array_foreach(host ? json_object_get(host->hello, "processes") : NULL, i, id)
    {
        if (json_is_string(id) && strcmp(json_string_value(id), device) == 0) {
            return true;
        }
    }
    return false;
}

bool fleet_foreign_waits(const struct fleet *fleet, const char *device)
{
    const struct fleet_foreign *f = lookup_get(&fleet->foreign_of, device);

    return fleet->options.config->foreign_waits &&
           (f ? is_used(f) : is_awaited(fleet, device));
}

json_t *fleet_foreign_json(const struct fleet *fleet)
{
    json_t *list = json_array();

    for (int i = 0; i < fleet->foreign_count; i++) {
        const struct fleet_foreign *f = fleet->foreign[i];
        char since[CLOCK_RFC3339_SIZE];

        clock_rfc3339(f->since_ms, since);
        json_array_append_new(
            list, json_pack("{s:s,s:O?,s:s?,s:s,s:b}", "device", f->device, "processes",
                            f->processes, "cause", f->cause[0] ? f->cause : NULL, "since",
                            since, "waits", fleet_foreign_waits(fleet, f->device)));
    }
    return list;
}

void fleet_foreign_release(struct fleet *fleet)
{
    for (int i = 0; i < fleet->foreign_count; i++) {
        json_decref(fleet->foreign[i]->processes);
        free(fleet->foreign[i]);
    }
    free(fleet->foreign);
    lookup_release(&fleet->foreign_of);
}
