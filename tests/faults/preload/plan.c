#include "tests/faults/preload/fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FRAMES_MAX = 48, LINE_SIZE = 8192 };

static const char *const call_names[] = {
#define X(name) #name,
    FAULT_CALLS(X)
#undef X
        "any",
};
static const char *const role_names[] = { "serve", "agent", "maintenance", "worker" };

static struct {
    struct fault_shared *shared; /* NULL: nothing is counted, nothing is struck */
    int role;
    bool here; /* this process is what is to be struck */
    int call;
    int64_t first, times;
    enum fault_what action;
    bool before;
    int error;
    char log[512];
} plan;

enum { ALONE_MAX = 4096 };
static bool left_alone[ALONE_MAX];

/* Writing the log calls what is intercepted. */
static _Thread_local bool inside;

void *fault_real(void **cache, const char *name)
{
    if (!*cache) {
        *cache = dlsym(RTLD_NEXT, name);
    }
    return *cache;
}

static int find(const char *name, size_t length, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) {
            return i;
        }
    }
    return -1;
}

/* Which of reprod's programs this is; -1: none of them. */
static int own_role(void)
{
    char line[4096];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof line - 2);
    const char *name;
    const char *command;

    if (fd >= 0) {
        close(fd);
    }
    if (length <= 0) {
        return -1;
    }
    line[length] = line[length + 1] = '\0';
    name = strrchr(line, '/') ? strrchr(line, '/') + 1 : line;
    command = line + strlen(line) + 1;
    if (strncmp(name, "reprod-worker", strlen("reprod-worker")) == 0) {
        return FAULT_WORKER;
    }
    if (strcmp(name, "reprod") != 0) {
        return -1;
    }
    return strcmp(command, "serve") == 0   ? FAULT_SERVE
           : strcmp(command, "agent") == 0 ? FAULT_AGENT
                                           : FAULT_MAINTENANCE;
}

static void read_plan(const char *text)
{
    char role[32], call[32], action[32];
    long long first, times;

    if (sscanf(text, "%31[^:]:%31[^:]:%lld:%lld:%31s", role, call, &first, &times,
               action) != 5) {
        return;
    }
    plan.call = find(call, strlen(call), call_names, FAULT_CALL_COUNT);
    plan.here = find(role, strlen(role), role_names, FAULT_ROLE_COUNT) == plan.role &&
                plan.call >= 0;
    plan.first = first;
    plan.times = times;
    plan.before = strcmp(action, "before") == 0;
    plan.error = (int)strtol(action, NULL, 10);
    plan.action = strcmp(action, "after") == 0   ? FAULT_AFTER
                  : strcmp(action, "torn") == 0  ? FAULT_TORN
                  : strcmp(action, "child") == 0 ? FAULT_CHILD
                                                 : FAULT_FAIL;
}

