#include "daemon/link/link_wire.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/process/stack_limits.h"
#include "daemon/process/wire.h"

enum {
    EXIT_CODE_MAX = 255,
    SIGNAL_MAX = 64,
    FOREIGN_MAX = 64, /* texts of one device; agents tell nine */
    NOTICE_MAX_MS = 7 * 24 * 3600 * 1000,
    LOG_MAX = 64 * 1024 /* bytes of a tail; agents keep 8 KiB, before escapes */
};
static const int64_t WALL_MS_MAX = INT64_C(1000000000000);

int64_t link_hello_deadline_ms(const json_t *stacks)
{
    enum { REST_MS = 5000 }; /* to start, and for what is asked a second time */
    int64_t most = LINK_HELLO_MS;
    json_t *stack;
    size_t i;

    json_array_foreach(stacks, i, stack)
    {
        int64_t ms = 1000 * in_int(stack, "probe_seconds") + REST_MS;

        most = ms > most ? ms : most;
    }
    return most;
}

static json_t *worker_arguments(const struct link_run *run)
{
    const struct case_key *key = run->key;
    json_t *options = run_options_arguments(run->options);
    json_t *arguments;
    char seed[24];

    snprintf(seed, sizeof seed, "%llu", (unsigned long long)key->seed);
    arguments = json_pack("{s:s,s:s,s:s,s:s,s:s,s:I}", "workload", key->workload,
                          "variant", key->variant, "size", key->size, "dtype", key->dtype,
                          "seed", seed, "iterations", (json_int_t)run->iterations);
    json_object_update_missing(arguments, options);
    json_decref(options);
    return arguments;
}

json_t *link_command_run(const struct link_run *run)
{
    json_t *command =
        json_pack("{s:s,s:s,s:s,s:s,s:I,s:o}", "command", "run", "run", run->id, "stack",
                  run->stack, "device", run->device, "timeout_ms",
                  (json_int_t)run->timeout_ms, "arguments", worker_arguments(run));

    json_object_set_new(command, "merge_iterations", json_true());
    if (run->check_seconds) {
        json_object_set_new(command, "check_seconds", json_integer(run->check_seconds));
        if (run->check_passed[0]) {
            json_object_set_new(command, "check_passed", json_string(run->check_passed));
        }
    }
    return command;
}

json_t *link_command_cancel(const char *run)
{
    return json_pack("{s:s,s:s}", "command", "cancel", "run", run);
}

json_t *link_command_ping(void)
{
    return json_pack("{s:s}", "command", "ping");
}

static enum err_code check_stacks(const json_t *stacks, struct err *err)
{
    size_t devices = 0;
    json_t *stack;
    size_t i;

    if (json_array_size(stacks) > STACKS_MAX) {
        return err_set(err, ERR_TOO_LARGE, "stacks: there are more than %d", STACKS_MAX);
    }
    json_array_foreach(stacks, i, stack)
    {
        const json_t *probe = json_object_get(stack, "probe");

        if (stack_limits_check(stack, err) != ERR_OK) {
            return err_wrap(err, "stacks[%zu]", i);
        }
        devices += json_array_size(json_object_get(probe, "devices"));
    }
    if (devices > STACKS_DEVICES_MAX) {
        return err_set(err, ERR_TOO_LARGE, "stacks have more than %d devices",
                       STACKS_DEVICES_MAX);
    }
    return ERR_OK;
}

static const struct in_member stack_item = { .kind = IN_OBJECT };
static const struct in_member hello_members[] = {
    { .key = "host", .kind = IN_TEXT, .most = CASE_TITLE_SIZE - 1 },
    { .key = "pid", .kind = IN_INT },
    { .key = "boot_id", .kind = IN_TEXT, .most = CASE_NAME_SIZE - 1 },
    { .key = "stacks", .kind = IN_ARRAY, .item = &stack_item },
};
static const struct in_shape hello_shape = IN_SHAPE(hello_members, NULL);

enum err_code link_hello_check(const json_t *hello, struct err *err)
{
    const json_t *v = json_object_get(hello, "v");

    /* The version first: what another version says need not have these fields. */
    if (!json_is_integer(v) || json_integer_value(v) != WIRE_VERSION) {
        return err_set(err, ERR_PROTOCOL,
                       "it speaks protocol version %lld, this daemon %d",
                       (long long)json_integer_value(v), WIRE_VERSION);
    }
    if (in_read_wire(&hello_shape, hello, NULL, err) != ERR_OK) {
        return err->code;
    }
    return check_stacks(json_object_get(hello, "stacks"), err);
}

