/* The daemon's end of one agent: starts it (directly, or through a launch command such as
 * ssh or srun), checks every line it says, and tells the owner.
 *
 * The happy path: link_open starts the process; its hello comes; link_run sends commands;
 * events come; link_close ends its standard input, and the agent kills what runs there
 * and exits.
 *
 * What can go wrong: it cannot be started (link_open fails), says no hello in time,
 * speaks another version or breaks the protocol in any way, does not read, does not
 * answer pings (one that says in its hello that it can), exits, or loses its connection.
 * Each of these ends in one `closed` event with the cause; then the agent is ended, and
 * the owner calls link_close.  What the workers of a dead local agent left behind is
 * killed here (daemon/process/proc.h).
 *
 * Loop thread only.  Events come from the loop, never from within a function below. */
#ifndef DAEMON_LINK_LINK_H
#define DAEMON_LINK_LINK_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/base/err.h"
#include "daemon/link/link_wire.h"

struct link;

/* ARGV (NULL-terminated) starts the agent of the host called NAME; its standard error
 * goes to the log under that name.  EVENTS and ARG are borrowed until link_close. */
enum err_code link_open(uv_loop_t *loop, const char *name, char *const *argv,
                        const struct link_events *events, void *arg,
                        struct link **ret_link, struct err *err);

/* No run is to be sent, or some may be again. */
void link_hold(struct link *link, bool held);

/* Whether a run may be sent: it is not held, and its agent is neither gone nor ending. */
bool link_takes_runs(const struct link *link);

/* Why its agent was told to end; NULL: it was not.  Borrowed. */
const char *link_ending(const struct link *link);

/* Sends the run; answered by started or refused, or by closed.  After hello only. */
void link_run(struct link *link, const struct link_run *run);

/* Asks to end the run; answered by its exited event. */
void link_cancel(struct link *link, const char *run);

/* Ends the agent.  No event comes any more; CLOSED(arg) does once it is gone (or does not
 * die), and LINK with it.  May be called from within `closed`. */
void link_close(struct link *link, void (*closed)(void *arg), void *arg);

#endif
