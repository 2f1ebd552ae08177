#include "workloads/worker/load.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workloads/worker/circumstances.h"
#include "workloads/worker/run.h"
#include "workloads/worker/status.h"

enum { LINE_SIZE = 768, NUMBER_SIZE = 16, PATH_SIZE = 48 };

static const char ready[] = "computing";

static struct {
    int count;
    int stdin_end; /* the end that is ours of the standard input of all of them */
    pid_t pids[CONTENTION_MAX];
    int outputs[CONTENTION_MAX];
} load;

static int end_early_cb(struct run *run, const char *outcome, const char *cause)
{
    (void)run;
    printf("%s: %s\n", outcome, cause);
    return STATUS_UNCHECKED;
}

static bool is_wanted(void)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    return poll(&input, 1, 0) == 0;
}

int load_run(const struct args *args, const struct backend *backend)
{
    static struct run run;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "reprod-load"); /* it was executed by a number */
    run = (struct run){ .threads = args->threads, .backend = backend };
    run_on_early_end(end_early_cb);
    backend->open(&run);
    backend->load(&run);
    puts(ready);
    fflush(stdout);
    while (is_wanted()) {
        backend->load(&run);
    }
    return STATUS_OK;
}

/* Executes the descriptor PROGRAM.  Returns 0 or an error of errno, as the next one. */
static int spawn_program(int program, const char *const *words, int input, int output,
                         pid_t *ret_pid)
{
    char path[PATH_SIZE];
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) {
        return error;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
    error = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (!error) {
        error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    }
    if (!error) {
        error = posix_spawn(ret_pid, path, &actions, NULL, (char *const *)words, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int spawn_one(const struct run *run, int program, int input)
{
    char threads[NUMBER_SIZE];
    const char *const words[] = {
        "reprod-worker",           "--load", "--threads", threads, "--device",
        run->backend->device_id(), NULL,
    };
    int output[2];
    snprintf(threads, sizeof(threads), "%d", run->threads);
    if (pipe2(output, O_CLOEXEC) != 0) {
        return errno;
    }
    int error = spawn_program(program, words, input, output[1], &load.pids[load.count]);
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
    while (got > 0 && length < sizeof(line) - 1 && !memchr(line, '\n', length)) {
        got = read(load.outputs[index], line + length, sizeof(line) - 1 - length);
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

void load_start(struct run *run)
{
    int wanted = circumstances_now()->contention;
    int input[2];
    int error = 0;
    if (wanted == 0) {
        return;
    }
    /* This very file, whatever has been installed in its place meanwhile. */
    int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (program < 0 || pipe2(input, O_CLOEXEC) != 0) {
        run_infra(run, "cannot start load processes: %s", strerror(errno));
    }
    load.stdin_end = input[1];
    while (load.count < wanted && !error) {
        error = spawn_one(run, program, input[0]);
    }
    close(program);
    close(input[0]);
    if (error) {
        run_infra(run, "cannot start load process %d of %d: %s", load.count + 1, wanted,
                  strerror(error));
    }
    for (int i = 0; i < load.count; i++) {
        await(run, i);
    }
}

void load_check(struct run *run)
{
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
