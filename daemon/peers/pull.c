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
#include "daemon/process/loop.h"
#include "daemon/process/proc.h"
#include "daemon/process/run_exit.h"
#include "daemon/process/spawn.h"
#include "daemon/process/stream.h"
#include "daemon/process/wire.h"

enum {
    SETTLE_MS = 1000,    /* between its exit and the end of its output */
    GIVE_UP_MS = 2000,   /* after SIGKILL */
    SAID_MAX = 64 << 10, /* bytes of standard error that are read … */
    BREATH_MS = 100,     /* … in this time */
    CAUSE_SIZE = 512,
    HANDLES = 7
};

struct pull {
    uv_loop_t *loop;
    char *name;
    const struct pull_events *events;
    void *arg;
    pid_t pid;
    int pidfd, status;
    bool exited, out_ended, err_ended, killed, told, owner_closing, released;
    bool paused, too_long;
    char cause[CAUSE_SIZE]; /* why it was killed; "": it was not */
    struct wire_lines lines;
    struct agent_log log;
    size_t said; /* bytes of standard error since the last breath */
    int open_handles;
    uv_poll_t poll;
    uv_signal_t child_signal;
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
    close(pull->pidfd);
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
    uv_close((uv_handle_t *)&pull->poll, handle_closed_cb);
    uv_close((uv_handle_t *)&pull->child_signal, handle_closed_cb);
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

    if (WIFSIGNALED(pull->status)) {
        snprintf(pull->cause, sizeof pull->cause, "killed by SIG%s%s%.400s",
                 exit_signal_name(WTERMSIG(pull->status)), colon, said);
    } else if (WEXITSTATUS(pull->status) != 0) {
        snprintf(pull->cause, sizeof pull->cause, "exit status %d%s%.400s",
                 WEXITSTATUS(pull->status), colon, said);
    }
}

static void tell_cb(uv_timer_t *timer)
{
    struct pull *pull = timer->data;

    if (pull->told || pull->owner_closing) {
        return;
    }
    pull->told = true;
    if (!pull->cause[0] && pull->exited) {
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
        if (pull->exited) {
            release(pull);
        }
    } else if (pull->exited && pull->out_ended && pull->err_ended) {
        tell(pull);
    } else if (pull->exited && !pull->paused) {
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
    if (pull->exited) {
        settle(pull);
    } else {
        kill(-pull->pid, SIGKILL);
        set_deadline(pull, GIVE_UP_MS);
    }
}

static void deadline_cb(uv_timer_t *timer)
{
    struct pull *pull = timer->data;

    if (pull->owner_closing) {
        release(pull); /* it does not die */
    } else if (pull->exited || pull->killed) {
        tell(pull); /* another process holds its output, or it does not die */
    } else {
        kill_it(pull, "nothing came from it for %d s", pull->events->silent_ms / 1000);
    }
}

static void maybe_reap(struct pull *pull)
{
    siginfo_t info = { 0 };

    if (pull->exited ||
        waitid(P_PID, (id_t)pull->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != pull->pid) {
        return;
    }
    kill(-pull->pid, SIGKILL); /* its number is its own until it is reaped */
    waitpid(pull->pid, &pull->status, 0);
    pull->exited = true;
    descendants_forget(pull->pid);
    settle(pull);
}

static void poll_cb(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    uv_poll_stop(poll); /* while a debugger holds it, SIGCHLD is what counts */
    maybe_reap(poll->data);
}

static void child_signal_cb(uv_signal_t *handle, int number)
{
    (void)number;
    maybe_reap(handle->data);
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

static enum err_code start_process(char *const *argv, struct pull *pull, int ret_fds[2],
                                   struct err *err)
{
    int out[2], said[2];
    enum err_code code;

    if (spawn_pipe(out, err) != ERR_OK) {
        return err->code;
    }
    if (spawn_pipe(said, err) != ERR_OK) {
        close(out[0]);
        close(out[1]);
        return err->code;
    }
    code = spawn(&(struct spawn){ .path = argv[0],
                                  .argv = argv,
                                  .fds = { -1, out[1], said[1], -1 } },
                 &pull->pid, &pull->pidfd, err);
    close(out[1]);
    close(said[1]);
    if (code != ERR_OK) {
        close(out[0]);
        close(said[0]);
    }
    ret_fds[0] = out[0];
    ret_fds[1] = said[0];
    return code;
}

static void watch(struct pull *pull, const int fds[2])
{
    descendants_know(pull->pid);
    pull->open_handles = HANDLES;
    pull->poll.data = pull->child_signal.data = pull->deadline.data = pull->tell.data =
        pull->breath.data = pull;
    loop_must(uv_poll_init(pull->loop, &pull->poll, pull->pidfd), "the end of a command");
    loop_must(uv_poll_start(&pull->poll, UV_READABLE, poll_cb), "the end of a command");
    loop_must(uv_signal_init(pull->loop, &pull->child_signal), "signals");
    loop_must(uv_signal_start(&pull->child_signal, child_signal_cb, SIGCHLD), "signals");
    uv_timer_init(pull->loop, &pull->deadline);
    uv_timer_init(pull->loop, &pull->tell);
    uv_timer_init(pull->loop, &pull->breath);
    set_deadline(pull, pull->events->silent_ms);
    pull->out.bytes = out_bytes;
    pull->out.end = out_end;
    pull->err.bytes = err_bytes;
    pull->err.end = err_end;
    pull->out.arg = pull->err.arg = pull;
    stream_reader_open(&pull->out, pull->loop, fds[0]);
    stream_reader_open(&pull->err, pull->loop, fds[1]);
}

enum err_code pull_start(uv_loop_t *loop, const char *name, char *const *argv,
                         const struct pull_events *events, void *arg,
                         struct pull **ret_pull, struct err *err)
{
    struct pull *pull = xcalloc(1, sizeof *pull);
    int fds[2] = { -1, -1 };

    descendants_init();
    if (start_process(argv, pull, fds, err) != ERR_OK) {
        free(pull);
        return err->code;
    }
    pull->loop = loop;
    pull->name = xstrdup(name);
    pull->events = events;
    pull->arg = arg;
    wire_lines_init(&pull->lines, events->line_max);
    pull->log.host = pull->name;
    watch(pull, fds);
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
    } else if (pull->exited) {
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
    if (pull->exited) {
        release(pull);
        return;
    }
    kill(-pull->pid, SIGKILL);
    set_deadline(pull, GIVE_UP_MS);
}
