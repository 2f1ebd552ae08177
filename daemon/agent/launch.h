/* Starting a process through reprod-launch, with a pipe for its lines and one for its
 * log. */
#ifndef DAEMON_AGENT_LAUNCH_H
#define DAEMON_AGENT_LAUNCH_H

#include <sys/types.h>

#include "daemon/base/err.h"

struct supervise;

struct launched {
    pid_t pid;
    int pidfd;     /* caller closes these three */
    int data, log; /* reading ends */
};

/* LAUNCH is the path of reprod-launch. */
enum err_code launch(const char *launch, const struct supervise *supervise,
                     struct launched *ret_launched, struct err *err);

#endif
