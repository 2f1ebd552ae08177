#include "daemon/process/child.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/process/leftovers.h"
#include "daemon/process/loop.h"
#include "daemon/process/proc.h"
#include "daemon/process/spawn.h"

enum { STDIN_PIPE, STDOUT_PIPE, STDERR_PIPE, PIPES };

static bool begins_with_one(const char *variable, const char *const *prefixes)
{
    for (; prefixes && *prefixes; prefixes++) {
        if (strncmp(variable, *prefixes, strlen(*prefixes)) == 0) {
            return true;
        }
    }
    return false;
}

static const char *const marks[] = { leftovers_mark_name, NULL };

char **child_environment(char *added, const char *const *without)
{
    size_t count = 0, kept = 0;
    char **list;

    while (environ[count]) {
        count++;
    }
    list = xcalloc(count + 3, sizeof *list);
    if (added) {
        list[kept++] = added;
    }
    if (leftovers_mark()) {
        list[kept++] = leftovers_mark();
    }
    for (size_t i = 0; i < count; i++) {
        if (!begins_with_one(environ[i], without) &&
            !begins_with_one(environ[i], marks)) {
            list[kept++] = environ[i];
        }
    }
    return list;
}

static void maybe_reap(struct child *child)
{
    siginfo_t info = { 0 };

    if (child->exited ||
        waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != child->pid) {
        return;
    }
    kill(-child->pid, SIGKILL); /* its number is its own until it is reaped */
    waitpid(child->pid, &child->status, 0);
    child->exited = true;
    descendants_forget(child->pid);
    child->ended(child->arg);
}

static void look(struct child *child)
{
    bool sweeps = child->sweeps;

    maybe_reap(child);
    if (sweeps) {
        descendants_sweep(true);
    }
}

static void poll_cb(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    uv_poll_stop(poll); /* while a debugger holds it, SIGCHLD is what counts */
    look(poll->data);
}

static void signal_cb(uv_signal_t *handle, int number)
{
    (void)number;
    look(handle->data);
}

static void close_pipes(int pipes[PIPES][2])
{
    for (int i = 0; i < PIPES; i++) {
        for (int end = 0; end < 2; end++) {
            if (pipes[i][end] >= 0) {
                close(pipes[i][end]);
            }
        }
    }
}

/* Those from FIRST on; all are closed if one cannot be had. */
static enum err_code open_pipes(int pipes[PIPES][2], int first, struct err *err)
{
    for (int i = first; i < PIPES; i++) {
        if (spawn_pipe(pipes[i], err) != ERR_OK) {
            close_pipes(pipes);
            return err->code;
        }
    }
    return ERR_OK;
}

/* Takes the owner's ends, and closes the child's. */
static void take_pipes(int pipes[PIPES][2], struct child_pipes *ret_pipes)
{
    *ret_pipes = (struct child_pipes){ .in = pipes[STDIN_PIPE][1],
                                       .out = pipes[STDOUT_PIPE][0],
                                       .err = pipes[STDERR_PIPE][0] };
    pipes[STDIN_PIPE][1] = pipes[STDOUT_PIPE][0] = pipes[STDERR_PIPE][0] = -1;
    close_pipes(pipes);
}

static void watch(struct child *child, uv_loop_t *loop)
{
    descendants_know(child->pid);
    child->open_handles = 2;
    child->poll.data = child->signal.data = child;
    loop_must(uv_poll_init(loop, &child->poll, child->pidfd), "the end of a process");
    loop_must(uv_poll_start(&child->poll, UV_READABLE, poll_cb), "the end of a process");
    loop_must(uv_signal_init(loop, &child->signal), "signals");
    loop_must(uv_signal_start(&child->signal, signal_cb, SIGCHLD), "signals");
}

enum err_code child_start(struct child *child, uv_loop_t *loop,
                          const struct child_start *start, struct child_pipes *ret_pipes,
                          struct err *err)
{
    int pipes[PIPES][2] = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
    char **usual;
    enum err_code code;

    descendants_init();
    child->exited = false;
    if (open_pipes(pipes, start->has_input ? STDIN_PIPE : STDOUT_PIPE, err) != ERR_OK) {
        return err->code;
    }
    usual = child_environment(NULL, NULL);
    code = spawn(&(struct spawn){ .path = start->argv[0],
                                  .argv = start->argv,
                                  .env = start->env ? start->env : usual,
                                  .fds = { pipes[STDIN_PIPE][0], pipes[STDOUT_PIPE][1],
                                           pipes[STDERR_PIPE][1], -1 } },
                 &child->pid, &child->pidfd, err);
    free(usual);
    if (code != ERR_OK) {
        close_pipes(pipes);
        return code;
    }
    take_pipes(pipes, ret_pipes);
    watch(child, loop);
    return ERR_OK;
}

void child_kill(const struct child *child, int number)
{
    if (!child->exited) {
        kill(-child->pid, number);
    }
}

static void handle_closed(uv_handle_t *handle)
{
    struct child *child = handle->data;

    if (--child->open_handles == 0) {
        close(child->pidfd);
        child->closed(child->arg);
    }
}

void child_close(struct child *child, void (*closed)(void *arg))
{
    child->closed = closed;
    uv_close((uv_handle_t *)&child->poll, handle_closed);
    uv_close((uv_handle_t *)&child->signal, handle_closed);
}
