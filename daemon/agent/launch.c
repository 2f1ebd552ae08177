#include "daemon/agent/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/agent/supervise.h"
#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "daemon/process/spawn.h"

static char **add_words(char **at, const char *const *words, size_t count)
{
    memcpy(at, words, count * sizeof *words);
    return at + count;
}

/* reprod-launch with its options, then the program.  The array is the caller's, the texts
 * are borrowed. */
static char **launch_argv(const char *launch, const struct supervise *supervise,
                          const char *parent)
{
    static const char file_size[] = "68719476736"; /* 64 GiB: a bound on a runaway */
    const char *const head[] = { launch, "--parent",    parent,   "--core",
                                 "0",    "--file-size", file_size };
    const char *const enter[] = { "--directory", supervise->directory };
    const char *const program[] = { "--", supervise->program };
    size_t count = 0;
    char **argv, **at;

    while (supervise->args[count]) {
        count++;
    }
    argv = xcalloc(COUNT_OF(head) + COUNT_OF(enter) + COUNT_OF(program) + count + 1,
                   sizeof *argv);
    at = add_words(argv, head, COUNT_OF(head));
    if (supervise->directory) {
        at = add_words(at, enter, COUNT_OF(enter));
    }
    at = add_words(at, program, COUNT_OF(program));
    memcpy(at, supervise->args, count * sizeof *at);
    return argv;
}

static void close_pair(const int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

enum err_code launch(const char *launch, const struct supervise *supervise,
                     struct launched *ret_launched, struct err *err)
{
    int data[2], log[2];
    char parent[16];
    struct spawn how = { .path = launch, .env = supervise->env };
    char **argv;
    enum err_code rc;

    if (spawn_pipe(data, err) != ERR_OK) {
        return err->code;
    }
    if (spawn_pipe(log, err) != ERR_OK) {
        close_pair(data);
        return err->code;
    }
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    how.argv = argv = launch_argv(launch, supervise, parent);
    memcpy(how.fds, (int[SPAWN_FDS]){ -1, log[1], log[1], -1 }, sizeof how.fds);
    how.fds[supervise->data_fd] = data[1];
    rc = spawn(&how, &ret_launched->pid, &ret_launched->pidfd, err);
    free(argv);
    close(data[1]);
    close(log[1]);
    if (rc != ERR_OK) {
        close(data[0]);
        close(log[0]);
        return rc;
    }
    ret_launched->data = data[0];
    ret_launched->log = log[0];
    return ERR_OK;
}
