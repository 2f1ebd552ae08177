/* Preloaded: while the file that FAILING_DISK names holds the number of an error, nothing
 * in the folder of its name without ".error" can be written.  Where there is a file of
 * that name with ".looks" instead, it gets "l" for each look at the room that is left,
 * and "f" for each call that fails.  While there is one with ".unread", nothing there can
 * be read; with ".unlooked", not by threads of the least priority. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_inside(int fd, const char *control)
{
    size_t length = strlen(control) - strlen(".error");
    char link[64];
    char path[4096];
    ssize_t got;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    got = readlink(link, path, sizeof path - 1);
    return got > (ssize_t)length && strncmp(path, control, length) == 0 &&
           path[length] == '/';
}

/* The number of the error; 0: none is told. */
static int told(const char *control)
{
    char text[16] = "";
    int file = control ? (int)syscall(SYS_open, control, O_RDONLY) : -1;

    if (file < 0) {
        return 0;
    }
    if (syscall(SYS_read, file, text, sizeof text - 1) < 0) {
        text[0] = '\0';
    }
    syscall(SYS_close, file);
    return atoi(text);
}

static void note(const char *control, const char *what)
{
    char path[4096];
    int file;

    snprintf(path, sizeof path, "%.*s.looks", (int)(strlen(control) - strlen(".error")),
             control);
    file = (int)syscall(SYS_open, path, O_WRONLY | O_APPEND);
    if (file >= 0) {
        if (syscall(SYS_write, file, what, 1) != 1) {
            abort();
        }
        syscall(SYS_close, file);
    }
}

static int fails(int fd)
{
    const char *control = getenv("FAILING_DISK");
    int error = told(control);

    if (!error || !is_inside(fd, control)) {
        return 0;
    }
    note(control, "f");
    errno = error;
    return 1;
}

int statvfs(const char *path, struct statvfs *ret_system)
{
    int (*real)(const char *, struct statvfs *) =
        (int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs");
    const char *control = getenv("FAILING_DISK");

    if (told(control)) {
        note(control, "l");
    }
    return real(path, ret_system);
}

/* Whether there is a file of the control's name with ENDING instead of ".error". */
static int is_there(const char *control, const char *ending)
{
    char path[4096];

    snprintf(path, sizeof path, "%.*s%s", (int)(strlen(control) - strlen(".error")),
             control, ending);
    return syscall(SYS_access, path, F_OK) == 0;
}

static int is_unreadable(int fd)
{
    const char *control = getenv("FAILING_DISK");

    return control &&
           (is_there(control, ".unread") ||
            (getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid)) == 19 &&
             is_there(control, ".unlooked"))) &&
           is_inside(fd, control);
}

ssize_t pread64(int fd, void *data, size_t length, off_t offset)
{
    if (is_unreadable(fd)) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pread64, fd, data, length, offset);
}

ssize_t pread(int fd, void *data, size_t length, off_t offset)
{
    return pread64(fd, data, length, offset);
}

ssize_t write(int fd, const void *data, size_t length)
{
    return fails(fd) ? -1 : syscall(SYS_write, fd, data, length);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset)
{
    return fails(fd) ? -1 : syscall(SYS_pwrite64, fd, data, length, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset)
{
    return pwrite(fd, data, length, offset);
}

int fsync(int fd)
{
    return fails(fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return fails(fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int ftruncate(int fd, off_t length)
{
    return fails(fd) ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate64(int fd, off_t length)
{
    return ftruncate(fd, length);
}
