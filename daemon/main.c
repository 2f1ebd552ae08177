/* The program reprod: it calls the command that its first argument names, or prints how
 * it is used. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/agent/agent.h"
#include "daemon/base/array.h"
#include "daemon/base/text.h"
#include "daemon/client/client.h"
#include "daemon/commands.h"
#include "daemon/completion.h"
#include "daemon/process/exit_code.h"
#include "daemon/process/loop.h"

static int version_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("reprod " REPROD_VERSION);
    return EXIT_CODE_OK;
}

static int completion_main(int argc, char **argv);

static const struct command commands[] = {
    { "serve", serve_main,
      "serve [--config FILE] [--listen ADDRESS:PORT] [--data FOLDER] [--no-survey]"
      " [--no-webhooks] [--read-only BACKUP]",
      "run the service, or show a backup" },
    { "agent", agent_main, "agent [--stack NAME=WORKER]...",
      "run workers on this host for a service, which starts the agent" },
    { "backup", backup_main, "backup [--config FILE] [--data FOLDER] NEW-FILE",
      "copy the database, even while a service uses it" },
    { "restore", restore_main, "restore [--config FILE] [--data FOLDER] BACKUP",
      "put a backup in the place of the database, and keep what was there" },
    { "fsck", fsck_main, "fsck [--config FILE] [--data FOLDER] [--full] [--accept-loss]",
      "check the database and recompute from its runs every cell that changed since, or "
      "all; or acknowledge what is lost or damaged" },
    { "status", status_main, "status [--server URL]",
      "what a service is doing, and what is wrong" },
    { "matrix", matrix_main,
      "matrix [--table NAME] [--view environments|devices] [--environment ID]"
      " [--workload NAME] [--server URL]",
      "the status matrix" },
    { "submit", submit_main, "submit [--server URL] FILE",
      "submit the job in FILE (-: standard input), and print its id" },
    { "wait", wait_main, "wait [--server URL] JOB",
      "wait until a job is over; exit status 1 where a run of it failed" },
    { "drift", drift_main, "drift [--server URL] FROM TO",
      "what happened to each case from one environment to another" },
    { "export", export_main, "export [--since RUN] [--limit RUNS] [--server URL]",
      "print the runs that a service measured, for another one that has it as a peer" },
    { "check", check_main,
      "check --workload NAME,NAME | --job FILE [--variant NAME,NAME] [--size NAME,NAME]"
      " [--runs N] [--iterations N] [--against ENVIRONMENT] [--cost-limit FACTOR]"
      " [--localise RUNS] [--junit FILE] [--markdown FILE] [--server URL | --local"
      " [--config FILE] [--data FOLDER]]",
      "a gate: run a job, and exit with 0 where its results are equal, 1 where they "
      "differ, 2 where that is not verified, 3 where no service answers" },
    { "preflight", preflight_main,
      "preflight [--seconds 45] [--gpus N] [--server URL | --against FILE]"
      " [--workload NAME,NAME] [--variant NAME,NAME] [--size NAME,NAME] [--runs N]"
      " [--iterations N] [--cpu] [--config FILE] [--node NAME] [--node-condition FILE"
      " [--node-object FILE]] [--health-events FILE]",
      "whether this machine's devices compute what their equals compute: a line of JSON "
      "within so many seconds, and exit status 0 passed, 1 dissents, 2 unverified, 3 "
      "nothing could be measured" },
    { "baseline", baseline_main, "baseline [--workload NAME,NAME] [--server URL]",
      "what a service knows each case to give, for preflight --against" },
    { "completion", completion_main, "completion bash|zsh|fish",
      "print what this shell completes: reprod completion bash > "
      "~/.local/share/bash-completion/completions/reprod" },
    { "version", version_main, "version", "print the version" },
};
enum { COMMAND_COUNT = COUNT_OF(commands) };

static int completion_main(int argc, char **argv)
{
    if (argc != 2 || !completion_print(stdout, argv[1], commands, COMMAND_COUNT)) {
        fputs("reprod: completion: it needs the name of a shell: bash, zsh or fish\n",
              stderr);
        return EXIT_CODE_USAGE;
    }
    return EXIT_CODE_OK;
}

static void print_usage(FILE *to)
{
    fputs("usage:\n", to);
    for (int i = 0; i < COMMAND_COUNT; i++) {
        fprintf(to, "  reprod %s\n      %s\n", commands[i].usage, commands[i].summary);
    }
}

/* A standard descriptor that is closed would be given to the next file or connection, and
 * what is printed would be written there.  Written to, it still fails. */
static void occupy_standard(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDONLY);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    occupy_standard();
    loop_prepare();
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
        strcmp(name, "help") == 0) {
        print_usage(stdout);
        return EXIT_CODE_OK;
    }
    if (strcmp(name, "--version") == 0) {
        name = "version";
    }
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(name, commands[i].name) == 0 && argc > 2 &&
            strcmp(argv[2], "--help") == 0) {
            printf("usage: reprod %s\n  %s\n", commands[i].usage, commands[i].summary);
            return EXIT_CODE_OK;
        }
        if (strcmp(name, commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    if (name[0]) {
        text_print(stderr, "reprod: unknown command '%s'", name);
    }
    print_usage(stderr);
    return EXIT_CODE_USAGE;
}
