/* Calls that are about files. */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/faults/preload/fault.h"

/* How FUNCTION(ARGUMENTS) with FAILED for its failure is intercepted; FD and PATH for the
 * log. */
#define CALL(type, call, failed, fd, path, function, ...)                                \
    REAL(function);                                                                      \
    enum fault_what what = fault_begin(call, fd, path);                                  \
    type result;                                                                         \
                                                                                         \
    if (what == FAULT_FAIL) {                                                            \
        return failed;                                                                   \
    }                                                                                    \
    result = real(__VA_ARGS__);                                                          \
    fault_end(what);                                                                     \
    return result

static mode_t mode_of(int flags, va_list arguments)
{
    return (flags & (O_CREAT | O_TMPFILE)) ? (mode_t)va_arg(arguments, unsigned) : 0;
}

#define OPEN(function)                                                                   \
    int function(const char *path, int flags, ...)                                       \
    {                                                                                    \
        va_list arguments;                                                               \
        mode_t mode;                                                                     \
                                                                                         \
        va_start(arguments, flags);                                                      \
        mode = mode_of(flags, arguments);                                                \
        va_end(arguments);                                                               \
        CALL(int, FAULT_open, -1, -1, path, function, path, flags, mode);                \
    }
#define OPENAT(function)                                                                 \
    int function(int folder, const char *path, int flags, ...)                           \
    {                                                                                    \
        va_list arguments;                                                               \
        mode_t mode;                                                                     \
                                                                                         \
        va_start(arguments, flags);                                                      \
        mode = mode_of(flags, arguments);                                                \
        va_end(arguments);                                                               \
        CALL(int, FAULT_open, -1, -1, path, function, folder, path, flags, mode);        \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

FILE *fopen(const char *path, const char *mode)
{
    CALL(FILE *, FAULT_open, NULL, -1, path, fopen, path, mode);
}

DIR *opendir(const char *path)
{
    CALL(DIR *, FAULT_open, NULL, -1, path, opendir, path);
}

ssize_t read(int fd, void *bytes, size_t size)
{
    CALL(ssize_t, fault_kind(fd, FAULT_read, FAULT_receive), -1, fd, NULL, read, fd,
         bytes, size);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t at)
{
    CALL(ssize_t, FAULT_read, -1, fd, NULL, pread, fd, bytes, size, at);
}

ssize_t pread64(int fd, void *bytes, size_t size, off64_t at)
{
    CALL(ssize_t, FAULT_read, -1, fd, NULL, pread64, fd, bytes, size, at);
}

/* A write that is torn: what a process that dies between two pages leaves. */
#define WRITE(function, call, sized, ...)                                                \
    REAL(function);                                                                      \
    enum fault_what what = fault_begin(call, fd, NULL);                                  \
    ssize_t result;                                                                      \
                                                                                         \
    if (what == FAULT_FAIL) {                                                            \
        return -1;                                                                       \
    }                                                                                    \
    size = what == FAULT_TORN ? size / 2 : size;                                         \
    result = real(__VA_ARGS__);                                                          \
    fault_end(what);                                                                     \
    return result

ssize_t write(int fd, const void *bytes, size_t size)
{
    WRITE(write, fault_kind(fd, FAULT_write, FAULT_send), size, fd, bytes, size);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at)
{
    WRITE(pwrite, FAULT_write, size, fd, bytes, size, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at)
{
    WRITE(pwrite64, FAULT_write, size, fd, bytes, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    CALL(ssize_t, fault_kind(fd, FAULT_write, FAULT_send), -1, fd, NULL, writev, fd,
         parts, count);
}

int fsync(int fd)
{
    CALL(int, FAULT_fsync, -1, fd, NULL, fsync, fd);
}

int fdatasync(int fd)
{
    CALL(int, FAULT_fsync, -1, fd, NULL, fdatasync, fd);
}

int ftruncate(int fd, off_t size)
{
    CALL(int, FAULT_truncate, -1, fd, NULL, ftruncate, fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    CALL(int, FAULT_truncate, -1, fd, NULL, ftruncate64, fd, size);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    CALL(void *, FAULT_mmap, MAP_FAILED, fd, NULL, mmap, at, size, protection, flags, fd,
         offset);
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
    CALL(void *, FAULT_mmap, MAP_FAILED, fd, NULL, mmap64, at, size, protection, flags,
         fd, offset);
}

/* Giving a lock back never fails. */
static bool is_lock(int command, const struct flock *lock)
{
    return (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||
            command == F_OFD_SETLKW) &&
           lock->l_type != F_UNLCK;
}

#define FCNTL(function)                                                                  \
    int function(int fd, int command, ...)                                               \
    {                                                                                    \
        va_list arguments;                                                               \
        void *argument;                                                                  \
                                                                                         \
        va_start(arguments, command);                                                    \
        argument = va_arg(arguments, void *);                                            \
        va_end(arguments);                                                               \
        CALL(int, is_lock(command, argument) ? FAULT_lock : FAULT_CALL_COUNT, -1, fd,    \
             NULL, function, fd, command, argument);                                     \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

int rename(const char *from, const char *to)
{
    CALL(int, FAULT_rename, -1, -1, to, rename, from, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to,
              unsigned flags)
{
    CALL(int, FAULT_rename, -1, -1, to, renameat2, from_folder, from, to_folder, to,
         flags);
}

int link(const char *from, const char *to)
{
    CALL(int, FAULT_rename, -1, -1, to, link, from, to);
}

int unlink(const char *path)
{
    CALL(int, FAULT_unlink, -1, -1, path, unlink, path);
}

int mkdir(const char *path, mode_t mode)
{
    CALL(int, FAULT_rename, -1, -1, path, mkdir, path, mode);
}

int stat(const char *path, struct stat *ret_stat)
{
    CALL(int, FAULT_stat, -1, -1, path, stat, path, ret_stat);
}
