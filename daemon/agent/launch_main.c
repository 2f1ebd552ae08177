/* reprod-launch: the last step before a worker.
 *
 *     reprod-launch [--parent PID] [--nproc N] [--core BYTES] [--address-space BYTES]
 *                   [--files N] [--file-size BYTES] [--directory DIRECTORY]
 *                   -- PROGRAM ARGS…
 *
 * posix_spawn can set neither a parent-death signal nor limits, so this small static
 * program does, and then becomes PROGRAM.  PROGRAM dies with the process that started it
 * (--parent closes the race with a parent that is gone already), gains no privileges,
 * has default signal dispositions, an empty signal mask, and the descriptors 0, 1, 2, 3.
 *
 * Exit status: 125 wrong usage, or the limits cannot be set; 126 PROGRAM cannot be
 * executed; 127 there is no PROGRAM. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/array.h"
#include "daemon/process/signals.h"

enum { EXIT_USAGE = 125, EXIT_CANNOT_EXECUTE = 126, EXIT_NO_PROGRAM = 127 };
enum { FIRST_CLOSED = 4, CLOSED_ONE_BY_ONE = 65536 };

static const struct {
    const char *option;
    int resource;
} limits[] = {
    { "--nproc", RLIMIT_NPROC },      { "--core", RLIMIT_CORE },
    { "--address-space", RLIMIT_AS }, { "--files", RLIMIT_NOFILE },
    { "--file-size", RLIMIT_FSIZE },
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "reprod-launch: %s: %s\n", what, why);
    exit(EXIT_USAGE);
}

static unsigned long long parse_number(const char *option, const char *text)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = text ? strtoull(text, &end, 10) : 0;
    if (!text || *text < '0' || *text > '9' || *end != '\0' || errno) {
        fail(option, "wants a whole number");
    }
    return value;
}

static void set_limit(const char *option, const char *text)
{
    rlim_t value = parse_number(option, text);
    struct rlimit limit;

    for (int i = 0; i < COUNT_OF(limits); i++) {
        if (strcmp(option, limits[i].option) == 0) {
            if (getrlimit(limits[i].resource, &limit) != 0) {
                fail(option, strerror(errno));
            }
            if (limit.rlim_max == RLIM_INFINITY || value < limit.rlim_max) {
                limit.rlim_max = value;
            }
            limit.rlim_cur = limit.rlim_max;
            if (setrlimit(limits[i].resource, &limit) != 0) {
                fail(option, strerror(errno));
            }
            return;
        }
    }
    fail(option, "unknown option");
}

static void enter(const char *directory)
{
    if (!directory || chdir(directory) != 0) {
        fail(directory ? directory : "--directory", strerror(directory ? errno : EINVAL));
    }
}

static void die_with_parent(unsigned long long parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        fail("parent-death signal", strerror(errno));
    }
    if (parent && (unsigned long long)getppid() != parent) {
        fail("--parent", "that process is gone");
    }
}

static void reset_signals(void)
{
    sigset_t none;

    for (int number = 1; number < NSIG; number++) {
        signal(number, SIG_DFL); /* fails for SIGKILL, SIGSTOP and libc's own: fine */
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_descriptors(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, FIRST_CLOSED, ~0U, 0) == 0) {
        return;
    }
#endif
    for (int fd = FIRST_CLOSED; fd < CLOSED_ONE_BY_ONE; fd++) {
        close(fd);
    }
}

/* LLVM's OpenMP notes each process in shared memory under its number.  A process that was
 * killed while it did leaves a note that says nothing, and the next one with its number
 * would end over it.  Ours has none yet. */
static void forget_former_process(void)
{
    char path[64];

    snprintf(path, sizeof path, "/dev/shm/__KMP_REGISTERED_LIB_%d_%u", (int)getpid(),
             (unsigned)getuid());
    unlink(path);
}

int main(int argc, char **argv)
{
    unsigned long long parent = 0;
    int i = 1;

    signals_ignore(); /* until the program runs, which has to decide */
    for (; i < argc && strcmp(argv[i], "--") != 0; i += 2) {
        if (strcmp(argv[i], "--parent") == 0) {
            parent = parse_number(argv[i], argv[i + 1]);
        } else if (strcmp(argv[i], "--directory") == 0) {
            enter(argv[i + 1]);
        } else {
            set_limit(argv[i], argv[i + 1]);
        }
    }
    if (i + 1 >= argc) {
        fail("usage", "reprod-launch [--LIMIT N]... -- PROGRAM ARGS...");
    }
    die_with_parent(parent);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        fail("no new privileges", strerror(errno));
    }
    forget_former_process();
    reset_signals();
    close_descriptors();
    execv(argv[i + 1], argv + i + 1);
    fprintf(stderr, "reprod-launch: %s: %s\n", argv[i + 1], strerror(errno));
    return errno == ENOENT || errno == ENOTDIR ? EXIT_NO_PROGRAM : EXIT_CANNOT_EXECUTE;
}
