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
#include "workloads/worker/probes.h"
#include "workloads/worker/run.h"
#include "workloads/worker/status.h"

enum { CAUSE_SIZE = 768, NUMBER_SIZE = 24, PATH_SIZE = 48 };
enum { CAPTURE_SIZE = 2 * NUMBER_SIZE + PROBES_PLACE_MAX };

/* Descriptors from here on are none that the process to be started gets. */
enum { FIRST_PRIVATE_FD = 10 };

/* Words of a command line: program and case, circumstances, and probes with their end. */
enum { CASE_WORDS = 18, CIRCUMSTANCES_WORDS = 4, PROBES_WORDS = 9 };

static int end_early_cb(struct run *run, const char *outcome, const char *cause)
{
    (void)run;
    printf("%s: %s\n", outcome, cause);
    return STATUS_UNCHECKED;
}

int resume_run(const struct args *args, const struct backend *backend)
{
    static struct run run;
    static struct probes probes;
    prctl(PR_SET_PDEATHSIG, SIGKILL);    /* nobody waits for what it would compute then */
    prctl(PR_SET_NAME, "reprod-worker"); /* it was executed by a number */
    run_init(&run, args, backend);
    run_on_early_end(end_early_cb);
    run_prepare(&run);
    run.iteration = args->iterations - 1;
    if (probes_wanted(&args->probes)) {
        probes_init(&probes, &args->probes, RESUME_RECORDS_FD);
        run.probes = &probes;
    }
    backend->warm(&run);
    run.workload->resume(&run, STDIN_FILENO);
    if (run.probes) {
        probes_flush(run.probes);
    }
    run_finish(&run);
    return STATUS_OK;
}

/* What the process gets beside its words. */
struct descriptors {
    int program, file, output;
    int records; /* -1: none */
};

/* Executes the program with the file and the output as standard input and output.
 * Returns 0 or an error of errno, as the next one. */
static int spawn_program(const struct descriptors *from, const char *const *words,
                         pid_t *ret_pid)
{
    char path[PATH_SIZE];
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) {
        return error;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", from->program);
    error = posix_spawn_file_actions_adddup2(&actions, from->file, STDIN_FILENO);
    if (!error) {
        error = posix_spawn_file_actions_adddup2(&actions, from->output, STDOUT_FILENO);
    }
    if (!error && from->records >= 0) {
        error =
            posix_spawn_file_actions_adddup2(&actions, from->records, RESUME_RECORDS_FD);
    }
    if (!error) {
        error = posix_spawn(ret_pid, path, &actions, NULL, (char *const *)words, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* The circumstances of this process, but for the load, which is there already. */
static const char **add_circumstances(const char **words, char texts[2][NUMBER_SIZE])
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
    return words;
}

struct probe_texts {
    char every[NUMBER_SIZE], steps[2 * NUMBER_SIZE], capture[CAPTURE_SIZE];
};

/* What RUN records and has not captured yet. */
static void add_probes(const char **words, const struct run *run,
                       struct probe_texts *texts)
{
    const struct probes_request *request = run->probes ? &run->probes->request : NULL;
    if (request && request->every > 0) {
        snprintf(texts->every, NUMBER_SIZE, "%" PRId64, request->every);
        *words++ = "--probes";
        *words++ = texts->every;
    }
    if (request && request->every > 0 && request->names) {
        *words++ = "--probe-names";
        *words++ = request->names;
    }
    if (request && request->every > 0 && request->last_step != INT64_MAX) {
        snprintf(texts->steps, sizeof(texts->steps), "%" PRId64 "-%" PRId64,
                 request->first_step, request->last_step);
        *words++ = "--probe-steps";
        *words++ = texts->steps;
    }
    if (request && request->capture && !run->probes->captured &&
        request->capture_iteration == run->iteration) {
        snprintf(texts->capture, CAPTURE_SIZE, "%d:%" PRId64 ":%s", run->iteration,
                 request->capture_step, request->capture_place);
        *words++ = "--capture";
        *words++ = texts->capture;
    }
    *words = NULL;
}

/* Descriptor FD once more, where it is in nobody's way; -1 when there is no FD. */
static int set_apart(int fd)
{
    int apart = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD);
    if (fd >= 0) {
        close(fd);
    }
    return apart;
}

static int spawn_resume(const struct run *run, int file, int output, pid_t *ret_pid)
{
    char seed[NUMBER_SIZE], threads[NUMBER_SIZE], iterations[NUMBER_SIZE];
    char circumstances[2][NUMBER_SIZE];
    struct probe_texts texts;
    const char *dtype = dtype_name(run->dtype), *device = run->backend->device_id();
    const char *words[CASE_WORDS + CIRCUMSTANCES_WORDS + PROBES_WORDS] = {
        "reprod-worker", "--resume",
        "--workload",    run->workload->name,
        "--variant",     run->variant->name,
        "--size",        run->size->name,
        "--dtype",       dtype,
        "--seed",        seed,
        "--threads",     threads,
        "--iterations",  iterations,
        "--device",      device,
    };
    /* This very file, whatever has been installed in its place meanwhile. */
    struct descriptors descriptors = {
        .program = set_apart(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)),
        .file = file,
        .output = output,
        .records = run->probes ? set_apart(dup(run->probes->emit.fd)) : -1,
    };
    if (descriptors.program < 0 || (run->probes && descriptors.records < 0)) {
        return errno;
    }
    snprintf(seed, sizeof(seed), "%" PRIu64, run->seed);
    snprintf(threads, sizeof(threads), "%d", run->threads);
    snprintf(iterations, sizeof(iterations), "%d", run->iteration + 1);
    add_probes(add_circumstances(words + CASE_WORDS, circumstances), run, &texts);
    int error = spawn_program(&descriptors, words, ret_pid);
    close(descriptors.program);
    if (descriptors.records >= 0) {
        close(descriptors.records);
    }
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
    if (run->probes) {
        probes_flush(run->probes); /* the other process's come after these */
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
