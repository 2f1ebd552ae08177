#include "workloads/worker/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workloads/worker/circumstances.h"
#include "workloads/worker/probes.h"
#include "workloads/worker/run.h"
#include "workloads/worker/self.h"
#include "workloads/worker/status.h"

enum { CAUSE_SIZE = 768, NUMBER_SIZE = 24 };
enum { CAPTURE_SIZE = 2 * NUMBER_SIZE + PROBES_PLACE_MAX };

/* No process that is started has descriptors from here on. */
enum { FIRST_PRIVATE_FD = 10 };

/* Words of a command line: program and case, circumstances, and probes with their end. */
enum { CASE_WORDS = 18, CIRCUMSTANCES_WORDS = 4, PROBES_WORDS = 9 };

int resume_run(const struct args *args, const struct backend *backend)
{
    static struct run run;
    static struct probes probes;

    self_begin("reprod-worker");
    run_init(&run, args, backend);
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

/* The circumstances of this process, except the load, which is there already. */
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
        snprintf(texts->steps, sizeof texts->steps, "%" PRId64 "-%" PRId64,
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
    int fds[RESUME_RECORDS_FD + 1] = { file, output, -1, -1 };
    int error;

    if (run->probes) {
        fds[RESUME_RECORDS_FD] =
            fcntl(run->probes->emit.fd, F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD);
        if (fds[RESUME_RECORDS_FD] < 0) {
            return errno;
        }
    }
    snprintf(seed, sizeof seed, "%" PRIu64, run->seed);
    snprintf(threads, sizeof threads, "%d", run->threads);
    snprintf(iterations, sizeof iterations, "%d", run->iteration + 1);
    add_probes(add_circumstances(words + CASE_WORDS, circumstances), run, &texts);
    error = self_spawn(words, fds, RESUME_RECORDS_FD + 1, ret_pid);
    if (fds[RESUME_RECORDS_FD] >= 0) {
        close(fds[RESUME_RECORDS_FD]);
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
    int error;

    if (pipe2(output, O_CLOEXEC) != 0) {
        run_infra(run, "cannot create a pipe: %s", strerror(errno));
    }
    if (run->probes) {
        probes_flush(run->probes); /* the other process's come after these */
    }
    error = spawn_resume(run, file, output[1], &pid);
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
