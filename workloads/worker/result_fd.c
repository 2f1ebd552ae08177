#include "workloads/worker/result_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

enum { RESULT_FD_DEFAULT = 3 };

static int requested_fd(FILE *log)
{
    const char *text = getenv("REPROD_RESULT_FD");

    if (!text) {
        return RESULT_FD_DEFAULT;
    }
    char *end;
    errno = 0;
    long fd = strtol(text, &end, 10);
    if (errno || end == text || *end || fd < 0 || fd > INT_MAX) {
        fprintf(log, "reprod-worker: REPROD_RESULT_FD is '%s', not a descriptor number\n",
                text);
        return -1;
    }
    return (int)fd;
}

int result_fd(FILE *log)
{
    int fd = requested_fd(log);

    if (fd < 0) {
        return -1;
    }
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
        fprintf(
            log,
            "reprod-worker: descriptor %d is not open for writing; the events of a run "
            "go there (in a shell: %d>&1)\n",
            fd, fd);
        return -1;
    }
    if (fd > STDERR_FILENO) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    return fd;
}
