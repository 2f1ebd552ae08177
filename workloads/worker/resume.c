#include "workloads/worker/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workloads/worker/circumstances.h"
#include "workloads/worker/run.h"
#include "workloads/worker/status.h"

enum { CAUSE_SIZE = 768, NUMBER_SIZE = 24, PATH_SIZE = 48 };

/* Words of a command line: program and case, and the circumstances with their end. */
enum { CASE_WORDS = 16, CIRCUMSTANCES_WORDS = 5 };

static int end_early_cb(struct run *run, const char *outcome, const char *cause)
{
    (void)run;
    printf("%s: %s\n", outcome, cause);
    return STATUS_UNCHECKED;
}

int resume_run(const struct args *args, const struct backend *backend)
{
    static struct run run;
    prctl(PR_SET_PDEATHSIG, SIGKILL);    /* nobody waits for what it would compute then */
    prctl(PR_SET_NAME, "reprod-worker"); /* it was executed by a number */
    run_init(&run, args, backend);
    run_on_early_end(end_early_cb);
    run_prepare(&run);
    backend->warm(&run);
    run.workload->resume(&run, STDIN_FILENO);
    run_finish(&run);
    return STATUS_OK;
}

/* Executes the descriptor PROGRAM with FILE and OUTPUT as standard input and output.
 * Returns 0 or an error of errno, as the next one. */
static int spawn_program(int program, const char *const *words, int file, int output,
                         pid_t *ret_pid)
{
    char path[PATH_SIZE];
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) {
        return error;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
    error = posix_spawn_file_actions_adddup2(&actions, file, STDIN_FILENO);
    if (!error) {
        error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    }
    if (!error) {
        error = posix_spawn(ret_pid, path, &actions, NULL, (char *const *)words, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* The circumstances of this process, but for the load, which is there already. */
static void add_circumstances(const char **words, char texts[2][NUMBER_SIZE])
{
    const struct circumstances *now = circumstances_now();
    if (now->is_poisoned) {
        snprintf(texts[0], NUMBER_SIZE, "%08" PRIx32, now->pattern);
        *words++ = "--memory-poison";
        *words++ = texts[0];
    }
    if (now->is_jittered) {
        snprintf(texts[1], NUMBER_SIZE, "%" PRIu64, now->jitter);
        *words++ = "--allocation-jitter";
        *words++ = texts[1];
    }
    *words = NULL;
}

static int spawn_resume(const struct run *run, int file, int output, pid_t *ret_pid)
{
    char seed[NUMBER_SIZE], threads[NUMBER_SIZE], circumstances[2][NUMBER_SIZE];
    const char *dtype = dtype_name(run->dtype), *device = run->backend->device_id();
    const char *words[CASE_WORDS + CIRCUMSTANCES_WORDS] = {
        "reprod-worker", "--resume",
        "--workload",    run->workload->name,
        "--variant",     run->variant->name,
        "--size",        run->size->name,
        "--dtype",       dtype,
        "--seed",        seed,
        "--threads",     threads,
        "--device",      device,
    };
    /* This very file, whatever has been installed in its place meanwhile. */
    int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (program < 0) {
        return errno;
    }
    snprintf(seed, sizeof(seed), "%" PRIu64, run->seed);
    snprintf(threads, sizeof(threads), "%d", run->threads);
    add_circumstances(words + CASE_WORDS, circumstances);
    int error = spawn_program(program, words, file, output, ret_pid);
    close(program);
    return error;
}

/* The first line of what comes from OUTPUT, which is read to its end and closed. */
static void read_cause(int output, char ret_cause[CAUSE_SIZE])
{
    FILE *stream = fdopen(output, "r");
    ret_cause[0] = '\0';
    if (!stream) {
        close(output);
        return;
    }
    if (fgets(ret_cause, CAUSE_SIZE, stream)) {
        ret_cause[strcspn(ret_cause, "\n")] = '\0';
    }
    while (fgetc(stream) != EOF) {
    }
    fclose(stream);
}

void run_resume(struct run *run, int file)
{
    char cause[CAUSE_SIZE];
    int output[2];
    int status;
    pid_t pid = -1;
    if (pipe2(output, O_CLOEXEC) != 0) {
        run_infra(run, "cannot create a pipe: %s", strerror(errno));
    }
    int error = spawn_resume(run, file, output[1], &pid);
    close(output[1]);
    if (error) {
        run_infra(run, "cannot start a process that resumes: %s", strerror(error));
    }
    read_cause(output[0], cause);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        run_infra(run, "the process that resumes was ended by signal %d (%s)",
                  WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    if (WEXITSTATUS(status) != STATUS_OK) {
        run_infra(run, "the process that resumes ended with status %d: %s",
                  WEXITSTATUS(status), cause[0] ? cause : "the log says why");
    }
}
