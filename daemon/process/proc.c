#include "daemon/process/proc.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/mem.h"

enum {
    ENVIRONMENT_MAX = 65536,
    PF_EXITING = 4 /* of the flags in /proc/PID/stat, since Linux 2.6.13 */
};

/* The first line of PATH, without its newline; "" if it cannot be read. */
static bool read_line(const char *path, char *ret_line, size_t size)
{
    FILE *file = fopen(path, "re");
    bool ok = file && fgets(ret_line, (int)size, file);

    if (file) {
        fclose(file);
    }
    if (!ok) {
        ret_line[0] = '\0';
    }
    ret_line[strcspn(ret_line, "\n")] = '\0';
    return ok;
}

/* All of PATH that fits, as a text; false if it cannot be read. */
static bool read_text(const char *path, char *ret_text, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(ret_text, 1, size - 1, file) : 0;

    if (file) {
        fclose(file);
    }
    ret_text[length] = '\0';
    return length > 0;
}

int proc_stat(pid_t pid, struct proc_stat *ret_stat)
{
    char path[64], line[1024];
    const char *rest;
    int parent, session;
    unsigned int flags;
    unsigned long long start;
    char state;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    /* The second field is the name in parentheses, which may itself hold any of them, and
     * line feeds. */
    if (!read_text(path, line, sizeof line) || !(rest = strrchr(line, ')')) ||
        sscanf(rest + 1,
               " %c %d %*d %d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
               "%*d %llu",
               &state, &parent, &session, &flags, &start) != 5) {
        return -1;
    }
    *ret_stat = (struct proc_stat){ .state = state,
                                    .exiting = (flags & PF_EXITING) != 0,
                                    .parent = parent,
                                    .session = session,
                                    .start = (int64_t)start };
    return 0;
}

/* Without CONFIG_PROC_CHILDREN: look at every process. */
static int search_children(pid_t *ret_pids, int max)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    struct proc_stat stat;
    int count = 0;

    while (proc && count < max && (entry = readdir(proc))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 0 && proc_stat(pid, &stat) == 0 && stat.parent == getpid()) {
            ret_pids[count++] = pid;
        }
    }
    if (proc) {
        closedir(proc);
    }
    return count;
}

/* Up to MAX children of this process, running or zombie; returns how many.  A list taken
 * while children come and go may miss some: take it again at the next SIGCHLD. */
static int find_children(pid_t *ret_pids, int max)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    int count = 0, lists = 0;

    while (tasks && (entry = readdir(tasks))) {
        char path[512];
        FILE *file;

        snprintf(path, sizeof path, "/proc/self/task/%s/children", entry->d_name);
        file = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (file) {
            int pid;

            lists++;
            while (count < max && fscanf(file, "%d", &pid) == 1) { // NOLINT(cert-err34-c)
                ret_pids[count++] = pid;
            }
            fclose(file);
        }
    }
    if (tasks) {
        closedir(tasks);
    }
    return lists ? count : search_children(ret_pids, max);
}

bool proc_has_variable(pid_t pid, const char *mark)
{
    char path[64];
    char *text = xmalloc(ENVIRONMENT_MAX);
    FILE *file;
    size_t length = 0;
    bool found;

    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    file = fopen(path, "re");
    if (file) {
        length = fread(text, 1, ENVIRONMENT_MAX, file);
        fclose(file);
    }
    found = memmem(text, length, mark, strlen(mark)) != NULL;
    free(text);
    return found;
}

/* Whether SELF is the pid of process PID, in its namespace or in one around that. */
static bool calls_itself(pid_t pid, pid_t self)
{
    static const char field[] = "NSpid:";
    char path[64], line[512];
    FILE *file;
    bool found = false;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        char *at = line + strlen(field), *end;

        if (strncmp(line, field, strlen(field)) != 0) {
            continue;
        }
        for (long name = strtol(at, &end, 10); end != at && !found;
             at = end, name = strtol(at, &end, 10)) {
            found = name == self;
        }
    }
    if (file) {
        fclose(file);
    }
    return found || pid == self;
}

