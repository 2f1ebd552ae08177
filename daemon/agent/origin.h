/* Whether a stream of events comes from the run that it is said to be of, and not from a
 * recording of another: each run gets a nonce in its environment (REPROD_NONCE), which
 * its start event returns, with the pid of the process that writes it. */
#ifndef DAEMON_AGENT_ORIGIN_H
#define DAEMON_AGENT_ORIGIN_H

#include <jansson.h>
#include <sys/types.h>

#include "daemon/base/err.h"

enum { ORIGIN_VARIABLE_SIZE = 64 };

struct origin {
    char variable[ORIGIN_VARIABLE_SIZE]; /* "REPROD_NONCE=…" */
};

/* Draws a nonce: 128 random bits, as 32 hexadecimal digits. */
void origin_draw(struct origin *ret_origin);

/* The nonce alone, borrowed. */
const char *origin_nonce(const struct origin *origin);

/* ENVIRONMENT (NULL-terminated; for free_texts) with the nonce.  Takes it over. */
char **origin_environment(const struct origin *origin, char **environment);

/* START is a run's start event, LEADER the process that was started.  ERR_PROTOCOL: the
 * nonce is missing or another one, or the pid is that of a process that does not belong
 * to the run.  A process that is gone by now may have belonged to it. */
enum err_code origin_check(const struct origin *origin, const json_t *start, pid_t leader,
                           struct err *err);

#endif
