/* The daemon's end of one agent: starts it (directly, or through a launch command such as
 * ssh or srun), checks every line it says, and tells the owner.
 *
 * The happy path: link_open starts the process; its hello comes; link_run sends commands;
 * events come; link_close ends its standard input, upon which it kills what runs there
 * and exits.
 *
 * What can go wrong: it cannot be started (link_open fails), says no hello in time,
 * speaks another version or breaks the protocol in any way, does not read, exits, or
 * loses its connection.  Each of these ends in one `closed` event with the cause; the
 * agent is ended behind it, and the owner calls link_close.  What the workers of a dead
 * local agent left behind is killed here (daemon/process/descendants.h).
 *
 * Loop thread only.  Events come from the loop, never from within a function below. */
#ifndef DAEMON_FLEET_LINK_H
#define DAEMON_FLEET_LINK_H

#include <jansson.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/base/err.h"
#include "daemon/jobs/case.h"
#include "daemon/process/run_exit.h"

struct link;

/* Everything handed to a callback is borrowed for the call.  Between started and exited
 * of a run come its worker events and garbage; refused comes instead of started. */
struct link_events {
    /* Checked: version, host, pid, boot_id, stacks (array of objects). */
    void (*hello)(void *arg, const json_t *hello);
    void (*started)(void *arg, const char *run, int64_t pid, int64_t process_start);
    void (*worker_event)(void *arg, const char *run, const json_t *event);
    void (*garbage)(void *arg, const char *run, const char *cause);
    void (*exited)(void *arg, const char *run, const struct run_exit *exit);
    void (*refused)(void *arg, const char *run, const char *cause);
    /* Once, last: the agent is gone or unusable, and with it every run that has not
     * ended.  Not called after link_close. */
    void (*closed)(void *arg, const char *cause);
    int64_t hello_deadline_ms; /* 0: 15,000 */
    int64_t end_grace_ms;      /* between end of input and SIGTERM; 0: 10,000 */
};

/* ARGV (NULL-terminated) starts the agent of the host called NAME; its standard error
 * goes to the log under that name.  EVENTS and ARG are borrowed until link_close. */
enum err_code link_open(uv_loop_t *loop, const char *name, char *const *argv,
                        const struct link_events *events, void *arg,
                        struct link **ret_link, struct err *err);

struct link_run {
    const char *id, *stack, *device;
    int64_t timeout_ms;
    const struct case_key *key;
    int64_t iterations;
    const struct run_options *options;
};

/* Sends the run; answered by started or refused, or by closed.  After hello only. */
void link_run(struct link *link, const struct link_run *run);

/* Asks to end the run; answered by its exited event. */
void link_cancel(struct link *link, const char *run);

/* Ends the agent.  No event comes any more; CLOSED(arg) does once it is gone (or does not
 * die), and LINK with it.  May be called from within `closed`. */
void link_close(struct link *link, void (*closed)(void *arg), void *arg);

#endif
