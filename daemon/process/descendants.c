#include "daemon/process/descendants.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "daemon/base/mem.h"
#include "daemon/process/proc.h"

enum { CHILDREN_MAX = 4096, ENVIRONMENT_MAX = 65536 };

struct pids {
    pid_t *pids;
    int count, capacity;
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
    if (set->count == set->capacity) {
        set->capacity = set->capacity ? set->capacity * 2 : 16;
        set->pids = xrealloc(set->pids, sizeof *set->pids * (size_t)set->capacity);
    }
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
    count = proc_children(children, CHILDREN_MAX);
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

static bool is_worker(pid_t pid)
{
    static const char mark[] = "REPROD_RESULT_FD=";
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
    found = memmem(text, length, mark, sizeof mark - 1) != NULL;
    free(text);
    return found;
}

int descendants_sweep(bool only_workers)
{
    static pid_t children[CHILDREN_MAX];
    int count = proc_children(children, CHILDREN_MAX);
    int left = 0;

    for (int i = 0; i < count; i++) {
        pid_t pid = children[i];
        struct proc_stat stat;

        if (find(&descendants.known, pid) >= 0 || find(&descendants.foreign, pid) >= 0 ||
            proc_stat(pid, &stat) != 0 || find(&descendants.known, stat.session) >= 0) {
            continue;
        }
        if (stat.state != 'Z' && only_workers && !is_worker(pid)) {
            continue;
        }
        kill(pid, SIGKILL);
        if (waitpid(pid, NULL, WNOHANG) == 0) {
            left++;
        }
    }
    return left;
}
