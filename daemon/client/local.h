/* A service of this process's own, for `reprod check --local`: it listens on a port of
 * 127.0.0.1 that the system chooses, measures only what it is asked for, and ends with
 * this process, however that ends. */
#ifndef DAEMON_CLIENT_LOCAL_H
#define DAEMON_CLIENT_LOCAL_H

#include <stdio.h>
#include <sys/types.h>

#include "daemon/client/http.h"

struct local {
    pid_t pid;     /* 0: there is none */
    char *scratch; /* the folder of its database, removed at the end; NULL: it stays */
    FILE *said;    /* what it printed, without a name */
};

/* Starts one with the configuration CONFIG (NULL: the defaults) and the data folder DATA
 * (NULL: a new one, in TMPDIR), and waits until it is ready, however long its stacks take
 * to say what they are.  ERR_IO: it ended before that; what it printed was printed.
 * ERR_BUSY, ERR_TIMEOUT: it does not become ready.  local_stop is due in any case. */
enum err_code local_start(const char *config, const char *data, struct local *ret_local,
                          struct server *ret_server, struct err *err);

/* Ends it, as SIGTERM does, and removes what is scratch. */
void local_stop(struct local *local);

#endif
