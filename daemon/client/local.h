/* A service of this process's own, for `reprod check --local`: it listens on a port of
 * 127.0.0.1 that the system chooses, measures only what it is asked for, and ends with
 * this process, however that ends. */
#ifndef DAEMON_CLIENT_LOCAL_H
#define DAEMON_CLIENT_LOCAL_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "daemon/client/http.h"

struct local {
    pid_t pid;  /* 0: there is none */
    FILE *said; /* what it printed, without a name */
};

/* Starts one with the configuration CONFIG (NULL: the defaults) and the data folder DATA,
 * and waits until it is ready and each host of the configuration has said what is there,
 * however long its stacks take to say what they are.  ERR_IO: it ended before that; what
 * it printed was printed.  ERR_BUSY, ERR_TIMEOUT: it does not become ready.  local_stop
 * is due in any case. */
enum err_code local_start(const char *config, const char *data, struct local *ret_local,
                          struct server *ret_server, struct err *err);

/* Ends it, as SIGTERM does. */
void local_stop(struct local *local);

/* A new folder in TMPDIR, caller releases with local_scratch_remove, which removes what
 * is in it, too.  NULL: ERR says why. */
char *local_scratch_make(struct err *err);
void local_scratch_remove(char *folder);

/* The children that this process has now are none of its own: where a shell that had
 * some became it.  They are left alone. */
void local_spare_children(void);

/* Kills the children of this process, and does not wait for them. */
void local_kill_children(void);

/* Whether the only children are those that are left alone. */
bool local_has_only_spared(void);

/* The exit status of WORK(ARG, a new folder in TMPDIR), which runs in a child of this
 * process.  However that ends (a signal to this process ends it), what it started is
 * waited for, and the folder is removed.  -1: there is none, ERR says why. */
int local_in_scratch(int (*work)(void *arg, const char *folder), void *arg,
                     struct err *err);

#endif
