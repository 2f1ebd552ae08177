#include "daemon/peers/pull.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/link/agent_log.h"
#include "daemon/process/child.h"
#include "daemon/process/run_exit.h"
#include "daemon/process/stream.h"
#include "daemon/process/wire.h"

enum {
    SETTLE_MS = 1000,    /* between its exit and the end of its output */
    GIVE_UP_MS = 2000,   /* after SIGKILL */
    SAID_MAX = 64 << 10, /* bytes of standard error that are read … */
    BREATH_MS = 100,     /* … in this time */
    CAUSE_SIZE = 512,
    HANDLES = 6
};

struct pull {
    uv_loop_t *loop;
    char *name;
    const struct pull_events *events;
    void *arg;
    struct child child;
    bool out_ended, err_ended, killed, told, owner_closing, released;
    bool paused, too_long;
    char cause[CAUSE_SIZE]; /* why it was killed; "": it was not */
    struct wire_lines lines;
    struct agent_log log;
    size_t said; /* bytes of standard error since the last breath */
    int open_handles;
    uv_timer_t deadline; /* for output, for settling, for its death */
    uv_timer_t tell;     /* calls `ended` from the loop */
    uv_timer_t breath;   /* until standard error is read again */
    struct stream_reader out, err;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void deadline_cb(uv_timer_t *timer);

static void set_deadline(struct pull *pull, int64_t ms)
{
    uv_update_time(pull->loop);
    uv_timer_start(&pull->deadline, deadline_cb, (uint64_t)ms, 0);
}

static void handle_closed(void *arg)
{
    struct pull *pull = arg;
    void (*closed)(void *arg) = pull->closed;
    void *closed_arg = pull->closed_arg;

    if (--pull->open_handles > 0) {
        return;
    }
    wire_lines_release(&pull->lines);
    agent_log_end(&pull->log, clock_monotonic_ms());
    free(pull->name);
    free(pull);
    closed(closed_arg);
}

static void handle_closed_cb(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

static void release(struct pull *pull)
{
    if (pull->released) {
        return;
    }
    pull->released = true;
    child_close(&pull->child, handle_closed);
    uv_close((uv_handle_t *)&pull->deadline, handle_closed_cb);
    uv_close((uv_handle_t *)&pull->tell, handle_closed_cb);
    uv_close((uv_handle_t *)&pull->breath, handle_closed_cb);
    stream_reader_close(&pull->out, handle_closed);
    stream_reader_close(&pull->err, handle_closed);
}

static int line_cb(void *arg, const char *text, size_t length)
{
    struct pull *pull = arg;

    pull->events->line(pull->arg, text, length);
    return pull->killed || pull->owner_closing ? ERR_PROTOCOL : 0;
}

static void set_cause_of_exit(struct pull *pull)
{
    const char *said = pull->log.last;
    const char *colon = said[0] ? ": " : "";

    if (WIFSIGNALED(pull->child.status)) {
        snprintf(pull->cause, sizeof pull->cause, "killed by SIG%s%s%.400s",
                 exit_signal_name(WTERMSIG(pull->child.status)), colon, said);
    } else if (WEXITSTATUS(pull->child.status) != 0) {
        snprintf(pull->cause, sizeof pull->cause, "exit status %d%s%.400s",
                 WEXITSTATUS(pull->child.status), colon, said);
    }
}

static void tell_cb(uv_timer_t *timer)
{
    struct pull *pull = timer->data;

    if (pull->told || pull->owner_closing) {
        return;
    }
    pull->told = true;
    if (!pull->cause[0] && pull->child.exited) {
        set_cause_of_exit(pull);
    }
    if (!pull->cause[0] && wire_lines_rest(&pull->lines) > 0) {
        wire_lines_feed(&pull->lines, "\n", 1, line_cb, pull);
    }
    if (!pull->owner_closing) {
        wire_clean(pull->cause);
        pull->events->ended(pull->arg, pull->cause[0] ? pull->cause : NULL,
                            pull->too_long);
    }
}

static void tell(struct pull *pull)
{
    uv_timer_stop(&pull->deadline);
    uv_timer_start(&pull->tell, tell_cb, 0, 0);
}

static void settle(struct pull *pull)
{
    if (pull->owner_closing) {
        if (pull->child.exited) {
            release(pull);
        }
    } else if (pull->child.exited && pull->out_ended && pull->err_ended) {
        tell(pull);
    } else if (pull->child.exited && !pull->paused) {
        set_deadline(pull, SETTLE_MS);
    }
}

/* No line is looked at any more. */
__attribute__((format(printf, 2, 3))) static void kill_it(struct pull *pull,
                                                          const char *format, ...)
{
    va_list args;

    if (pull->killed) {
        return;
    }
    pull->killed = true;
    va_start(args, format);
    vsnprintf(pull->cause, sizeof pull->cause, format, args);
    va_end(args);
    pull_pause(pull, false);
    if (pull->child.exited) {
        settle(pull);
    } else {
        child_kill(&pull->child, SIGKILL);
        set_deadline(pull, GIVE_UP_MS);
    }
}

static void deadline_cb(uv_timer_t *timer)
{
    struct pull *pull = timer->data;

    if (pull->owner_closing) {
        release(pull); /* it does not die */
    } else if (pull->child.exited || pull->killed) {
        tell(pull); /* another process holds its output, or it does not die */
    } else {
        kill_it(pull, "nothing came from it for %d s", pull->events->silent_ms / 1000);
    }
}

static void child_ended(void *arg)
{
    settle(arg);
}

static void out_bytes(void *arg, const char *data, size_t length)
{
    struct pull *pull = arg;

    if (pull->killed || pull->owner_closing) {
        return;
    }
    set_deadline(pull, pull->events->silent_ms);
    if (wire_lines_feed(&pull->lines, data, length, line_cb, pull) == ERR_TOO_LARGE) {
        pull->too_long = true;
        kill_it(pull, "it printed a line of more than %zu bytes", pull->events->line_max);
    }
}

static void out_end(void *arg)
{
    struct pull *pull = arg;

    pull->out_ended = true;
    settle(pull);
}

static void breathe(uv_timer_t *timer)
{
    struct pull *pull = timer->data;

    pull->said = 0;
    stream_reader_pause(&pull->err, false);
}

/* Whatever it says, it does not keep the loop busy. */
static void err_bytes(void *arg, const char *data, size_t length)
{
    struct pull *pull = arg;

    agent_log_add(&pull->log, data, length, clock_monotonic_ms());
    pull->said += length;
    if (pull->said > SAID_MAX && !pull->released) {
        stream_reader_pause(&pull->err, true);
        uv_timer_start(&pull->breath, breathe, BREATH_MS, 0);
    }
}

static void err_end(void *arg)
{
    struct pull *pull = arg;

    pull->err_ended = true;
    settle(pull);
}

static void watch(struct pull *pull, const struct child_pipes *pipes)
{
    pull->open_handles = HANDLES;
    pull->deadline.data = pull->tell.data = pull->breath.data = pull;
    uv_timer_init(pull->loop, &pull->deadline);
    uv_timer_init(pull->loop, &pull->tell);
    uv_timer_init(pull->loop, &pull->breath);
    set_deadline(pull, pull->events->silent_ms);
    pull->out.bytes = out_bytes;
    pull->out.end = out_end;
    pull->err.bytes = err_bytes;
    pull->err.end = err_end;
    pull->out.arg = pull->err.arg = pull;
    stream_reader_open(&pull->out, pull->loop, pipes->out);
    stream_reader_open(&pull->err, pull->loop, pipes->err);
}

enum err_code pull_start(uv_loop_t *loop, const char *name, char *const *argv,
                         const struct pull_events *events, void *arg,
                         struct pull **ret_pull, struct err *err)
{
    struct pull *pull = xcalloc(1, sizeof *pull);
    struct child_pipes pipes;

    pull->loop = loop;
    pull->child.ended = child_ended;
    pull->child.arg = pull;
    if (child_start(&pull->child, loop, &(struct child_start){ .argv = argv }, &pipes,
                    err) != ERR_OK) {
        free(pull);
        return err->code;
    }
    pull->name = xstrdup(name);
    pull->events = events;
    pull->arg = arg;
    wire_lines_init(&pull->lines, events->line_max);
    pull->log.host = pull->name;
    watch(pull, &pipes);
    *ret_pull = pull;
    return ERR_OK;
}

void pull_pause(struct pull *pull, bool paused)
{
    pull->paused = paused;
    stream_reader_pause(&pull->out, paused);
    if (pull->killed) {
        return;
    }
    if (paused) {
        uv_timer_stop(&pull->deadline);
    } else if (pull->child.exited) {
        settle(pull);
    } else {
        set_deadline(pull, pull->events->silent_ms);
    }
}

void pull_abort(struct pull *pull)
{
    kill_it(pull, "ended");
}

void pull_close(struct pull *pull, void (*closed)(void *arg), void *arg)
{
    pull->owner_closing = true;
    pull->closed = closed;
    pull->closed_arg = arg;
    if (pull->child.exited) {
        release(pull);
        return;
    }
    child_kill(&pull->child, SIGKILL);
    set_deadline(pull, GIVE_UP_MS);
}
