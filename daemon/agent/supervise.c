#include "daemon/agent/supervise.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/agent/log_tail.h"
#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/process/loop.h"
#include "daemon/process/proc.h"
#include "daemon/process/spawn.h"
#include "daemon/process/stream.h"
#include "daemon/process/wire.h"

enum { PIPE_BOUND_MS = 500, LAST_LOOK_MS = 1 };

enum state {
    RUNNING,
    TERM_SENT,
    KILL_SENT,
    REAPED,   /* waiting for the ends of the pipes */
    REPORTED, /* closing handles */
    ABANDONED /* reported as stuck, not reaped yet */
};

struct supervised {
    struct supervisor *supervisor;
    struct supervised *next;
    const struct supervised_events *events;
    void *arg;
    enum state state;
    pid_t pid;
    int pidfd;
    int questions; /* the writing end of its standard input; -1: it is not asked */
    int64_t started_ns;
    int64_t lines_before; /* that do not count any more */
    int64_t max_lines, max_bytes, bytes;
    bool patient;
    bool data_ended, log_ended;
    bool last_look; /* REAPED: the pipes are read once more, then it is over */
    int open_handles;
    uv_poll_t poll;
    uv_timer_t timer;
    struct stream_reader data, log;
    struct wire_lines lines;
    struct log_tail tail;
    struct run_exit exit;
};

static void handle_closed(void *arg)
{
    struct supervised *s = arg;
    struct supervised **at = &s->supervisor->first;

    if (--s->open_handles > 0 || s->state != REPORTED) {
        return;
    }
    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
    wire_lines_release(&s->lines);
    free(s);
}