__attribute__((constructor)) static void begin(void)
{
    const char *shared = getenv("REPROD_FAULT_SHARED");
    const char *text = getenv("REPROD_FAULT");
    const char *log = getenv("REPROD_FAULT_LOG");
    void *frames[1];
    void *mapped;
    int fd;

    plan.role = own_role();
    if (plan.role < 0 || !shared) {
        return;
    }
    backtrace(frames, 1); /* loads what it needs, now rather than inside a call */
    snprintf(plan.log, sizeof plan.log, "%s", log ? log : "/dev/null");
    fd = open(shared, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    mapped = mmap(NULL, sizeof *plan.shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (text) {
        read_plan(text);
    }
    if (plan.role == FAULT_WORKER) {
        unsetenv("LD_PRELOAD"); /* which would be part of what a run depends on */
    }
    plan.shared = mapped == MAP_FAILED ? NULL : mapped;
}

static size_t add_frames(char *line, size_t at)
{
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX);

    for (int i = 2; i < count; i++) { /* without this function and its caller */
        Dl_info info;
        const char *file;
        int length;

        if (!dladdr(frames[i], &info) || !info.dli_fname) {
            continue;
        }
        file = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1
                                            : info.dli_fname;
        length = snprintf(line + at, LINE_SIZE - at, " %s+%lx", file,
                          (unsigned long)((char *)frames[i] - (char *)info.dli_fbase));
        if (length < 0 || at + (size_t)length >= LINE_SIZE - 2) {
            break;
        }
        at += (size_t)length;
    }
    return at;
}

static void note(enum fault_call call, int64_t number, int fd, const char *path)
{
    char line[LINE_SIZE], link[32], target[256] = "-";
    size_t at;
    int log;

    if (path) {
        snprintf(target, sizeof target, "%s", path);
    } else if (fd >= 0) {
        ssize_t length;

        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        length = readlink(link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
    }
    for (char *c = target; *c; c++) {
        *c = *c == ' ' ? '?' : *c;
    }
    at = (size_t)snprintf(line, sizeof line, "%s %s %lld %d %s", role_names[plan.role],
                          call_names[call], (long long)number, (int)getpid(),
                          *target ? target : "-");
    at = add_frames(line, at);
    line[at++] = '\n';
    log = open(plan.log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (log >= 0) {
        if (write(log, line, at) != (ssize_t)at) {
            line[0] = '\0';
        }
        close(log);
    }
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;) {
        pause();
    }
}

enum fault_what fault_begin(enum fault_call call, int fd, const char *path)
{
    int64_t number, any = 0;

    if (!plan.shared || inside || call == FAULT_CALL_COUNT) {
        return FAULT_PASS;
    }
    number = atomic_fetch_add(&plan.shared->calls[plan.role][call], 1) + 1;
    if (call != FAULT_malloc) {
        any = atomic_fetch_add(&plan.shared->calls[plan.role][FAULT_any], 1) + 1;
    }
    if (!plan.here || (plan.call != (int)call && (plan.call != FAULT_any || any == 0))) {
        return FAULT_PASS;
    }
    number = plan.call == FAULT_any ? any : number;
    if (number < plan.first || number >= plan.first + plan.times ||
        (plan.action == FAULT_CHILD && call != FAULT_spawn)) {
        return FAULT_PASS;
    }
    inside = true;
    note(call, number, fd, path);
    atomic_fetch_add(&plan.shared->struck, 1);
    if (plan.before) {
        die();
    }
    inside = false;
    errno = plan.error;
    return plan.action;
}

void fault_end(enum fault_what what)
{
    if (what == FAULT_AFTER || what == FAULT_TORN) {
        die();
    }
}

enum fault_call fault_kind(int fd, enum fault_call file, enum fault_call message)
{
    int error = errno;
    struct stat st;
    enum fault_call kind = FAULT_CALL_COUNT;

    if (!plan.shared || inside || (fd >= 0 && fd < ALONE_MAX && left_alone[fd])) {
        return kind;
    }
    inside = true;
    if (fstat(fd, &st) == 0) {
        /* Reading a pipe never fails. */
        bool transfers =
            S_ISSOCK(st.st_mode) || (S_ISFIFO(st.st_mode) && message != FAULT_receive);

        kind = S_ISREG(st.st_mode) ? file : transfers ? message : FAULT_CALL_COUNT;
    }
    inside = false;
    errno = error;
    return kind;
}

void fault_leave_alone(int fd, bool alone)
{
    if (fd < ALONE_MAX) {
        left_alone[fd] = alone;
    }
}

bool fault_is_library(const void *code, const char *name)
{
    const char *file;
    Dl_info info;

    if (!dladdr(code, &info) || !info.dli_fname) {
        return false;
    }
    file =
        strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
    return strncmp(file, name, strlen(name)) == 0;
}

int64_t fault_wall_ahead_ns(void)
{
    return plan.shared ? atomic_load(&plan.shared->wall_ahead_ns) : 0;
}
