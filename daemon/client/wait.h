/* Until a job is over. */
#ifndef DAEMON_CLIENT_WAIT_H
#define DAEMON_CLIENT_WAIT_H

#include <jansson.h>

#include "daemon/client/http.h"

/* The job ID (as a path has it, escaped) once it is finished or cancelled: a new JSON
 * value with its items, caller releases.  Its progress is shown where standard error is a
 * terminal.  A service that is away is waited for, for a minute: it may be starting anew.
 * So is one that is this command's own and is not ready.  NULL: *ret_exit is why, and it
 * was printed. */
json_t *client_wait(const struct server *server, const char *id, int *ret_exit);

#endif