static void handle_closed_cb(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

static void poll_closed_cb(uv_handle_t *handle)
{
    struct supervised *s = handle->data;

    close(s->pidfd);
    handle_closed(s);
}

static void close_questions(struct supervised *s)
{
    if (s->questions >= 0) {
        close(s->questions);
        s->questions = -1;
    }
}

static void report(struct supervised *s, enum state next)
{
    char log[LOG_TAIL_SIZE];

    s->state = next;
    close_questions(s);
    uv_close((uv_handle_t *)&s->timer, handle_closed_cb);
    stream_reader_close(&s->data, handle_closed);
    stream_reader_close(&s->log, handle_closed);
    s->exit.log = log;
    s->exit.log_length = log_tail_copy(&s->tail, log);
    s->exit.log_bytes = s->tail.written;
    s->events->finished(s->arg, &s->exit);
    s->exit.log = NULL;
}

static void maybe_finish(struct supervised *s)
{
    if (s->state == REAPED && s->data_ended && s->log_ended) {
        report(s, REPORTED);
    }
}

static void signal_group(const struct supervised *s, int number)
{
    kill(-s->pid, number);
}

static void set_timer(struct supervised *s, int64_t ms);

static void ladder_step(struct supervised *s)
{
    if (s->state == RUNNING && s->patient) {
        s->state = TERM_SENT;
        signal_group(s, SIGTERM);
    } else if (s->state == RUNNING || s->state == TERM_SENT) {
        s->state = KILL_SENT;
        signal_group(s, SIGKILL);
    } else if (s->state == KILL_SENT) {
        s->exit.reason = EXIT_REASON_STUCK;
        s->exit.wall_ms = (double)(clock_monotonic_ns() - s->started_ns) / 1e6;
        report(s, ABANDONED);
        return;
    }
    set_timer(s, s->supervisor->grace_ms);
}

static void data_end(void *arg);

/* The process is gone, but something holds an end of a pipe open, and the time for that
 * is over.  What the worker wrote is still read: the pipe may have waited because the
 * daemon did not read, or because this process did not run. */
static void pipes_bound(struct supervised *s)
{
    bool paused = s->data.paused && !s->data_ended;

    if (paused || !s->last_look) {
        s->last_look = !paused;
        set_timer(s, s->last_look ? LAST_LOOK_MS : PIPE_BOUND_MS);
        return;
    }
    s->log_ended = true;
    data_end(s);
}

static void timer_cb(uv_timer_t *timer)
{
    struct supervised *s = timer->data;

    if (s->state == RUNNING) {
        s->exit.reason = EXIT_REASON_TIMEOUT;
    }
    if (s->state == REAPED) {
        pipes_bound(s);
    } else {
        ladder_step(s);
    }
}

static void set_timer(struct supervised *s, int64_t ms)
{
    uv_update_time(s->supervisor->loop);
    uv_timer_start(&s->timer, timer_cb, (uint64_t)ms, 0);
}

void supervised_count_anew(struct supervised *s, int64_t timeout_ms, int64_t max_lines)
{
    if (s->state == RUNNING) {
        s->started_ns = clock_monotonic_ns();
        s->lines_before = s->lines.count;
        s->max_lines = max_lines;
        s->bytes = s->tail.written = 0;
        set_timer(s, timeout_ms);
    }
}

bool supervised_ask(struct supervised *s, const char *line, size_t length)
{
    assert(length <= PIPE_BUF); /* all of it or nothing */
    return s->state == RUNNING && s->questions >= 0 &&
           write(s->questions, line, length) == (ssize_t)length;
}

void supervised_so_far(const struct supervised *s, char ret_log[LOG_TAIL_SIZE],
                       struct run_exit *ret_exit)
{
    *ret_exit = (struct run_exit){
        .exit_code = -1,
        .wall_ms = (double)(clock_monotonic_ns() - s->started_ns) / 1e6,
        .log = ret_log,
        .log_length = log_tail_copy(&s->tail, ret_log),
        .log_bytes = s->tail.written,
    };
}

void supervised_extend(struct supervised *s, int64_t ms)
{
    if (s->state == RUNNING) {
        set_timer(s, (int64_t)uv_timer_get_due_in(&s->timer) + ms);
    }
}

void supervised_kill(struct supervised *s, enum exit_reason reason)
{
    if (s->state == RUNNING) {
        s->exit.reason = reason;
        ladder_step(s);
    }
}

static void take_exit(struct supervised *s, int status, const struct rusage *usage)
{
    if (WIFEXITED(status)) {
        s->exit.exit_code = WEXITSTATUS(status);
    } else {
        s->exit.signal = WTERMSIG(status);
    }
    s->exit.max_rss_kb = usage->ru_maxrss;
    s->exit.wall_ms = (double)(clock_monotonic_ns() - s->started_ns) / 1e6;
}

/* Whether it is dead and ours to reap.  While a debugger holds a dead process it is not.
 */
static bool is_reapable(const struct supervised *s)
{
    siginfo_t info = { 0 };

    return waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == s->pid;
}

/* The group is killed first: until the leader is reaped, its number cannot be anybody
 * else's. */
static void reap(struct supervised *s)
{
    struct rusage usage;
    int status;

    signal_group(s, SIGKILL);
    if (wait4(s->pid, &status, 0, &usage) != s->pid) {
        assert(!"reapable, but not reaped");
    }
    descendants_forget(s->pid);
    descendants_sweep(false);
    uv_close((uv_handle_t *)&s->poll, poll_closed_cb);
    if (s->state == ABANDONED) {
        s->state = REPORTED;
        return;
    }
    take_exit(s, status, &usage);
    s->state = REAPED;
    set_timer(s, PIPE_BOUND_MS);
    maybe_finish(s);
}

static void poll_cb(uv_poll_t *poll, int status, int events)
{
    struct supervised *s = poll->data;

    (void)status;
    (void)events;
    if (is_reapable(s)) {
        reap(s);
    } else {
        uv_poll_stop(poll); /* SIGCHLD tells when the debugger lets go */
    }
}

static void child_signal_cb(uv_signal_t *handle, int number)
{
    struct supervisor *supervisor = handle->data;

    (void)number;
    for (struct supervised *s = supervisor->first; s; s = s->next) {
        if (s->state != REAPED && s->state != REPORTED && is_reapable(s)) {
            reap(s);
        }
    }
    descendants_sweep(false);
}

static void flood(struct supervised *s)
{
    s->data_ended = true;
    stream_reader_pause(&s->data, true);
    if (s->state == REAPED) {
        s->exit.reason =
            s->exit.reason == EXIT_REASON_EXITED ? EXIT_REASON_FLOOD : s->exit.reason;
        maybe_finish(s);
    } else {
        s->patient = false;
        supervised_kill(s, EXIT_REASON_FLOOD);
    }
}

static int line_cb(void *arg, const char *text, size_t length)
{
    struct supervised *s = arg;

    if (s->lines.count - s->lines_before > s->max_lines) {
        return ERR_TOO_LARGE;
    }
    s->events->line(s->arg, s->lines.count - s->lines_before, text, length, true);
    return 0;
}

static void data_bytes(void *arg, const char *data, size_t length)
{
    struct supervised *s = arg;

    if (s->data_ended) {
        return;
    }
    s->bytes += (int64_t)length;
    if (s->bytes > s->max_bytes ||
        wire_lines_feed(&s->lines, data, length, line_cb, s) != 0) {
        flood(s);
    }
}

static void data_end(void *arg)
{
    struct supervised *s = arg;
    size_t rest = wire_lines_rest(&s->lines);

    if (!s->data_ended && rest) {
        s->events->line(s->arg, s->lines.count - s->lines_before + 1,
                        s->lines.partial.data, rest, false);
    }
    s->data_ended = true;
    maybe_finish(s);
}

static void log_bytes(void *arg, const char *data, size_t length)
{
    struct supervised *s = arg;

    log_tail_add(&s->tail, data, length);
}

static void log_end(void *arg)
{
    struct supervised *s = arg;

    s->log_ended = true;
    maybe_finish(s);
}

static void watch(struct supervised *s, int data, int log, int64_t timeout_ms)
{
    struct supervisor *supervisor = s->supervisor;

    descendants_know(s->pid);
    s->open_handles = 4;
    s->poll.data = s->timer.data = s;
    loop_must(uv_poll_init(supervisor->loop, &s->poll, s->pidfd), "the end of a process");
    loop_must(uv_poll_start(&s->poll, UV_READABLE, poll_cb), "the end of a process");
    uv_timer_init(supervisor->loop, &s->timer);
    set_timer(s, timeout_ms);
    s->data.bytes = data_bytes;
    s->data.end = data_end;
    s->log.bytes = log_bytes;
    s->log.end = log_end;
    s->data.arg = s->log.arg = s;
    stream_reader_open(&s->data, supervisor->loop, data);
    stream_reader_open(&s->log, supervisor->loop, log);
    stream_reader_pause(&s->data, supervisor->paused);
    s->next = supervisor->first;
    supervisor->first = s;
}

/* The command line of reprod-launch: its options, then the program.  The array is the
 * caller's, the texts are borrowed. */
static const char **launch_argv(const char *launch, const struct supervise *supervise,
                                const char *parent)
{
    static const char file_size[] = "68719476736"; /* 64 GiB: a bound on a runaway */
    const char *const head[] = { launch, "--parent",    parent,   "--core",
                                 "0",    "--file-size", file_size };
    size_t count = 0;
    const char **argv, **at;

    while (supervise->args[count]) {
        count++;
    }
    argv = xcalloc(COUNT_OF(head) + 5 + count, sizeof *argv);
    memcpy(argv, head, sizeof head);
    at = argv + COUNT_OF(head);
    if (supervise->directory) {
        *at++ = "--directory";
        *at++ = supervise->directory;
    }
    *at++ = "--";
    *at++ = supervise->program;
    memcpy(at, supervise->args, count * sizeof *at);
    return argv;
}

enum pipe_of { DATA, LOG, QUESTIONS, PIPE_COUNT };

static void close_pipes(int pipes[PIPE_COUNT][2])
{
    for (int i = 0; i < PIPE_COUNT; i++) {
        for (int end = 0; end < 2 && pipes[i][end] >= 0; end++) {
            close(pipes[i][end]);
        }
    }
}

static enum err_code open_pipes(bool asked, int ret_pipes[PIPE_COUNT][2], struct err *err)
{
    memset(ret_pipes, -1, sizeof(int[PIPE_COUNT][2]));
    for (int i = 0; i < (asked ? PIPE_COUNT : QUESTIONS); i++) {
        if (spawn_pipe(ret_pipes[i], err) != ERR_OK) {
            close_pipes(ret_pipes);
            return err->code;
        }
    }
    /* What does not take a line at once is not waited for. */
    if (asked && fcntl(ret_pipes[QUESTIONS][1], F_SETFL, O_NONBLOCK) != 0) {
        close_pipes(ret_pipes);
        return err_set_errno(err, errno, "fcntl");
    }
    return ERR_OK;
}

/* Starts the process; the reading ends of its pipes are the caller's. */
static enum err_code launch(struct supervised *s, const struct supervise *supervise,
                            int *ret_data, int *ret_log, struct err *err)
{
    struct spawn how = { .path = s->supervisor->launch, .env = supervise->env };
    int pipes[PIPE_COUNT][2];
    char parent[16];
    const char **argv;

    if (open_pipes(supervise->asked, pipes, err) != ERR_OK) {
        return err->code;
    }
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    argv = launch_argv(how.path, supervise, parent);
    how.argv = (char *const *)argv;
    memcpy(how.fds,
           (int[SPAWN_FDS]){ pipes[QUESTIONS][0], pipes[LOG][1], pipes[LOG][1], -1 },
           sizeof how.fds);
    how.fds[supervise->data_fd] = pipes[DATA][1];
    if (spawn(&how, &s->pid, &s->pidfd, err) != ERR_OK) {
        free(argv);
        close_pipes(pipes);
        return err->code;
    }
    free(argv);
    close(pipes[DATA][1]);
    close(pipes[LOG][1]);
    if (supervise->asked) {
        close(pipes[QUESTIONS][0]);
    }
    *ret_data = pipes[DATA][0];
    *ret_log = pipes[LOG][0];
    s->questions = pipes[QUESTIONS][1];
    return ERR_OK;
}

enum err_code supervisor_start(struct supervisor *supervisor,
                               const struct supervise *supervise,
                               const struct supervised_events *events, void *arg,
                               struct supervised **ret_supervised, struct err *err)
{
    struct supervised *s = xcalloc(1, sizeof *s);
    int data = -1, log = -1;

    s->supervisor = supervisor;
    s->questions = -1;
    s->started_ns = clock_monotonic_ns();
    if (launch(s, supervise, &data, &log, err) != ERR_OK) {
        free(s);
        return err->code;
    }
    s->events = events;
    s->arg = arg;
    s->max_lines = supervise->max_lines;
    s->max_bytes = supervise->max_bytes;
    s->patient = supervise->patient;
    s->exit.exit_code = -1;
    wire_lines_init(&s->lines, WIRE_LINE_MAX);
    watch(s, data, log, supervise->timeout_ms);
    *ret_supervised = s;
    return ERR_OK;
}

pid_t supervised_pid(const struct supervised *s)
{
    return s->pid;
}

void supervisor_init(struct supervisor *supervisor, uv_loop_t *loop)
{
    supervisor->loop = loop;
    supervisor->first = NULL;
    supervisor->paused = supervisor->ending = false;
    descendants_init();
    loop_must(uv_signal_init(loop, &supervisor->child_signal), "signals");
    supervisor->child_signal.data = supervisor;
    loop_must(uv_signal_start(&supervisor->child_signal, child_signal_cb, SIGCHLD),
              "signals");
}

bool supervisor_is_busy(const struct supervisor *supervisor)
{
    for (const struct supervised *s = supervisor->first; s; s = s->next) {
        if (s->state != REPORTED && s->state != ABANDONED) {
            return true;
        }
    }
    return descendants_sweep(false) > 0;
}

void supervisor_kill_all(struct supervisor *supervisor)
{
    supervisor->ending = true;
    for (struct supervised *s = supervisor->first; s; s = s->next) {
        s->patient = false;
        if (s->state == TERM_SENT) {
            ladder_step(s);
        }
        supervised_kill(s, EXIT_REASON_CANCELLED);
    }
}

void supervisor_pause(struct supervisor *supervisor, bool paused)
{
    supervisor->paused = paused;
    for (struct supervised *s = supervisor->first; s; s = s->next) {
        if (s->state != REPORTED && s->state != ABANDONED && !s->data_ended) {
            stream_reader_pause(&s->data, paused);
        }
    }
}

static void signal_closed_cb(uv_handle_t *handle)
{
    struct supervisor *supervisor = handle->data;

    supervisor->closed(supervisor->closed_arg);
}

void supervisor_close(struct supervisor *supervisor, void (*closed)(void *arg), void *arg)
{
    supervisor->closed = closed;
    supervisor->closed_arg = arg;
    for (struct supervised *s = supervisor->first; s; s = s->next) {
        if (s->state == ABANDONED) {
            s->state = REPORTED;
            uv_close((uv_handle_t *)&s->poll, poll_closed_cb);
        }
    }
    uv_close((uv_handle_t *)&supervisor->child_signal, signal_closed_cb);
}
