/* Starts the process of an agent, or the launch command that brings one. */
#ifndef DAEMON_LINK_AGENT_PROCESS_H
#define DAEMON_LINK_AGENT_PROCESS_H

#include <sys/types.h>

#include "daemon/base/err.h"

/* The process at the other end. */
struct agent_process {
    pid_t pid;
    int pidfd;
    int in, out, err; /* the daemon's ends of its standard input, output and error */
};

/* ARGV (NULL-terminated) with the environment of this process, and REPROD_PARENT: the pid
 * of this process.  An agent that is a child of this process dies with it.  The caller
 * reaps it and closes the descriptors. */
enum err_code agent_process_start(char *const *argv, struct agent_process *ret_process,
                                  struct err *err);

#endif
