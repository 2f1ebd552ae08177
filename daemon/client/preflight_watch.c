#include "daemon/client/preflight_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/buf.h"
#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/client/local.h"
#include "daemon/client/preflight_say.h"

enum { END_MS = 1500, KILL_MS = 500, PAUSE_MS = 20, READ_SIZE = 16384 };

static volatile sig_atomic_t told_to_end;

static void on_signal(int number)
{
    (void)number;
    told_to_end = 1;
}

static void catch_signals(void)
{
    /* Without SA_RESTART: poll has to return. */
    const struct sigaction end = { .sa_handler = on_signal };

    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
}

static void send_line(int fd, json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT);
    size_t length = strlen(text), done = 0;

    text[length] = '\n'; /* instead of the NUL */
    while (done <= length) {
        ssize_t n = write(fd, text + done, length + 1 - done);

        if (n < 0 && errno != EINTR) {
            break;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    free(text);
    json_decref(value);
}

void watch_phase(int fd, const char *phase)
{
    send_line(fd, json_pack("{s:o}", "phase", preflight_text(phase)));
}

void watch_report(int fd, const json_t *report)
{
    send_line(fd, json_pack("{s:O}", "report", (json_t *)report));
}

static void take_line(const char *line, struct watched *watched)
{
    json_t *value = json_loads(line, 0, NULL);
    const char *phase = in_text(value, "phase");
    json_t *report = json_object_get(value, "report");

    if (phase) {
        copy_text(watched->phase, sizeof watched->phase, phase);
    }
    if (report) {
        json_decref(watched->report);
        watched->report = json_incref(report);
    }
    json_decref(value);
}

/* Of what has come, the lines that are whole. */
static void take_lines(struct buf *text, struct watched *watched)
{
    struct buf rest = BUF_INIT;
    char *at = text->data, *end = text->data + text->length, *newline;

    while (at < end && (newline = memchr(at, '\n', (size_t)(end - at)))) {
        *newline = '\0';
        take_line(at, watched);
        at = newline + 1;
    }
    if (at < end) {
        buf_add(&rest, at, (size_t)(end - at));
    }
    buf_release(text);
    *text = rest;
}

static void listen_to(int fd, int64_t until_ms, struct watched *watched)
{
    struct buf text = BUF_INIT;
    char bytes[READ_SIZE];

    while (!told_to_end) {
        struct pollfd wanted = { .fd = fd, .events = POLLIN };
        int64_t left = until_ms - clock_monotonic_ms();
        int ready = left > 0 ? poll(&wanted, 1, (int)(left < 1000 ? left : 1000)) : -1;
        ssize_t n = ready > 0 ? read(fd, bytes, sizeof bytes) : -1;

        if (left <= 0) {
            break;
        }
        if (ready > 0 && n == 0) {
            watched->ended = true;
            break;
        }
        if (n > 0) {
            buf_add(&text, bytes, (size_t)n);
            take_lines(&text, watched);
        }
    }
    buf_release(&text);
}

/* The child, and what became ours when it ended.  The service ends in order when its
 * parent is killed; what does not end after that is killed, and what cannot be is left.
 */
static void end_all(pid_t child)
{
    const struct timespec pause = { 0, PAUSE_MS * 1000000L };
    int64_t begun_ms = clock_monotonic_ms();

    kill(child, SIGKILL);
    for (;;) {
        int64_t ms = clock_monotonic_ms() - begun_ms;
        pid_t ended = waitpid(-1, NULL, WNOHANG);

        if ((ended < 0 && errno == ECHILD) || ms > END_MS + KILL_MS ||
            (ended == 0 && local_has_only_spared())) {
            return;
        }
        if (ended == 0) {
            if (ms > END_MS) {
                local_kill_children();
            }
            nanosleep(&pause, NULL);
        }
    }
}

/* In the child: never returns. */
static void become_work(watch_fn *work, void *arg, pid_t parent, const char *folder,
                        int fd)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    /* Standard output is for one line, which is not said here. */
    if (getppid() == parent && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) {
        work(arg, folder, fd);
    }
    exit(0);
}

enum err_code watch_run(watch_fn *work, void *arg, int64_t until_ms,
                        struct watched *ret_watched, struct err *err)
{
    char *folder;
    pid_t child, parent = getpid();
    int ends[2];

    *ret_watched = (struct watched){ .report = NULL };
    folder = local_scratch_make(err);
    if (!folder) {
        return err->code;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        err_set_errno(err, errno, "pipe");
        local_scratch_remove(folder);
        return err->code;
    }
    local_spare_children();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    catch_signals();
    child = fork();
    if (child == 0) {
        close(ends[0]);
        become_work(work, arg, parent, folder, ends[1]);
    }
    close(ends[1]);
    if (child > 0) {
        listen_to(ends[0], until_ms, ret_watched);
        end_all(child);
    } else {
        err_set_errno(err, errno, "fork");
    }
    close(ends[0]);
    local_scratch_remove(folder);
    return child > 0 ? ERR_OK : err->code;
}
