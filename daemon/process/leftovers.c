#include "daemon/process/leftovers.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/process/proc.h"

const char leftovers_mark_name[] = "REPROD_SERVICE=";

static char mark[128];       /* "REPROD_SERVICE=device:inode:pid:start:" */
static size_t folder_length; /* of it, up to the pid */

void leftovers_open(const char *data)
{
    struct stat folder;
    struct proc_stat self;

    mark[0] = '\0';
    if (stat(data, &folder) != 0 || proc_stat(getpid(), &self) != 0) {
        return;
    }
    folder_length = (size_t)snprintf(
        mark, sizeof mark, "%s%llx:%llx:", leftovers_mark_name,
        (unsigned long long)folder.st_dev, (unsigned long long)folder.st_ino);
    snprintf(mark + folder_length, sizeof mark - folder_length, "%d:%lld:", (int)getpid(),
             (long long)self.start);
}

char *leftovers_mark(void)
{
    return mark[0] ? mark : NULL;
}

static bool writes_to_pipe(pid_t pid)
{
    static const char pipe[] = "pipe:";
    char path[64], target[sizeof pipe];

    snprintf(path, sizeof path, "/proc/%d/fd/1", (int)pid);
    return readlink(path, target, sizeof target) >= (ssize_t)strlen(pipe) &&
           memcmp(target, pipe, strlen(pipe)) == 0;
}

static bool is_leftover(pid_t pid)
{
    char folder[sizeof mark];
    struct proc_stat stat;

    snprintf(folder, sizeof folder, "%.*s", (int)folder_length, mark);
    return proc_stat(pid, &stat) == 0 && stat.session == pid && stat.parent != getpid() &&
           writes_to_pipe(pid) && proc_has_variable(pid, folder) &&
           !proc_has_variable(pid, mark);
}

int leftovers_end(int number)
{
    DIR *proc = mark[0] ? opendir("/proc") : NULL;
    const struct dirent *entry;
    int count = 0;

    while (proc && (entry = readdir(proc))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 1 && is_leftover(pid)) {
            log_info(
                "process %d, which a service before this one had started, gets "
                "signal %d (%s)",
                (int)pid, number, strsignal(number));
            kill(-pid, number);
            count++;
        }
    }
    if (proc) {
        closedir(proc);
    }
    return count;
}
