#include "workloads/worker/load.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workloads/worker/circumstances.h"
#include "workloads/worker/self.h"
#include "workloads/worker/status.h"

enum { LINE_SIZE = 768, NUMBER_SIZE = 16 };

static const char ready[] = "computing";

static struct {
    int count;
    int stdin_end; /* the end that is ours of the standard input of all of them */
    pid_t pids[CONTENTION_MAX];
    int outputs[CONTENTION_MAX];
    const struct backend_load *within; /* NULL: it has not been started */
} load;

static bool is_wanted(void)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

    return poll(&input, 1, 0) == 0;
}

int load_run(int threads, const struct backend *backend)
{
    static struct run run;

    self_begin("reprod-load");
    run = (struct run){ .threads = threads, .backend = backend };
    if (!backend->load) {
        printf("load of this device is within the process of a run (--contention)\n");
        return STATUS_UNCHECKED;
    }
    backend->open(&run);
    backend->load(&run);
    puts(ready);
    fflush(stdout);
    while (is_wanted()) {
        backend->load(&run);
    }
    return STATUS_OK;
}

static int spawn_one(const struct run *run, int input)
{
    char threads[NUMBER_SIZE];
    const char *const words[] = {
        "reprod-worker",           "--load", "--threads", threads, "--device",
        run->backend->device_id(), NULL,
    };
    int output[2];
    int fds[2];
    int error;

    snprintf(threads, sizeof threads, "%d", run->threads);
    if (pipe2(output, O_CLOEXEC) != 0) {
        return errno;
    }
    fds[0] = input;
    fds[1] = output[1];
    error = self_spawn(words, fds, 2, &load.pids[load.count]);
    close(output[1]);
    if (error) {
        close(output[0]);
        return error;
    }
    load.outputs[load.count++] = output[0];
    return 0;
}

/* Waits until the process numbered INDEX computes, or says why it cannot. */
static void await(struct run *run, int index)
{
    char line[LINE_SIZE] = "";
    size_t length = 0;
    ssize_t got = 1;

    while (got > 0 && length < sizeof line - 1 && !memchr(line, '\n', length)) {
        got = read(load.outputs[index], line + length, sizeof line - 1 - length);
        length += got > 0 ? (size_t)got : 0;
        got = got < 0 && errno == EINTR ? 1 : got;
    }
    line[length] = '\0';
    line[strcspn(line, "\n")] = '\0';
    close(load.outputs[index]);
    if (strcmp(line, ready) != 0) {
        run_infra(run, "load process %d of %d does not compute: %s", index + 1,
                  load.count, line[0] ? line : "it ended, the log may say why");
    }
}

static void start_within(struct run *run, int wanted)
{
    const char *cause;

    load.within = run->backend->load_within;
    cause = load.within->start(wanted);
    if (cause) {
        run_infra(run, "the load of %d %s does not compute: %s", wanted,
                  load.within->what, cause);
    }
}

static void start_processes(struct run *run, int wanted)
{
    int input[2];
    int error = 0;

    if (pipe2(input, O_CLOEXEC) != 0) {
        run_infra(run, "cannot start load processes: %s", strerror(errno));
    }
    load.stdin_end = input[1];
    while (load.count < wanted && !error) {
        error = spawn_one(run, input[0]);
    }
    close(input[0]);
    if (error) {
        run_infra(run, "cannot start load process %d of %d: %s", load.count + 1, wanted,
                  strerror(error));
    }
    for (int i = 0; i < load.count; i++) {
        await(run, i);
    }
}

void load_start(struct run *run)
{
    int wanted = circumstances_now()->contention;

    if (wanted && run->backend->load_within) {
        start_within(run, wanted);
    } else if (wanted) {
        start_processes(run, wanted);
    }
}

void load_check(struct run *run)
{
    const char *cause = load.within ? load.within->check() : NULL;

    if (cause) {
        run_infra(run, "the load of %d %s ended before the run did: %s",
                  circumstances_now()->contention, load.within->what, cause);
    }
    for (int i = 0; i < load.count; i++) {
        siginfo_t info = { 0 };

        if (waitid(P_PID, (id_t)load.pids[i], &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid != 0) {
            run_infra(run, "load process %d of %d ended before the run did", i + 1,
                      load.count);
        }
    }
}

void load_stop(void)
{
    if (load.within) {
        load.within->stop();
        load.within = NULL;
    }
    if (load.count == 0) {
        return;
    }
    close(load.stdin_end);
    for (int i = 0; i < load.count; i++) {
        kill(load.pids[i], SIGKILL);
    }
    for (int i = 0; i < load.count; i++) {
        while (waitpid(load.pids[i], NULL, 0) < 0 && errno == EINTR) {
        }
    }
    load.count = 0;
}
