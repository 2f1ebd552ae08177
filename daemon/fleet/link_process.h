/* Starting the process at the other end of a link. */
#ifndef DAEMON_FLEET_LINK_PROCESS_H
#define DAEMON_FLEET_LINK_PROCESS_H

#include <sys/types.h>

#include "daemon/base/err.h"

struct link_process {
    pid_t pid;
    int pidfd;        /* caller closes these four */
    int in, out, err; /* the daemon's ends of its standard input, output and error */
};

/* Its environment is that of this process, and REPROD_PARENT: the pid of this process, so
 * that an agent whose parent that is can follow it into death. */
enum err_code link_process_start(char *const *argv, struct link_process *ret_process,
                                 struct err *err);

#endif
