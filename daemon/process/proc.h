/* What /proc tells about processes, and the processes that outlive the one that started
 * them.  Linux only. */
#ifndef DAEMON_PROCESS_PROC_H
#define DAEMON_PROCESS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROC_BOOT_ID_SIZE = 37, PROC_PATH_SIZE = 4096 };

struct proc_stat {
    char state;   /* 'R', 'S', 'D', 'Z', … */
    bool exiting; /* it ends, or is a zombie: its environment cannot be read */
    pid_t parent, session;
    int64_t start; /* clock ticks since boot; with pid, boot id: one process for ever */
};

/* Returns 0, or -1 if there is no such process. */
int proc_stat(pid_t pid, struct proc_stat *ret_stat);

/* Whether a process that calls itself PID, perhaps in a namespace of its own, can be one
 * of a run: LEADER, one of its session, or one that carries MARK ("NAME=value") in its
 * environment.  False: PID is a process that is none of these.  One that is gone by now,
 * or ends, may have been one: true. */
bool proc_may_be(pid_t pid, pid_t leader, const char *mark);

/* Whether MARK ("NAME=value", or how it begins) is in what the environment of PID was
 * when it was executed. */
bool proc_has_variable(pid_t pid, const char *mark);

/* "" where the kernel does not tell. */
void proc_boot_id(char ret_id[PROC_BOOT_ID_SIZE]);

/* The directory this executable lies in; "." if that is unknown. */
void proc_directory(char ret_path[PROC_PATH_SIZE]);

/* Descendants: this process becomes the parent of whatever its children leave behind (a
 * child subreaper, prctl(2)), so that a worker cannot escape by fork and setsid: unknown
 * processes are killed and reaped.  State is one per process, as children are.  Loop
 * thread only. */

/* Makes this process the subreaper.  Children it has already are left alone for ever
 * (a program executed before this one started them).  A second call changes nothing. */
void descendants_init(void);

/* PID is a child that somebody here waits for; with it, its session is spared. */
void descendants_know(pid_t pid);
void descendants_forget(pid_t pid);

/* Kills and reaps every child that is not known and is in no known session; ONLY_WORKERS:
 * only those that carry a run's environment (REPROD_RESULT_FD).  Returns how many were
 * still there; their end raises SIGCHLD, and then what they in turn left behind is found
 * by the next call. */
int descendants_sweep(bool only_workers);

#endif
