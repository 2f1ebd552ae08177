/* What the commands do with a service's answers. */
#ifndef DAEMON_CLIENT_ANSWERS_H
#define DAEMON_CLIENT_ANSWERS_H

#include <jansson.h>

#include "daemon/client/client.h"
#include "daemon/client/http.h"

/* Prints ERR; CLIENT_USAGE where the command line is what is wrong, else
 * CLIENT_UNREACHABLE. */
int client_error(const struct err *err);

/* Prints what ANSWER, which is no success, says is wrong, a line each (RFC 9457). */
int client_refused(const struct answer *answer);

/* Prints the answer to GET PATH, a text.  */
int client_show(const struct server *server, const char *path);

/* What ANSWER says, a new JSON value, caller releases.  NULL: it is no success, or is not
 * of a reprod; *ret_exit is why, and it was printed. */
json_t *client_json(const struct server *server, const struct answer *answer,
                    int *ret_exit);

/* The answer to METHOD PATH, with BODY and KEY as for server_ask: a new JSON value,
 * caller releases.  NULL: *ret_exit is why, and it was printed. */
json_t *client_ask(const struct server *server, const char *method, const char *path,
                   const char *body, const char *key, int *ret_exit);

#endif
