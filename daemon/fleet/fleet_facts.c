#include "daemon/fleet/fleet_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/fleet/fleet_claims.h"
#include "daemon/fleet/fleet_words.h"
#include "daemon/process/wire.h"

enum { MISSING_NAMED = 3 };

/* What is asked of its devices will be done: it is started for that, or on its way. */
static bool is_released(const struct fleet_host *host)
{
    return !host->online && (host->needed || fleet_host_may_queue(host)) && host->hello &&
           !host->held && !host->failed && !host->refused;
}

/* Those of HOST, whose devices nobody else has, begin with FIRST. */
static void add_device(struct fleet *fleet, const struct fleet_host *host, int first,
                       const json_t *stack, const json_t *device)
{
    const char *id = in_text_or_empty(device, "id");
    const char *name = in_text_or_empty(stack, "name");
    bool known = false;

    if (fleet_claims_host(fleet, id) != host) {
        return;
    }
    for (int i = first; i < fleet->device_count; i++) {
        const struct device_stack *other = &fleet->devices[i];

        if (strcmp(other->id, id) == 0) {
            if (strcmp(other->stack, name) == 0) {
                return;
            }
            known = true;
        }
    }
    fleet->devices = xgrow(fleet->devices, fleet->device_count, sizeof *fleet->devices);
    fleet->devices[fleet->device_count++] = (struct device_stack){
        .id = id,
        .backend = in_text_or_empty(json_object_get(stack, "probe"), "backend"),
        .stack = name,
        .host = host->name,
        .is_default = !known,
        .online = host->online,
        .released = is_released(host),
        .state = fleet_state_name(host->state),
        .cause = host->shown,
        .catalogue = json_object_get(stack, "catalogue"),
    };
}

static void add_devices(struct fleet *fleet, const struct fleet_host *host)
{
    int first = fleet->device_count;
    size_t s;
    size_t d;
    json_t *stack;
    json_t *device;

    json_array_foreach(json_object_get(host->hello, "stacks"), s, stack)
    {
        json_t *probe = json_object_get(stack, "probe");

        json_array_foreach(json_object_get(probe, "devices"), d, device)
        {
            add_device(fleet, host, first, stack, device);
        }
    }
}

/* Those that are online first, or can be. */
void fleet_list_devices(struct fleet *fleet)
{
    fleet_changed(fleet);
    fleet->device_count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int h = 0; h < fleet->host_count; h++) {
            const struct fleet_host *host = &fleet->hosts[h];

            if ((host->online || is_released(host)) == (pass == 0)) {
                add_devices(fleet, &fleet->hosts[h]);
            }
        }
    }
}

void fleet_look_at(struct fleet_host *host, int64_t now_ms)
{
    enum fleet_state state = fleet_host_state(host, now_ms);
    bool released = is_released(host);
    bool same = state == host->state && released == host->released;
    bool is_new = state != host->state || !host->state_ms;
    char text[FLEET_WORDS_SIZE], shown[FLEET_WORDS_SIZE];

    if (is_new) {
        host->state = state;
        host->state_ms = clock_wall_ms();
    }
    host->released = released;
    copy_text(shown, sizeof shown, fleet_host_cause(host, text));
    wire_clean(shown); /* it may be cut */
    if (is_new || !same || strcmp(host->shown, shown) != 0) {
        copy_text(host->shown, sizeof host->shown, shown);
        fleet_changed(host->fleet);
    }
    if (same) {
        return;
    }
    for (int i = 0; i < host->fleet->device_count; i++) {
        struct device_stack *device = &host->fleet->devices[i];

        if (device->host == host->name) { /* borrowed from it */
            device->state = fleet_state_name(state);
            device->released = released;
        }
    }
}

const struct catalogue *fleet_catalogue(const struct fleet *fleet)
{
    return fleet->catalogue;
}

bool fleet_recorded(const struct fleet *fleet)
{
    for (int i = 0; i < fleet->host_count; i++) {
        if (fleet->hosts[i].online && !fleet->hosts[i].recorded) {
            return false;
        }
    }
    return true;
}

bool fleet_complete(const struct fleet *fleet)
{
    for (int i = 0; i < fleet->host_count; i++) {
        if (!fleet->hosts[i].hello) {
            return false;
        }
    }
    return true;
}

bool fleet_settled(const struct fleet *fleet)
{
    int heard = 0;

    for (int i = 0; i < fleet->host_count; i++) {
        heard += fleet->hosts[i].hello != NULL;
        if (!fleet->hosts[i].hello && !fleet->hosts[i].held) {
            return false;
        }
    }
    return heard > 0;
}

int fleet_devices(const struct fleet *fleet, const struct device_stack **ret_devices)
{
    *ret_devices = fleet->devices;
    return fleet->device_count;
}