static bool belongs(pid_t pid, pid_t leader, const char *mark)
{
    struct proc_stat stat;

    /* The environment goes before the process does, so whether it goes is asked last. */
    return pid == leader || (proc_stat(pid, &stat) == 0 && stat.session == leader) ||
           proc_has_variable(pid, mark) || proc_stat(pid, &stat) != 0 || stat.exiting;
}

bool proc_may_be(pid_t pid, pid_t leader, const char *mark)
{
    DIR *proc = pid == leader ? NULL : opendir("/proc");
    const struct dirent *entry;
    bool exists = false, is_one = pid == leader;

    while (proc && !is_one && (entry = readdir(proc))) {
        pid_t other = (pid_t)strtol(entry->d_name, NULL, 10);

        exists = exists || other == pid;
        is_one = other > 0 && calls_itself(other, pid) && belongs(other, leader, mark);
    }
    if (proc) {
        closedir(proc);
    }
    return is_one || !exists;
}

void proc_boot_id(char ret_id[PROC_BOOT_ID_SIZE])
{
    read_line("/proc/sys/kernel/random/boot_id", ret_id, PROC_BOOT_ID_SIZE);
}

void proc_directory(char ret_path[PROC_PATH_SIZE])
{
    ssize_t length = readlink("/proc/self/exe", ret_path, PROC_PATH_SIZE - 1);
    char *slash;

    ret_path[length > 0 ? length : 0] = '\0';
    slash = strrchr(ret_path, '/');
    if (!slash) {
        snprintf(ret_path, PROC_PATH_SIZE, ".");
    } else {
        *slash = '\0';
    }
}

/* Descendants. */

enum { CHILDREN_MAX = 4096 };

struct pids {
    pid_t *pids;
    int count;
};

static struct {
    bool ready;
    struct pids foreign; /* were there before this program */
    struct pids known;
} descendants;

static int find(const struct pids *set, pid_t pid)
{
    for (int i = 0; i < set->count; i++) {
        if (set->pids[i] == pid) {
            return i;
        }
    }
    return -1;
}

static void add(struct pids *set, pid_t pid)
{
    set->pids = xgrow(set->pids, set->count, sizeof *set->pids);
    set->pids[set->count++] = pid;
}

void descendants_init(void)
{
    pid_t *children;
    int count;

    if (descendants.ready) {
        return;
    }
    descendants.ready = true;
    /* An ignored SIGCHLD, inherited from a careless parent, would reap behind our back.
     */
    signal(SIGCHLD, SIG_DFL);
    children = xmalloc(sizeof *children * CHILDREN_MAX);
    count = find_children(children, CHILDREN_MAX);
    for (int i = 0; i < count; i++) {
        add(&descendants.foreign, children[i]);
    }
    free(children);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void descendants_know(pid_t pid)
{
    add(&descendants.known, pid);
}

void descendants_forget(pid_t pid)
{
    struct pids *known = &descendants.known;
    int i = find(known, pid);

    if (i >= 0) {
        known->pids[i] = known->pids[--known->count];
    }
}

int descendants_sweep(bool only_workers)
{
    static pid_t children[CHILDREN_MAX];
    int count = find_children(children, CHILDREN_MAX);
    int left = 0;

    for (int i = 0; i < count; i++) {
        pid_t pid = children[i];
        struct proc_stat stat;

        if (find(&descendants.known, pid) >= 0 || find(&descendants.foreign, pid) >= 0 ||
            proc_stat(pid, &stat) != 0 || find(&descendants.known, stat.session) >= 0) {
            continue;
        }
        if (stat.state != 'Z' && only_workers &&
            !proc_has_variable(pid, "REPROD_RESULT_FD=")) {
            continue;
        }
        kill(pid, SIGKILL);
        if (waitpid(pid, NULL, WNOHANG) == 0) {
            left++;
        }
    }
    return left;
}
