#include "daemon/link/agent_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/process/spawn.h"

enum { STDIN_PIPE, STDOUT_PIPE, STDERR_PIPE, PIPES };

/* The array is the caller's, the texts are borrowed. */
static char **agent_environment(char *parent)
{
    size_t count = 0;
    char **list;

    while (environ[count]) {
        count++;
    }
    list = xcalloc(count + 2, sizeof *list);
    list[0] = parent;
    memcpy(list + 1, environ, count * sizeof *list);
    return list;
}

static void close_pipes(int pipes[PIPES][2], int count)
{
    for (int i = 0; i < count; i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
}

static enum err_code open_pipes(int pipes[PIPES][2], struct err *err)
{
    for (int i = 0; i < PIPES; i++) {
        if (spawn_pipe(pipes[i], err) != ERR_OK) {
            close_pipes(pipes, i);
            return err->code;
        }
    }
    return ERR_OK;
}

enum err_code agent_process_start(char *const *argv, struct agent_process *ret_process,
                                  struct err *err)
{
    int pipes[PIPES][2];
    char parent[64];
    char **environment;
    enum err_code rc;

    if (open_pipes(pipes, err) != ERR_OK) {
        return err->code;
    }
    snprintf(parent, sizeof parent, "REPROD_PARENT=%d", (int)getpid());
    environment = agent_environment(parent);
    rc = spawn(&(struct spawn){ .path = argv[0],
                                .argv = argv,
                                .env = environment,
                                .fds = { pipes[STDIN_PIPE][0], pipes[STDOUT_PIPE][1],
                                         pipes[STDERR_PIPE][1], -1 } },
               &ret_process->pid, &ret_process->pidfd, err);
    free(environment);
    if (rc != ERR_OK) {
        close_pipes(pipes, PIPES);
        return rc;
    }
    close(pipes[STDIN_PIPE][0]);
    close(pipes[STDOUT_PIPE][1]);
    close(pipes[STDERR_PIPE][1]);
    ret_process->in = pipes[STDIN_PIPE][1];
    ret_process->out = pipes[STDOUT_PIPE][0];
    ret_process->err = pipes[STDERR_PIPE][0];
    return ERR_OK;
}
