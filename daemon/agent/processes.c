#include "daemon/agent/processes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/json_in.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/process/wire.h"

enum { ANSWER_BYTES_MAX = 256 * 1024 };

void processes_init(struct processes *p, uv_loop_t *loop)
{
    uv_timer_init(loop, &p->timer);
    p->timer.data = p;
}

void processes_close(struct processes *p)
{
    uv_close((uv_handle_t *)&p->timer, NULL);
}

void processes_release(struct processes *p)
{
    json_decref(p->answer);
    json_decref(p->told);
    free(p->cause);
}

/* Only what changed is told. */
static void tell(struct processes *p, json_t *devices)
{
    if (!p->told || !json_equal(p->told, devices)) {
        json_decref(p->told);
        p->told = json_incref(devices);
        p->send(p->arg, json_pack("{s:s,s:O}", "event", "processes", "devices", devices));
    }
    json_decref(devices);
}

/* CUDA tells the bytes of a UUID, and NVML their kind, too. */
static bool is_same(const char *id, const char *uuid)
{
    const char *dash = strchr(id, '-');
    const char *other = strchr(uuid, '-');

    return strcmp(id, uuid) == 0 || (dash && other && strcasecmp(dash, other) == 0);
}

static const json_t *find(const json_t *answer, const char *id)
{
    size_t i;
    json_t *device;

    json_array_foreach(json_object_get(answer, "devices"), i, device)
    {
        if (is_same(id, in_text_or_empty(device, "id"))) {
            return device;
        }
    }
    return NULL;
}

/* Each device of the stack, with who uses it, or why that is not known. */
static json_t *devices_json(const struct processes *p)
{
    const json_t *own = json_object_get(p->stack->probe, "devices");
    const char *whole = json_string_value(json_object_get(p->answer, "cause"));
    json_t *devices = json_array();
    size_t i;
    json_t *device;

    json_array_foreach(own, i, device)
    {
        const char *id = in_text_or_empty(device, "id");
        const json_t *said = find(p->answer, id);
        json_t *foreign = json_object_get(said, "foreign");
        const char *cause = p->cause ? p->cause
                            : said   ? json_string_value(json_object_get(said, "cause"))
                            : whole  ? whole
                                     : "NVML lists no device with this UUID";

        if (json_is_array(foreign) && !p->cause) {
            json_array_append_new(devices, json_pack("{s:s,s:O,s:n}", "id", id, "foreign",
                                                     foreign, "cause"));
        } else {
            json_array_append_new(devices, json_pack("{s:s,s:n,s:s?}", "id", id,
                                                     "foreign", "cause", cause));
        }
    }
    return devices;
}

static void line(void *arg, int64_t number, const char *text, size_t length,
                 bool complete)
{
    struct processes *p = arg;
    struct err err = { ERR_PROTOCOL, "cut off" };

    (void)number;
    json_decref(p->answer);
    p->answer = complete ? wire_parse(text, length, &err) : NULL;
    if (!p->answer) {
        free(p->cause);
        p->cause = xasprintf("--processes: %s", err.message);
    }
}

static void finished(void *arg, const struct run_exit *exit)
{
    struct processes *p = arg;

    p->asking = false;
    if (!p->cause && exit->reason != EXIT_REASON_EXITED) {
        p->cause = xasprintf("--processes: %s", exit->reason == EXIT_REASON_TIMEOUT
                                                    ? "no answer before the deadline"
                                                    : exit_reason_name(exit->reason));
    } else if (!p->cause && !p->answer) {
        p->cause = xstrdup("--processes: no answer");
    }
    if (!p->supervisor->ending) {
        tell(p, devices_json(p));
    }
}

static void ask(uv_timer_t *timer)
{
    static const struct supervised_events events = { line, finished };
    static char option[] = "--processes";
    struct processes *p = timer->data;
    char *const args[] = { option, NULL };
    char **environment;
    struct supervise supervise = { .program = p->stack->worker,
                                   .args = args,
                                   .data_fd = STDOUT_FILENO,
                                   .timeout_ms = PROCESSES_TIMEOUT_MS,
                                   .max_lines = 1,
                                   .max_bytes = ANSWER_BYTES_MAX };
    struct supervised *supervised;
    struct err err;

    if (p->asking || p->supervisor->ending) {
        return;
    }
    json_decref(p->answer);
    free(p->cause);
    p->answer = NULL;
    p->cause = NULL;
    environment = stack_environment(p->stack);
    supervise.env = environment;
    p->asking = supervisor_start(p->supervisor, &supervise, &events, p, &supervised,
                                 &err) == ERR_OK;
    if (!p->asking) {
        p->cause = xstrdup(err.message);
        tell(p, devices_json(p));
    }
    free_texts(environment);
}

json_t *processes_choose(struct processes *p, const struct stack *stacks, int count)
{
    json_t *ids = json_array();
    size_t i;
    json_t *device;

    for (int s = 0; s < count && !p->stack; s++) {
        if (stacks[s].worker &&
            json_is_true(json_object_get(stacks[s].probe, "processes")) &&
            json_array_size(json_object_get(stacks[s].probe, "devices")) > 0) {
            p->stack = &stacks[s];
        }
    }
    json_array_foreach(p->stack ? json_object_get(p->stack->probe, "devices") : NULL, i,
                       device)
    {
        json_array_append_new(ids, json_string(in_text_or_empty(device, "id")));
    }
    return ids;
}

void processes_watch(struct processes *p)
{
    if (p->stack) {
        uv_timer_start(&p->timer, ask, 0, PROCESSES_EVERY_MS);
    }
}