static const struct in_member process_item = { .kind = IN_TEXT, .most = 255 };
static const struct in_member used_members[] = {
    { .key = "id", .kind = IN_TEXT, .most = CASE_TITLE_SIZE - 1 },
    { .key = "foreign",
      .kind = IN_ARRAY,
      .flags = IN_NULLABLE,
      .item = &process_item,
      .most = FOREIGN_MAX },
    { .key = "cause", .kind = IN_TEXT, .flags = IN_NULLABLE, .most = 255 },
};
static const struct in_shape used_shape = IN_SHAPE(used_members, NULL);
static const struct in_member used_item = { .kind = IN_OBJECT, .shape = &used_shape };
static const struct in_member processes_members[] = {
    { .key = "devices",
      .kind = IN_ARRAY,
      .item = &used_item,
      .most = STACKS_DEVICES_MAX },
};
static const struct in_shape processes_shape = IN_SHAPE(processes_members, NULL);

enum err_code link_processes_check(const json_t *event, struct err *err)
{
    return in_read_wire(&processes_shape, event, NULL, err);
}

static const struct in_member stacks_members[] = {
    { .key = "stacks", .kind = IN_ARRAY, .item = &stack_item },
};
static const struct in_shape stacks_shape = IN_SHAPE(stacks_members, NULL);

enum err_code link_stacks_check(const json_t *event, struct err *err)
{
    return in_read_wire(&stacks_shape, event, NULL, err) == ERR_OK
               ? check_stacks(json_object_get(event, "stacks"), err)
               : err->code;
}

struct ending {
    const char *cause;
    int64_t notice_ms;
};

static const struct in_member ending_members[] = {
    { "cause", IN_TEXT, IN_AT(struct ending, cause), .most = CASE_TITLE_SIZE - 1 },
    { "notice_ms", IN_INT, IN_AT(struct ending, notice_ms), .most = NOTICE_MAX_MS },
};
static const struct in_shape ending_shape = IN_SHAPE(ending_members, NULL);

enum err_code link_ending_check(const json_t *event, const char **ret_cause,
                                int64_t *ret_notice_ms, struct err *err)
{
    struct ending ending = { .cause = "" };
    enum err_code code = in_read_wire(&ending_shape, event, &ending, err);

    *ret_cause = ending.cause;
    *ret_notice_ms = ending.notice_ms;
    return code;
}

struct link_runs_entry {
    char id[64];
    bool started;
};

void link_runs_add(struct link_runs *runs, const char *id)
{
    struct link_runs_entry *entry;

    runs->entries = xgrow(runs->entries, runs->count, sizeof *runs->entries);
    entry = &runs->entries[runs->count++];
    copy_text(entry->id, sizeof entry->id, id);
    entry->started = false;
}

void link_runs_release(struct link_runs *runs)
{
    free(runs->entries);
    *runs = (struct link_runs){ 0 };
}

static struct link_runs_entry *find(const struct link_runs *runs, const char *id)
{
    for (int i = 0; i < runs->count; i++) {
        if (strcmp(runs->entries[i].id, id) == 0) {
            return &runs->entries[i];
        }
    }
    return NULL;
}

/* What an event of a run is handed on with. */
struct call {
    const struct link_events *events;
    void *arg;
    const char *run;
    const json_t *event;
};

struct process {
    int64_t pid, start;
};

static const struct in_member started_members[] = {
    { "pid", IN_INT, IN_AT(struct process, pid) },
    { "process_start", IN_INT, IN_AT(struct process, start) },
};
static const struct in_shape started_shape = IN_SHAPE(started_members, NULL);

static enum err_code on_started(const struct call *call, struct err *err)
{
    struct process process = { 0 };

    if (in_read_wire(&started_shape, call->event, &process, err) != ERR_OK) {
        return err->code;
    }
    call->events->started(call->arg, call->run, process.pid, process.start);
    return ERR_OK;
}

static const struct in_member worker_members[] = { { .key = "data", .kind = IN_OBJECT } };
static const struct in_shape worker_shape = IN_SHAPE(worker_members, NULL);

