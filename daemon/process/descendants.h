/* Processes that outlive the process that started them.  This process becomes the parent
 * of whatever its children leave behind (a child subreaper, prctl(2)), so that a worker
 * cannot escape by fork and setsid: unknown processes are killed and reaped.
 *
 * State is one per process, as children are.  Loop thread only. */
#ifndef DAEMON_PROCESS_DESCENDANTS_H
#define DAEMON_PROCESS_DESCENDANTS_H

#include <stdbool.h>
#include <sys/types.h>

/* Makes this process the subreaper.  Children it has already are left alone for ever
 * (they are of whoever executed this program).  Calling it again changes nothing. */
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
