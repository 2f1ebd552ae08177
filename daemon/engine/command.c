#include "daemon/engine/command.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/process/child.h"
#include "daemon/process/stream.h"
#include "daemon/process/wire.h"

enum { HANDLES = 4, SAID_SIZE = 256, CAUSE_SIZE = 640 };

struct command {
    struct command_options options;
    struct child child;
    size_t bytes;
    bool out_ended, err_ended, closing;
    int open_handles;
    char said[SAID_SIZE];   /* the first line of its standard error */
    char killed[SAID_SIZE]; /* why it was; "": it was not */
    uv_timer_t deadline;
    struct stream_reader out, err;
};

static void tell_cause(const struct command *c, char cause[CAUSE_SIZE])
{
    const char *colon = c->said[0] ? ": " : "";

    if (c->killed[0]) {
        snprintf(cause, CAUSE_SIZE, "%s%s%s", c->killed, colon, c->said);
    } else if (WIFSIGNALED(c->child.status)) {
        snprintf(cause, CAUSE_SIZE, "killed by signal %d%s%s", WTERMSIG(c->child.status),
                 colon, c->said);
    } else {
        snprintf(cause, CAUSE_SIZE, "exit status %d%s%s", WEXITSTATUS(c->child.status),
                 colon, c->said);
    }
}

static void handle_closed(void *arg)
{
    struct command *c = arg;
    struct command_options options = c->options;
    char cause[CAUSE_SIZE];
    bool right =
        !c->killed[0] && WIFEXITED(c->child.status) && WEXITSTATUS(c->child.status) == 0;

    if (--c->open_handles > 0) {
        return;
    }
    tell_cause(c, cause);
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
    if (c->closing || !c->child.exited ||
        !(c->killed[0] || (c->out_ended && c->err_ended))) {
        return;
    }
    c->closing = true;
    child_close(&c->child, handle_closed);
    uv_close((uv_handle_t *)&c->deadline, handle_closed_cb);
    stream_reader_close(&c->out, handle_closed);
    stream_reader_close(&c->err, handle_closed);
}

static void kill_because(struct command *c, const char *cause)
{
    if (!c->killed[0]) {
        copy_text(c->killed, sizeof c->killed, cause);
    }
    child_kill(&c->child, SIGKILL);
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

static void child_ended(void *arg)
{
    maybe_close(arg);
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

static void watch(struct command *c, uv_loop_t *loop, const struct child_pipes *pipes)
{
    c->open_handles = HANDLES;
    c->deadline.data = c;
    uv_timer_init(loop, &c->deadline);
    uv_timer_start(&c->deadline, deadline_cb, (uint64_t)c->options.deadline_ms, 0);
    c->out.bytes = out_bytes;
    c->out.end = out_end;
    c->err.bytes = err_bytes;
    c->err.end = err_end;
    c->out.arg = c->err.arg = c;
    stream_reader_open(&c->out, loop, pipes->out);
    stream_reader_open(&c->err, loop, pipes->err);
}

enum err_code command_start(uv_loop_t *loop, const struct command_options *options,
                            struct command **ret_command, struct err *err)
{
    struct command *c = xcalloc(1, sizeof *c);
    char **environment = child_environment(NULL, options->without);
    struct child_pipes pipes;
    enum err_code code;

    c->options = *options;
    c->child.ended = child_ended;
    c->child.arg = c;
    code = child_start(
        &c->child, loop,
        &(struct child_start){ .argv = (char *const *)options->argv, .env = environment },
        &pipes, err);
    free(environment);
    if (code != ERR_OK) {
        free(c);
        return code;
    }
    watch(c, loop, &pipes);
    *ret_command = c;
    return ERR_OK;
}

void command_kill(struct command *command)
{
    kill_because(command, "the service stopped");
}
