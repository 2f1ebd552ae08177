#include "daemon/fleet/link_runs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/id.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/fleet/link.h"
#include "daemon/process/members.h"

enum {
    EXIT_CODE_MAX = 255,
    SIGNAL_MAX = 64,
    LOG_MAX = 64 * 1024 /* bytes of a tail; agents keep 8 KiB, before escapes */
};
static const double WALL_MS_MAX = 1e12;

struct link_runs_entry {
    char id[64];
    bool started;
};

void link_runs_add(struct link_runs *runs, const char *id)
{
    struct link_runs_entry *entry;

    if (runs->count == runs->capacity) {
        runs->capacity = runs->capacity ? runs->capacity * 2 : 8;
        runs->entries =
            xrealloc(runs->entries, sizeof *runs->entries * (size_t)runs->capacity);
    }
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

static enum err_code on_started(const struct call *call, struct err *err)
{
    json_int_t pid, start;

    if (members_unpack(call->event, err, "{s:I,s:I}", "pid", &pid, "process_start",
                       &start) != ERR_OK) {
        return err->code;
    }
    call->events->started(call->arg, call->run, pid, start);
    return ERR_OK;
}

static enum err_code on_worker(const struct call *call, struct err *err)
{
    const json_t *data = json_object_get(call->event, "data");

    if (!json_is_object(data)) {
        return err_set(err, ERR_PROTOCOL, "data is not an object");
    }
    call->events->worker_event(call->arg, call->run, data);
    return ERR_OK;
}

static enum err_code on_garbage(const struct call *call, struct err *err)
{
    const char *cause;

    if (members_unpack(call->event, err, "{s:s}", "cause", &cause) != ERR_OK) {
        return err->code;
    }
    call->events->garbage(call->arg, call->run, cause);
    return ERR_OK;
}

static enum err_code on_refused(const struct call *call, struct err *err)
{
    const char *cause;

    if (members_unpack(call->event, err, "{s:s}", "cause", &cause) != ERR_OK) {
        return err->code;
    }
    call->events->refused(call->arg, call->run, cause);
    return ERR_OK;
}

static enum err_code on_exited(const struct call *call, struct err *err)
{
    struct run_exit exit = { .exit_code = -1 };
    json_t *code, *number;
    json_int_t rss, written;
    const char *reason;

    if (members_unpack(call->event, err, "{s:o,s:o,s:s,s:F,s:I,s:s%,s:I}", "exit_code",
                       &code, "signal", &number, "reason", &reason, "wall_ms",
                       &exit.wall_ms, "max_rss_kb", &rss, "log", &exit.log,
                       &exit.log_length, "log_bytes", &written) != ERR_OK) {
        return err->code;
    }
    if ((!json_is_null(code) && !json_is_integer(code)) ||
        (!json_is_null(number) && !json_is_integer(number)) ||
        exit_reason_parse(reason, &exit.reason) != 0 || json_integer_value(code) < 0 ||
        json_integer_value(code) > EXIT_CODE_MAX || json_integer_value(number) < 0 ||
        json_integer_value(number) > SIGNAL_MAX ||
        !(exit.wall_ms >= 0 && exit.wall_ms <= WALL_MS_MAX) ||
        (exit.reason == EXIT_REASON_EXITED &&
         json_is_null(code) == json_is_null(number))) {
        return err_set(err, ERR_PROTOCOL, "how the run exited is not clear");
    }
    if (exit.log_length > LOG_MAX) {
        return err_set(err, ERR_TOO_LARGE, "log has more than %d bytes", LOG_MAX);
    }
    if (json_is_integer(code)) {
        exit.exit_code = (int)json_integer_value(code);
    }
    exit.signal = (int)json_integer_value(number);
    exit.max_rss_kb = rss;
    exit.log_bytes = written;
    call->events->exited(call->arg, call->run, &exit);
    return ERR_OK;
}

static const struct {
    const char *name;
    enum err_code (*handle)(const struct call *call, struct err *err);
    bool started; /* whether the run must have been started, or must not */
    bool last;    /* the run is over with it */
} kinds[] = {
    { "started", on_started, false, false }, { "worker", on_worker, true, false },
    { "garbage", on_garbage, true, false },  { "exited", on_exited, true, true },
    { "refused", on_refused, false, true },
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
