/* A command that prints lines and ends: started, read, bounded, and gone.
 *
 * The happy path: pull_start; lines come; the command exits with 0: `ended` without a
 * cause; pull_close.  What can go wrong: it cannot be started; it prints a line that is
 * too long, or nothing for a while; it ends otherwise.  Each of these is an `ended` with
 * its cause.  What it says on standard error goes to the log.
 *
 * Loop thread only.  Events come from the loop, never from within a function below. */
#ifndef DAEMON_PEERS_PULL_H
#define DAEMON_PEERS_PULL_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "daemon/base/err.h"

struct pull;

struct pull_events {
    size_t line_max;
    int silent_ms; /* nothing comes for so long: it is killed */
    /* Borrowed for the call.  What is behind the last newline is a line, too, if the
     * command ended well. */
    void (*line)(void *arg, const char *text, size_t length);
    /* Once, the last event.  CAUSE is NULL if it ended well; TOO_LONG: a line was. */
    void (*ended)(void *arg, const char *cause, bool too_long);
};

/* NAME stands before what goes to the log.  ARGV (NULL-terminated) is borrowed for the
 * call, EVENTS and ARG until pull_close. */
enum err_code pull_start(uv_loop_t *loop, const char *name, char *const *argv,
                         const struct pull_events *events, void *arg,
                         struct pull **ret_pull, struct err *err);

/* While paused, nothing is read, and the command has all the time it wants. */
void pull_pause(struct pull *pull, bool paused);

/* Ends the command, if it goes on: `ended` comes once it is gone, no line any more. */
void pull_abort(struct pull *pull);

/* No event comes any more; CLOSED(arg) does once the command is gone (or does not die),
 * and PULL with it.  May be called from within `ended`. */
void pull_close(struct pull *pull, void (*closed)(void *arg), void *arg);

#endif