/* The ids of a probe's devices. */
static json_t *device_ids(const json_t *probe)
{
    json_t *ids = json_array();
    size_t i;
    json_t *device;

    json_array_foreach(json_object_get(probe, "devices"), i, device)
    {
        json_array_append_new(ids, json_string(in_text_or_empty(device, "id")));
    }
    return ids;
}

/* A probe's problems as lines. */
static json_t *problem_texts(const json_t *probe)
{
    json_t *texts = json_array();
    const char *name;
    json_t *text;

    json_object_foreach(json_object_get(probe, "problems"), name, text)
    {
        json_array_append_new(
            texts, json_sprintf("%s: %s", name,
                                json_is_string(text) ? json_string_value(text) : "?"));
    }
    return texts;
}

static json_t *stack_json(const struct fleet_host *host, json_t *stack)
{
    json_t *probe = json_object_get(stack, "probe");
    json_t *cause = json_object_get(stack, "cause");

    return json_pack(
        "{s:O?, s:s, s:O?, s:O?, s:O?, s:O?, s:O?, s:O?, s:o, s:O?, s:O?, s:o, s:b, "
        "s:O?}",
        "name", json_object_get(stack, "name"), "host", host->name, "worker",
        json_object_get(stack, "worker"), "library_path",
        json_object_get(stack, "library_path"), "backend",
        json_object_get(probe, "backend"), "worker_build",
        json_object_get(probe, "worker_build"), "versions",
        json_object_get(probe, "versions"), "problems",
        json_object_get(probe, "problems"), "problem_texts", problem_texts(probe),
        "unmeasured", json_object_get(probe, "unmeasured"), "devices",
        json_object_get(probe, "devices"), "device_ids", device_ids(probe), "online",
        host->online, "cause",
        json_is_string(cause) ? cause : json_object_get(probe, "cause"));
}

json_t *fleet_stacks(const struct fleet *fleet)
{
    json_t *list = json_array();

    for (int h = 0; h < fleet->host_count; h++) {
        const struct fleet_host *host = &fleet->hosts[h];
        size_t i;
        json_t *stack;

        json_array_foreach(json_object_get(host->hello, "stacks"), i, stack)
        {
            json_array_append_new(list, stack_json(host, stack));
        }
    }
    return list;
}

json_t *fleet_stack_names(const struct fleet *fleet)
{
    json_t *hosts = json_object();

    for (int h = 0; h < fleet->host_count; h++) {
        const struct fleet_host *host = &fleet->hosts[h];
        json_t *names = host->hello ? json_array() : json_null();
        size_t i;
        json_t *stack;

        json_array_foreach(json_object_get(host->hello, "stacks"), i, stack)
        {
            json_array_append(names, json_object_get(stack, "name"));
        }
        json_object_set_new(hosts, host->name, names);
    }
    return hosts;
}

int fleet_count_hosts(const struct fleet *fleet, int *ret_online, int *ret_waiting)
{
    *ret_online = *ret_waiting = 0;
    for (int h = 0; h < fleet->host_count; h++) {
        *ret_online += fleet->hosts[h].online;
        *ret_waiting += fleet->hosts[h].state == FLEET_STATE_WAITING;
    }
    return fleet->host_count;
}

char *fleet_missing(const struct fleet *fleet)
{
    struct buf list = BUF_INIT;
    int missing = 0;
    char *text;

    for (int h = 0; h < fleet->host_count; h++) {
        char cause[FLEET_WORDS_SIZE];
        const char *why = fleet_host_trouble(&fleet->hosts[h], cause);

        if (why[0] && ++missing <= MISSING_NAMED) {
            buf_printf(&list, "%s%s: %s", missing > 1 ? "; " : "", fleet->hosts[h].name,
                       why);
        }
    }
    text = missing ? xasprintf("%d of %d hosts: %s%s", missing, fleet->host_count,
                               list.data, missing > MISSING_NAMED ? "; …" : "")
                   : NULL;
    buf_release(&list);
    return text;
}

static const struct fleet_host *host_of(const struct fleet *fleet,
                                        const struct device_stack *device)
{
    const struct fleet_host *host = fleet->hosts;

    while (host->name != device->host) { /* borrowed from it */
        host++;
    }
    return host;
}

const char *fleet_not_ready(const struct fleet *fleet)
{
    struct fleet *f = (struct fleet *)fleet;

    char text[FLEET_WORDS_SIZE];
    const char *cause;

    for (int i = 0; i < fleet->device_count; i++) {
        const struct device_stack *device = &fleet->devices[i];

        if (device->released || (device->online && !host_of(fleet, device)->silent_ms)) {
            return NULL;
        }
    }
    if (fleet->host_count == 0) {
        return "the service only reads";
    }
    cause = fleet_host_cause(&fleet->hosts[0], text);
    snprintf(f->not_ready, sizeof f->not_ready, "no device is online: host %s: %s",
             fleet->hosts[0].name, cause[0] ? cause : "its stacks have no device");
    return f->not_ready;
}
