#include "daemon/fleet/fleet_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/fleet/fleet_claims.h"

enum { TROUBLE_SIZE = 320, MISSING_NAMED = 3 };

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

/* Those that are online first. */
void fleet_list_devices(struct fleet *fleet)
{
    fleet->device_count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int h = 0; h < fleet->host_count; h++) {
            if (fleet->hosts[h].online == (pass == 0)) {
                add_devices(fleet, &fleet->hosts[h]);
            }
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

/* The first stack of HOST whose worker did not say what it is; false: there is none. */
static bool name_unusable(const struct fleet_host *host, char ret_text[TROUBLE_SIZE])
{
    const char *first = NULL, *why = "";
    int count = 0;
    size_t i;
    json_t *stack;

    json_array_foreach(json_object_get(host->hello, "stacks"), i, stack)
    {
        const char *cause = json_string_value(json_object_get(stack, "cause"));

        /* Those without a worker depend on others. */
        if (cause && json_is_string(json_object_get(stack, "worker")) && count++ == 0) {
            first = in_text_or_empty(stack, "name");
            why = cause;
        }
    }
    if (count > 1) {
        snprintf(ret_text, TROUBLE_SIZE,
                 "%d stacks are not usable, and are asked again: %.63s: %.200s", count,
                 first, why);
    } else if (count == 1) {
        snprintf(ret_text, TROUBLE_SIZE,
                 "stack %.63s is not usable, and is asked again: %.200s", first, why);
    }
    return count > 0;
}

/* What is wrong with HOST; "": nothing. */
static const char *trouble(const struct fleet_host *host, char ret_text[TROUBLE_SIZE])
{
    char since[CLOCK_RFC3339_SIZE];

    if (!host->online) {
        return host->cause;
    }
    if (host->silent_ms) {
        clock_rfc3339(host->silent_ms, since);
        snprintf(ret_text, TROUBLE_SIZE, "the agent has not answered since %s", since);
        return ret_text;
    }
    if (host->noisy_ms && !host->refusal[0]) {
        clock_rfc3339(host->noisy_ms, since);
        snprintf(ret_text, TROUBLE_SIZE,
                 "more on its standard error than is logged, since %s", since);
        return ret_text;
    }
    return !host->refusal[0] && name_unusable(host, ret_text) ? ret_text : host->refusal;
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

json_t *fleet_hosts(const struct fleet *fleet)
{
    json_t *list = json_array();

    for (int h = 0; h < fleet->host_count; h++) {
        const struct fleet_host *host = &fleet->hosts[h];
        char text[TROUBLE_SIZE];
        const char *cause = trouble(host, text);

        json_array_append_new(list,
                              json_pack("{s:s, s:b, s:s?}", "name", host->name, "online",
                                        host->online, "cause", cause[0] ? cause : NULL));
    }
    return list;
}

char *fleet_missing(const struct fleet *fleet)
{
    struct buf list = BUF_INIT;
    int missing = 0;
    char *text;

    for (int h = 0; h < fleet->host_count; h++) {
        char cause[TROUBLE_SIZE];
        const char *why = trouble(&fleet->hosts[h], cause);

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

    char text[TROUBLE_SIZE];
    const char *cause;

    for (int i = 0; i < fleet->device_count; i++) {
        if (fleet->devices[i].online && !host_of(fleet, &fleet->devices[i])->silent_ms) {
            return NULL;
        }
    }
    if (fleet->host_count == 0) {
        return "the service only reads";
    }
    cause = trouble(&fleet->hosts[0], text);
    snprintf(f->not_ready, sizeof f->not_ready, "no device is online: host %s: %s",
             fleet->hosts[0].name, cause[0] ? cause : "its stacks have no device");
    return f->not_ready;
}
