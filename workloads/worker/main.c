/* reprod-worker: one case, one device, one fresh process (workloads/PROTOCOL.md). */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "workloads/worker/args.h"
#include "workloads/worker/catalogue.h"
#include "workloads/worker/check.h"
#include "workloads/worker/execute.h"
#include "workloads/worker/libraries.h"
#include "workloads/worker/load.h"
#include "workloads/worker/registry.h"
#include "workloads/worker/resume.h"
#include "workloads/worker/status.h"

static const char help[] =
    "reprod-worker: computes one case on one device and says what it computed\n"
    "\n"
    "  reprod-worker --run --workload NAME [OPTION …]    write events to descriptor 3\n"
    "  reprod-worker --check --workload NAME [OPTION …]  compare with the float64 "
    "reference\n"
    "  reprod-worker --resume --workload NAME [OPTION …] go on from what a run saved, on "
    "stdin\n"
    "  reprod-worker --load [--device ID] [--threads N]  keep a CPU busy while stdin is "
    "open\n"
    "  reprod-worker --catalogue                         one JSON object for each "
    "workload\n"
    "  reprod-worker --probe                             devices, versions and build\n"
    "  reprod-worker --processes                         who else uses the devices\n"
    "  reprod-worker --version | --help\n"
    "\n"
    "  --variant NAME --size NAME --dtype NAME   default: the workload's first\n"
    "  --seed N                                  default 1\n"
    "  --iterations 1..1000                      default 10\n"
    "  --threads 1..256                          default 2 on a CPU\n"
    "  --device ID                               default: the first of --probe\n"
    "  --contention 1..64                        loads on the run's device: processes, "
    "or\n"
    "                                            on a GPU streams of the run's own "
    "process\n"
    "  --memory-poison random|HEX                fill all memory with these 4 bytes\n"
    "  --allocation-jitter random|N              move allocations, and resize them\n"
    "\n"
    "For --run, what probes record (PROTOCOL.md); nothing by default:\n"
    "  --probes N                                every N-th step; 1: each, 0: none\n"
    "  --probe-names PATTERN                     of these places only, as 'conv*'\n"
    "  --probe-steps A-B                         of these steps only\n"
    "  --capture ITERATION:STEP:PLACE            what that place reads and writes\n"
    "For --run:\n"
    "  --checked 1..3600                         compare the first iteration's outputs "
    "with "
    "the\n"
    "                                            float64 reference, for so many seconds "
    "at "
    "most\n"
    "  --passed DIGEST                           with --checked: those of the first "
    "whose "
    "digest\n"
    "                                            is another\n"
    "\n"
    "Exit status: 0 the run said how it ended, or what was asked is done; 1 the check "
    "failed;\n"
    "2 wrong arguments; 3 a defect of this build; 4 the events could not be written;\n"
    "5 nothing could be checked, or nothing resumed.\n"
    "Example: reprod-worker --run --workload conv_wgrad 3>&1\n";

static int refuse(const char *message)
{
    fprintf(stderr, "reprod-worker: %s\n", message);
    return STATUS_USAGE;
}

static int compute(const struct args *args, const struct backend *backend)
{
    char message[BACKEND_MESSAGE_SIZE];
    int fd;

    /* First: it may have the program begin anew, with all that is open. */
    if (!backend->select(args->device, message)) {
        return refuse(message);
    }
    fd = args->command == ARGS_RUN ? result_fd(stderr) : STDOUT_FILENO;
    if (fd < 0) {
        return STATUS_OUTPUT;
    }
    switch (args->command) {
    case ARGS_RUN:
        return execute_run(args, backend, fd);
    case ARGS_RESUME:
        return resume_run(args, backend);
    case ARGS_LOAD:
        return load_run(args->threads, backend);
    default:
        return check_run(args, backend);
    }
}

static int run_command(const struct args *args, const struct registry *registry,
                       const struct backend *backend)
{
    switch (args->command) {
    case ARGS_CATALOGUE:
        return catalogue_print(registry, backend);
    case ARGS_PROBE:
        return catalogue_probe(backend);
    case ARGS_PROCESSES:
        return catalogue_processes(backend);
    case ARGS_VERSION:
        printf("reprod-worker %s (%s, build %s)\n", REPROD_VERSION, backend->name,
               libraries_worker_build());
        return STATUS_OK;
    case ARGS_HELP:
        fputs(help, stdout);
        return STATUS_OK;
    default:
        return compute(args, backend);
    }
}

int main(int argc, char **argv)
{
    struct registry registry;
    struct args args;
    char message[ARGS_MESSAGE_SIZE];
    int defects;
    const struct backend *backend;
    int status = STATUS_DEFECT;

    signal(SIGPIPE, SIG_IGN); /* a reader that went away is an error of write(2) */
    defects = registry_init_linked(&registry, stderr);
    backend = backend_linked(stderr);
    if (defects == 0 && backend) {
        status = worker_args_parse(&registry, backend, argc, argv, &args, message)
                     ? run_command(&args, &registry, backend)
                     : refuse(message);
    }
    registry_release(&registry);
    return status;
}
