/* One short command beside the loop, such as squeue: its output comes in pieces, and it
 * ends within a deadline.
 *
 * The happy path: it writes, exits with 0, and `ended` comes.
 * What can go wrong: it exits otherwise, takes too long, or writes more than it may; then
 * it is killed, with all that it started, and `ended` says why.  Loop thread only. */
#ifndef DAEMON_ENGINE_COMMAND_H
#define DAEMON_ENGINE_COMMAND_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/base/err.h"

struct command;

struct command_options {
    const char *const *argv; /* NULL-terminated; borrowed for the call */
    /* It gets the environment of this process, but what begins with one of these
     * ("SQUEUE_"); NULL-terminated, borrowed for the call.  NULL: all. */
    const char *const *without;
    int64_t deadline_ms;
    size_t most; /* bytes of output */
    /* DATA is borrowed for the call. */
    void (*bytes)(void *arg, const char *data, size_t length);
    /* Once, last; the command is gone by then.  CAUSE is NULL if it exited with 0, else
     * why not: "exit status 1: slurm_load_jobs error: …". */
    void (*ended)(void *arg, const char *cause);
    void *arg;
};

enum err_code command_start(uv_loop_t *loop, const struct command_options *options,
                            struct command **ret_command, struct err *err);

/* Kills it; `ended` comes. */
void command_kill(struct command *command);

#endif
