/* A child process of the loop: its start with pipes, and its end.
 *
 * The happy path: child_start; it ends, what is left of its process group is killed, it
 * is reaped, and `ended` comes; child_close.  One that does not end goes on after
 * child_close, and nobody waits for it.
 *
 * Embedded in its owner, who may free himself once the callback of child_close was
 * called. Loop thread only. */
#ifndef DAEMON_PROCESS_CHILD_H
#define DAEMON_PROCESS_CHILD_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/base/err.h"

struct child {
    /* Once, from the loop. */
    void (*ended)(void *arg);
    void *arg;
    bool sweeps; /* runs are below it: what their workers leave behind is killed, too */

    pid_t pid;   /* also of its process group */
    bool exited; /* it is reaped, and STATUS is waitpid's */
    int status;

    int pidfd; /* the rest is private */
    int open_handles;
    uv_poll_t poll;
    uv_signal_t signal;
    void (*closed)(void *arg);
};

/* The owner's ends of its standard input, output and error, which he closes. */
struct child_pipes {
    int in, out, err;
};

struct child_start {
    char *const *argv; /* NULL-terminated, borrowed */
    char *const *env;  /* likewise; NULL: child_environment(NULL, NULL) */
    bool has_input;    /* else its input is /dev/null, and `in` -1 */
};

/* Starts and watches it.  ended, arg and sweeps are set before. */
enum err_code child_start(struct child *child, uv_loop_t *loop,
                          const struct child_start *start, struct child_pipes *ret_pipes,
                          struct err *err);

/* The environment of this process without what begins with one of WITHOUT ("SQUEUE_",
 * NULL-terminated; NULL: all of it), ADDED ("NAME=value", NULL: nothing), and the mark of
 * this service (daemon/process/leftovers.h).  The array is the caller's, its texts are
 * borrowed. */
char **child_environment(char *added, const char *const *without);

/* To its group; nothing once it has ended. */
void child_kill(const struct child *child, int number);

/* CLOSED(arg) is called once its handles are gone.  To be called once. */
void child_close(struct child *child, void (*closed)(void *arg));

#endif
