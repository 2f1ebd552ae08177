#include "daemon/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum err_code spawn_pipe(int ret_fds[2], struct err *err)
{
    if (pipe2(ret_fds, O_CLOEXEC) != 0) {
        return err_set_errno(err, errno, "pipe");
    }
    return ERR_OK;
}

/* Descriptors 0 to 2 of this process are open, so no source can be 0, 1 or 2, and 3 is
 * written last: no dup2 destroys the source of a later one. */
static void add_descriptors(posix_spawn_file_actions_t *actions, const int *fds)
{
    for (int i = 0; i < SPAWN_FDS; i++) {
        if (fds[i] >= 0) {
            posix_spawn_file_actions_adddup2(actions, fds[i], i);
        } else if (i <= STDERR_FILENO) {
            posix_spawn_file_actions_addopen(actions, i, "/dev/null", O_RDWR, 0);
        }
    }
}

static void set_signals(posix_spawnattr_t *attributes)
{
    sigset_t set;

    sigemptyset(&set);
    posix_spawnattr_setsigmask(attributes, &set);
    sigfillset(&set);
    posix_spawnattr_setsigdefault(attributes, &set);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                             POSIX_SPAWN_SETSIGDEF);
}

/* ENOSYS: before Linux 5.3; EPERM: a sandbox that does not know the call. */
static int end_of(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    return fd < 0 && (errno == ENOSYS || errno == EPERM) ? eventfd(1, EFD_CLOEXEC) : fd;
}

enum err_code spawn(const struct spawn *spawn, pid_t *ret_pid, int *ret_pidfd,
                    struct err *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t pid = 0;
    int pidfd, rc;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    add_descriptors(&actions, spawn->fds);
    set_signals(&attributes);
    rc = posix_spawnp(&pid, spawn->path, &actions, &attributes, spawn->argv,
                      spawn->env ? spawn->env : environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0) {
        return err_set_errno(err, rc, "cannot start %s", spawn->path);
    }
    pidfd = end_of(pid);
    if (pidfd < 0) {
        rc = errno;
        kill(-pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return err_set_errno(err, rc, "pidfd_open");
    }
    *ret_pid = pid;
    *ret_pidfd = pidfd;
    return ERR_OK;
}
