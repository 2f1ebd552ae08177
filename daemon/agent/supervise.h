/* Supervised processes: started through reprod-launch, watched, bounded, ended.
 *
 * The happy path: supervisor_start spawns the process as leader of its own session; its
 * lines arrive on the data pipe, its log on the log pipe; the pidfd tells that it exited;
 * the rest of its session is killed, then it is reaped; both pipes reach their end;
 * `finished` is called, once, and the object frees itself.
 *
 * What can go wrong: the deadline, supervised_kill or a flood start the kill ladder (TERM
 * to the group, grace, KILL, grace, then it is reported as stuck, and only the pidfd
 * stays open, to reap it if it ever dies).  Descendants that escaped may keep a pipe
 * open: they are killed as orphans (daemon/process/proc.h), and the pipe is closed
 * after a short while in any case. */
#ifndef DAEMON_AGENT_SUPERVISE_H
#define DAEMON_AGENT_SUPERVISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/agent/log_tail.h"
#include "daemon/base/err.h"
#include "daemon/process/run_exit.h"

struct supervised;

/* One for a loop; owns the SIGCHLD watch and knows every live process.  Embedded. */
struct supervisor {
    const char *launch; /* path of reprod-launch; borrowed, set before init */
    int64_t grace_ms;   /* between the steps of the ladder; set before init */
    uv_loop_t *loop;    /* the rest is private */
    uv_signal_t child_signal;
    struct supervised *first;
    bool paused;
    bool ending; /* everything was killed; nothing is to be started any more */
    void (*closed)(void *arg);
    void *closed_arg;
};

void supervisor_init(struct supervisor *supervisor, uv_loop_t *loop);

/* Processes that have not been reported yet, and, with them, descendants that are still
 * dying. */
bool supervisor_is_busy(const struct supervisor *supervisor);

/* KILL to everything, now. */
void supervisor_kill_all(struct supervisor *supervisor);

/* Backpressure: stops, or resumes, reading every data pipe.  What a worker left in its
 * pipe when it ended waits, too. */
void supervisor_pause(struct supervisor *supervisor, bool paused);

/* Stops watching.  Nothing may be unreported; stuck processes are left to themselves.
 * CLOSED(arg) follows. */
void supervisor_close(struct supervisor *supervisor, void (*closed)(void *arg),
                      void *arg);

struct supervised_events {
    /* One line of the data pipe (newline excluded, at most WIRE_LINE_MAX bytes); borrowed
     * for the call. COMPLETE is false for what follows the last newline at the end of
     * the pipe.  NUMBER counts from 1. */
    void (*line)(void *arg, int64_t number, const char *text, size_t length,
                 bool complete);
    /* Once.  The object is gone afterwards.  EXIT and its log are borrowed. */
    void (*finished)(void *arg, const struct run_exit *exit);
};

struct supervise {
    const char *program; /* absolute; all texts are borrowed for the call */
    char *const *args;   /* what follows the program, NULL-terminated */
    char *const *env;
    const char *directory; /* where it runs; NULL: where this process does */
    int data_fd;           /* the descriptor that carries the lines: 3, or 1 (then
                              standard error alone is the log) */
    int64_t timeout_ms;
    int64_t max_lines, max_bytes; /* on the data pipe; more is a flood */
    bool patient;                 /* TERM and grace before KILL */
    bool asked; /* its standard input is a pipe for supervised_ask, and not /dev/null */
};

/* EVENTS is borrowed for ever.  No event is called before this returns. */
enum err_code supervisor_start(struct supervisor *supervisor,
                               const struct supervise *supervise,
                               const struct supervised_events *events, void *arg,
                               struct supervised **ret_supervised, struct err *err);

pid_t supervised_pid(const struct supervised *supervised);

/* Moves the deadline by MS, unless the process is being ended already. */
void supervised_extend(struct supervised *supervised, int64_t ms);

/* For a process that is asked for one thing after another: what follows counts anew, its
 * lines, bytes, log and time, within these bounds. */
void supervised_count_anew(struct supervised *supervised, int64_t timeout_ms,
                           int64_t max_lines);

/* Writes a line of at most PIPE_BUF bytes, newline included, to standard input.  False:
 * the process does not take it. */
bool supervised_ask(struct supervised *supervised, const char *line, size_t length);

/* What is known of a process that goes on: its time and its log since it counts anew.
 * RET_EXIT borrows the log from RET_LOG. */
void supervised_so_far(const struct supervised *supervised, char ret_log[LOG_TAIL_SIZE],
                       struct run_exit *ret_exit);

/* Starts the ladder with that reason, unless the process is being ended already. */
void supervised_kill(struct supervised *supervised, enum exit_reason reason);

#endif