static enum err_code on_worker(const struct call *call, struct err *err)
{
    if (in_read_wire(&worker_shape, call->event, NULL, err) != ERR_OK) {
        return err->code;
    }
    call->events->worker_event(call->arg, call->run,
                               json_object_get(call->event, "data"));
    return ERR_OK;
}

static enum err_code on_iterations(const struct call *call, struct err *err)
{
    (void)err;
    call->events->iterations(call->arg, call->run, call->event);
    return ERR_OK;
}

static const struct in_member cause_members[] = { { .key = "cause", .kind = IN_TEXT } };
static const struct in_shape cause_shape = IN_SHAPE(cause_members, NULL);

static enum err_code on_garbage(const struct call *call, struct err *err)
{
    if (in_read_wire(&cause_shape, call->event, NULL, err) != ERR_OK) {
        return err->code;
    }
    call->events->garbage(call->arg, call->run, in_text(call->event, "cause"));
    return ERR_OK;
}

static enum err_code on_refused(const struct call *call, struct err *err)
{
    if (in_read_wire(&cause_shape, call->event, NULL, err) != ERR_OK) {
        return err->code;
    }
    call->events->refused(call->arg, call->run, in_text(call->event, "cause"));
    return ERR_OK;
}

#define AT(field) IN_AT(struct run_exit, field)
static const struct in_member exited_members[] = {
    { "exit_code", IN_INT, AT(exit_code), .flags = IN_NULLABLE, .most = EXIT_CODE_MAX },
    { "signal", IN_INT, AT(signal), .flags = IN_NULLABLE, .most = SIGNAL_MAX },
    { .key = "reason", .kind = IN_TEXT },
    { "wall_ms", IN_REAL, AT(wall_ms), .most = WALL_MS_MAX },
    { "max_rss_kb", IN_INT, AT(max_rss_kb) },
    { "log", IN_TEXT, AT(log), .most = LOG_MAX },
    { "log_bytes", IN_INT, AT(log_bytes) },
};
#undef AT
static const struct in_shape exited_shape = IN_SHAPE(exited_members, NULL);

static enum err_code on_exited(const struct call *call, struct err *err)
{
    struct run_exit exit = { .exit_code = -1 };
    bool has_code = json_is_integer(json_object_get(call->event, "exit_code"));
    bool has_signal = json_is_integer(json_object_get(call->event, "signal"));

    if (in_read_wire(&exited_shape, call->event, &exit, err) != ERR_OK) {
        return err->code;
    }
    if (exit_reason_parse(in_text(call->event, "reason"), &exit.reason) != 0 ||
        (exit.reason == EXIT_REASON_EXITED && has_code == has_signal)) {
        return err_set(err, ERR_PROTOCOL, "how the run exited is not clear");
    }
    exit.log_length = strlen(exit.log);
    call->events->exited(call->arg, call->run, &exit);
    return ERR_OK;
}

static const struct {
    const char *name;
    enum err_code (*handle)(const struct call *call, struct err *err);
    bool started; /* whether the run must have been started, or must not */
    bool last;    /* the run is over with it */
} kinds[] = {
    { "started", on_started, false, false },      { "worker", on_worker, true, false },
    { "iterations", on_iterations, true, false }, { "garbage", on_garbage, true, false },
    { "exited", on_exited, true, true },          { "refused", on_refused, false, true },
};
enum { KIND_COUNT = COUNT_OF(kinds) };

enum err_code link_runs_event(struct link_runs *runs, const char *name,
                              const json_t *event, const struct link_events *events,
                              void *arg, struct err *err)
{
    const char *run = json_string_value(json_object_get(event, "run"));
    struct call call = { events, arg, run, event };
    struct link_runs_entry *entry;
    int kind = 0;

    while (kind < KIND_COUNT && strcmp(kinds[kind].name, name) != 0) {
        kind++;
    }
    if (kind == KIND_COUNT) {
        return ERR_OK; /* of a newer agent */
    }
    entry = run ? find(runs, run) : NULL;
    if (!entry || entry->started != kinds[kind].started) {
        return err_set(err, ERR_PROTOCOL, "'%s' for a run that is not waiting for it",
                       name);
    }
    if (kinds[kind].last) {
        *entry = runs->entries[--runs->count];
    } else {
        entry->started = true;
    }
    if (kinds[kind].handle(&call, err) != ERR_OK) {
        return err_wrap(err, "%s", name);
    }
    return ERR_OK;
}
