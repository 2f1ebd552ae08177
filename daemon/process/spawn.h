/* Starting a process: posix_spawn, whose cost does not grow with the daemon's memory (a
 * fork of 2 GB takes 76 ms), and a pidfd, which names the process without reuse races. */
#ifndef DAEMON_PROCESS_SPAWN_H
#define DAEMON_PROCESS_SPAWN_H

#include <sys/types.h>

#include "daemon/base/err.h"

enum { SPAWN_FDS = 4 };

struct spawn {
    const char *path;   /* with a slash, or searched for in PATH */
    char *const *argv;  /* NULL-terminated, borrowed */
    char *const *env;   /* NULL-terminated, borrowed; NULL: that of this process */
    int fds[SPAWN_FDS]; /* what the child has as 0 … 3; -1: /dev/null, or nothing as 3 */
};

/* The child leads a session and process group of its own, with default signal
 * dispositions and an empty mask.  The caller waits for it and closes ret_pidfd, which
 * becomes readable when the child can be waited for.  A kernel without pidfds has one
 * that is readable from the start: whoever polls it asks whether the child has ended, and
 * if it has not, leaves the rest to SIGCHLD. Descriptors that are not in fds must be
 * close-on-exec. */
enum err_code spawn(const struct spawn *spawn, pid_t *ret_pid, int *ret_pidfd,
                    struct err *err);

/* A close-on-exec pipe: [0] is read, [1] is written. */
enum err_code spawn_pipe(int ret_fds[2], struct err *err);

#endif
