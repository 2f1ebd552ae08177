/* What /proc tells about processes.  Linux only. */
#ifndef DAEMON_PROCESS_PROC_H
#define DAEMON_PROCESS_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROC_BOOT_ID_SIZE = 37, PROC_PATH_SIZE = 4096 };

struct proc_stat {
    char state; /* 'R', 'S', 'D', 'Z', … */
    pid_t parent, session;
    int64_t start; /* clock ticks since boot; with pid, boot id: one process for ever */
};

/* Returns 0, or -1 if there is no such process. */
int proc_stat(pid_t pid, struct proc_stat *ret_stat);

/* Writes up to MAX children of this process, running or zombie, to ret_pids; returns how
 * many it wrote.  A list taken while children come and go may miss some: take it again
 * at the next SIGCHLD. */
int proc_children(pid_t *ret_pids, int max);

/* "" where the kernel does not tell. */
void proc_boot_id(char ret_id[PROC_BOOT_ID_SIZE]);

/* The directory this executable lies in; "." if that is unknown. */
void proc_directory(char ret_path[PROC_PATH_SIZE]);

#endif
