#include "workloads/worker/self.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "workloads/worker/ending.h"
#include "workloads/worker/status.h"

int self_spawn(const char *const *words, const int *fds, int count, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);

    if (error) {
        return error;
    }
    for (int i = 0; i < count && !error; i++) {
        if (fds[i] >= 0) {
            error = posix_spawn_file_actions_adddup2(&actions, fds[i], i);
        }
    }
    if (!error) {
        error = posix_spawn(ret_pid, "/proc/self/exe", &actions, NULL,
                            (char *const *)words, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

enum { LINE_MAX_BYTES = 1 << 16, WORDS_MAX = 256 };

void self_again(void)
{
    static char line[LINE_MAX_BYTES];
    char *words[WORDS_MAX + 1];
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t length = file ? fread(line, 1, sizeof line, file) : 0;
    int count = 0;

    if (file) {
        fclose(file);
    }
    for (size_t at = 0; at < length && count < WORDS_MAX; at += strlen(line + at) + 1) {
        words[count++] = line + at;
    }
    words[count] = NULL;
    if (length > 0 && length < sizeof line && count < WORDS_MAX) {
        execv("/proc/self/exe", words);
    }
}

static int end_early_cb(struct run *run, const char *outcome, const char *cause)
{
    (void)run;
    printf("%s: %s\n", outcome, cause);
    return STATUS_UNCHECKED;
}

void self_begin(const char *name)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name); /* it was executed as "exe" */
    run_on_early_end(end_early_cb);
}
