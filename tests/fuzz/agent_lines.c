/* The lines that an agent says: its hello, and what becomes of it in the fleet, then the
 * events of the runs R1 and R2. */
#include <string.h>

#include "daemon/evidence/screening.h"
#include "daemon/fleet/fleet_facts.h"
#include "daemon/link/link_wire.h"
#include "daemon/process/wire.h"
#include "tests/fuzz/fuzz.h"

static void on_started(void *arg, const char *run, int64_t pid, int64_t process_start)
{
    (void)arg;
    FUZZ_CHECK(run && pid + process_start != INT64_MIN);
}

static void on_event(void *arg, const char *run, const json_t *event)
{
    (void)arg;
    FUZZ_CHECK(run && json_is_object(event));
}

static void on_text(void *arg, const char *run, const char *cause)
{
    (void)arg;
    FUZZ_CHECK(run && cause);
}

static void on_exited(void *arg, const char *run, const struct run_exit *exit)
{
    (void)arg;
    FUZZ_CHECK(run && exit->log && strlen(exit->log) <= exit->log_length);
    FUZZ_CHECK(exit->exit_code >= -1 && exit->signal >= 0 && exit->wall_ms >= 0);
}

static const struct link_events events = {
    .started = on_started,
    .worker_event = on_event,
    .iterations = on_event,
    .garbage = on_text,
    .exited = on_exited,
    .refused = on_text,
};

/* As fleet.c takes it in, without the runner. */
static void take_hello(json_t *hello)
{
    struct fleet_host host = { .name = (char *)"h", .online = true, .hello = hello };
    struct fleet fleet = { .hosts = &host, .host_count = 1 };
    const struct device_stack *devices;
    struct err err;
    json_t *stack;
    size_t i;

    fleet.catalogue = catalogue_new();
    json_array_foreach(json_object_get(hello, "stacks"), i, stack)
    {
        const json_t *workloads = json_object_get(stack, "catalogue");

        if (json_is_array(workloads)) {
            catalogue_add(fleet.catalogue, workloads, &err);
        }
    }
    fleet_list_devices(&fleet);
    for (int d = 0; d < fleet_devices(&fleet, &devices); d++) {
        json_t *facts = screening_facts(hello, devices[d].id);

        FUZZ_CHECK(devices[d].id && devices[d].backend && devices[d].stack);
        FUZZ_CHECK(json_is_object(facts));
        json_decref(facts);
    }
    json_decref(fleet_stacks(&fleet));
    fleet_not_ready(&fleet);
    free(fleet.devices);
    catalogue_free(fleet.catalogue);
}

static int take_line(void *arg, const char *text, size_t length)
{
    struct link_runs *runs = arg;
    struct err err;
    json_t *line = wire_parse(text, length, &err);
    const char *name = json_string_value(json_object_get(line, "event"));
    int rc = name ? 0 : 1;

    if (name && strcmp(name, "hello") == 0) {
        rc = link_hello_check(line, &err);
        if (rc == 0) {
            take_hello(line);
        }
    } else if (name && strcmp(name, "stacks") == 0) {
        rc = link_stacks_check(line, &err);
        if (rc == 0) {
            take_hello(line); /* what it says of stacks */
        }
    } else if (name) {
        rc = link_runs_event(runs, name, line, &events, NULL, &err);
    }
    json_decref(line);
    return rc;
}

static void run(const uint8_t *data, size_t size)
{
    struct link_runs runs = { 0 };
    struct wire_lines lines;

    link_runs_add(&runs, "R1");
    link_runs_add(&runs, "R2");
    wire_lines_init(&lines, WIRE_AGENT_LINE_MAX);
    wire_lines_feed(&lines, (const char *)data, size, take_line, &runs);
    wire_lines_release(&lines);
    link_runs_release(&runs);
}

FUZZ_TARGET("agent_lines", run);
