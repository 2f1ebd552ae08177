/* Calls that make processes, and what they talk through. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/faults/preload/fault.h"

#define CALL(call, function, ...)                                                        \
    REAL(function);                                                                      \
    enum fault_what what = fault_begin(call, -1, NULL);                                  \
    int result;                                                                          \
                                                                                         \
    if (what == FAULT_FAIL) {                                                            \
        return -1;                                                                       \
    }                                                                                    \
    result = real(__VA_ARGS__);                                                          \
    fault_end(what);                                                                     \
    return result

int posix_spawnp(pid_t *ret_pid, const char *file,
                 const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[],
                 char *const env[])
{
    enum fault_what what = fault_begin(FAULT_spawn, -1, file);
    int rc;
    REAL(posix_spawnp);

    if (what == FAULT_FAIL) {
        return errno;
    }
    rc = real(ret_pid, file, actions, attributes, argv, env);
    if (what == FAULT_CHILD && rc == 0) {
        kill(*ret_pid, SIGKILL);
    }
    fault_end(what);
    return rc;
}

int pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                   void *(*body)(void *), void *arg)
{
    enum fault_what what = fault_begin(FAULT_thread, -1, NULL);
    int rc;
    REAL(pthread_create);

    if (what == FAULT_FAIL) {
        return errno;
    }
    rc = real(ret_thread, attributes, body, arg);
    fault_end(what);
    return rc;
}

/* What the loop's library talks to itself through cannot fail once it is there. */
int pipe2(int ret_fds[2], int flags)
{
    enum fault_what what = fault_begin(FAULT_pipe, -1, NULL);
    int result;
    REAL(pipe2);

    if (what == FAULT_FAIL) {
        return -1;
    }
    result = real(ret_fds, flags);
    if (result == 0) {
        fault_leave_alone(ret_fds[0],
                          fault_is_library(__builtin_return_address(0), "libuv"));
        fault_leave_alone(ret_fds[1],
                          fault_is_library(__builtin_return_address(0), "libuv"));
    }
    fault_end(what);
    return result;
}

/* The C library has no function for pidfd_open that every system has. */
long syscall(long number, ...)
{
    long arguments[6];
    va_list list;
    enum fault_what what;
    long result;
    REAL(syscall);

    va_start(list, number);
    for (int i = 0; i < 6; i++) {
        arguments[i] = va_arg(list, long);
    }
    va_end(list);
    what = number == SYS_pidfd_open ? fault_begin(FAULT_pidfd, -1, NULL) : FAULT_PASS;
    if (what == FAULT_FAIL) {
        return -1;
    }
    result = real(number, arguments[0], arguments[1], arguments[2], arguments[3],
                  arguments[4], arguments[5]);
    fault_end(what);
    return result;
}

int socket(int domain, int type, int protocol)
{
    CALL(FAULT_socket, socket, domain, type, protocol);
}

int bind(int fd, const struct sockaddr *address, socklen_t size)
{
    CALL(FAULT_socket, bind, fd, address, size);
}

int listen(int fd, int waiting)
{
    CALL(FAULT_socket, listen, fd, waiting);
}

int accept4(int fd, struct sockaddr *ret_address, socklen_t *size, int flags)
{
    CALL(FAULT_accept, accept4, fd, ret_address, size, flags);
}

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    enum fault_what what = fault_begin(FAULT_send, fd, NULL);
    ssize_t result;
    REAL(send);

    if (what == FAULT_FAIL) {
        return -1;
    }
    result = real(fd, bytes, what == FAULT_TORN ? size / 2 : size, flags);
    fault_end(what);
    return result;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    enum fault_what what = fault_begin(FAULT_send, fd, NULL);
    ssize_t result;
    REAL(sendmsg);

    if (what == FAULT_FAIL) {
        return -1;
    }
    result = real(fd, message, flags);
    fault_end(what);
    return result;
}

ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    enum fault_what what = fault_begin(FAULT_receive, fd, NULL);
    ssize_t result;
    REAL(recv);

    if (what == FAULT_FAIL) {
        return -1;
    }
    result = real(fd, bytes, size, flags);
    fault_end(what);
    return result;
}

int eventfd(unsigned value, int flags)
{
    CALL(FAULT_event, eventfd, value, flags);
}

int epoll_create1(int flags)
{
    CALL(FAULT_event, epoll_create1, flags);
}

int epoll_ctl(int fd, int operation, int of, struct epoll_event *event)
{
    CALL(FAULT_event, epoll_ctl, fd, operation, of, event);
}
