#include "daemon/engine/command.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/process/loop.h"
#include "daemon/process/proc.h"
#include "daemon/process/spawn.h"
#include "daemon/process/stream.h"
#include "daemon/process/wire.h"

enum { HANDLES = 5, SAID_SIZE = 256, CAUSE_SIZE = 640 };

struct command {
    struct command_options options;
    pid_t pid;
    int pidfd, status;
    size_t bytes;
    bool exited, out_ended, err_ended, closing;
    int open_handles;
    char said[SAID_SIZE];   /* the first line of its standard error */
    char killed[SAID_SIZE]; /* why it was; "": it was not */
    uv_poll_t poll;
    uv_signal_t child_signal;
    uv_timer_t deadline;
    struct stream_reader out, err;
};

static void tell_cause(const struct command *c, char cause[CAUSE_SIZE])
{
    const char *colon = c->said[0] ? ": " : "";

    if (c->killed[0]) {
        snprintf(cause, CAUSE_SIZE, "%s%s%s", c->killed, colon, c->said);
    } else if (WIFSIGNALED(c->status)) {
        snprintf(cause, CAUSE_SIZE, "killed by signal %d%s%s", WTERMSIG(c->status), colon,
                 c->said);
    } else {
        snprintf(cause, CAUSE_SIZE, "exit status %d%s%s", WEXITSTATUS(c->status), colon,
                 c->said);
    }
}

static void handle_closed(void *arg)
{
    struct command *c = arg;
    struct command_options options = c->options;
    char cause[CAUSE_SIZE];
    bool right = !c->killed[0] && WIFEXITED(c->status) && WEXITSTATUS(c->status) == 0;

    if (--c->open_handles > 0) {
        return;
    }
    tell_cause(c, cause);
    close(c->pidfd);
    free(c);
    options.ended(options.arg, right ? NULL : cause);
}

static void handle_closed_cb(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

/* Another process that holds its pipes delays nothing once it was killed. */
static void maybe_close(struct command *c)
{
    if (c->closing || !c->exited || !(c->killed[0] || (c->out_ended && c->err_ended))) {
        return;
    }
    c->closing = true;
    uv_close((uv_handle_t *)&c->poll, handle_closed_cb);
    uv_close((uv_handle_t *)&c->child_signal, handle_closed_cb);
    uv_close((uv_handle_t *)&c->deadline, handle_closed_cb);
    stream_reader_close(&c->out, handle_closed);
    stream_reader_close(&c->err, handle_closed);
}

static void kill_because(struct command *c, const char *cause)
{
    if (!c->killed[0]) {
        copy_text(c->killed, sizeof c->killed, cause);
    }
    if (!c->exited) {
        kill(-c->pid, SIGKILL);
    }
    maybe_close(c);
}

static void deadline_cb(uv_timer_t *timer)
{
    struct command *c = timer->data;
    char cause[SAID_SIZE];

    snprintf(cause, sizeof cause, "not done within %lld ms",
             (long long)c->options.deadline_ms);
    kill_because(c, cause);
}

static void maybe_reap(struct command *c)
{
    siginfo_t info = { 0 };

    if (c->exited ||
        waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != c->pid) {
        return;
    }
    kill(-c->pid, SIGKILL); /* its number is its own until it is reaped */
    waitpid(c->pid, &c->status, 0);
    c->exited = true;
    descendants_forget(c->pid);
    maybe_close(c);
}

static void poll_cb(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    uv_poll_stop(poll);
    maybe_reap(poll->data);
}

static void child_signal_cb(uv_signal_t *handle, int number)
{
    (void)number;
    maybe_reap(handle->data);
}

static void out_bytes(void *arg, const char *data, size_t length)
{
    struct command *c = arg;

    c->bytes += length;
    if (c->bytes > c->options.most) {
        kill_because(c, "its output is too long");
    } else if (!c->killed[0]) {
        c->options.bytes(c->options.arg, data, length);
    }
}

static void out_end(void *arg)
{
    struct command *c = arg;

    c->out_ended = true;
    maybe_close(c);
}

static void err_bytes(void *arg, const char *data, size_t length)
{
    struct command *c = arg;
    size_t line = 0;

    while (line < length && data[line] != '\n') {
        line++;
    }
    if (c->said[0] == '\0' && line > 0) {
        snprintf(c->said, sizeof c->said, "%.*s", (int)line, data);
        wire_clean(c->said);
    }
}

static void err_end(void *arg)
{
    struct command *c = arg;

    c->err_ended = true;
    maybe_close(c);
}

static void watch(struct command *c, uv_loop_t *loop, int out, int err)
{
    descendants_know(c->pid);
    c->open_handles = HANDLES;
    c->poll.data = c->child_signal.data = c->deadline.data = c;
    loop_must(uv_poll_init(loop, &c->poll, c->pidfd), "the end of a command");
    loop_must(uv_poll_start(&c->poll, UV_READABLE, poll_cb), "the end of a command");
    loop_must(uv_signal_init(loop, &c->child_signal), "signals");
    loop_must(uv_signal_start(&c->child_signal, child_signal_cb, SIGCHLD), "signals");
    uv_timer_init(loop, &c->deadline);
    uv_timer_start(&c->deadline, deadline_cb, (uint64_t)c->options.deadline_ms, 0);
    c->out.bytes = out_bytes;
    c->out.end = out_end;
    c->err.bytes = err_bytes;
    c->err.end = err_end;
    c->out.arg = c->err.arg = c;
    stream_reader_open(&c->out, loop, out);
    stream_reader_open(&c->err, loop, err);
}

static void close_both(const int pipe[2])
{
    close(pipe[0]);
    close(pipe[1]);
}

static bool begins_with_one(const char *variable, const char *const *prefixes)
{
    for (; prefixes && *prefixes; prefixes++) {
        if (strncmp(variable, *prefixes, strlen(*prefixes)) == 0) {
            return true;
        }
    }
    return false;
}

/* The array is the caller's, the texts are borrowed. */
static char **environment_without(const char *const *prefixes)
{
    size_t count = 0, kept = 0;
    char **list;

    while (environ[count]) {
        count++;
    }
    list = xcalloc(count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        if (!begins_with_one(environ[i], prefixes)) {
            list[kept++] = environ[i];
        }
    }
    return list;
}

enum err_code command_start(uv_loop_t *loop, const struct command_options *options,
                            struct command **ret_command, struct err *err)
{
    int out[2], said[2], pidfd;
    struct command *c;
    char **environment;
    enum err_code code;
    pid_t pid;

    descendants_init();
    if (spawn_pipe(out, err) != ERR_OK) {
        return err->code;
    }
    if (spawn_pipe(said, err) != ERR_OK) {
        close_both(out);
        return err->code;
    }
    environment = environment_without(options->without);
    code = spawn(&(struct spawn){ .path = options->argv[0],
                                  .argv = (char *const *)options->argv,
                                  .env = environment,
                                  .fds = { -1, out[1], said[1], -1 } },
                 &pid, &pidfd, err);
    free(environment);
    if (code != ERR_OK) {
        close_both(out);
        close_both(said);
        return err->code;
    }
    close(out[1]);
    close(said[1]);
    c = xcalloc(1, sizeof *c);
    c->options = *options;
    c->pid = pid;
    c->pidfd = pidfd;
    watch(c, loop, out[0], said[0]);
    *ret_command = c;
    return ERR_OK;
}

void command_kill(struct command *command)
{
    kill_because(command, "the service stopped");
}
