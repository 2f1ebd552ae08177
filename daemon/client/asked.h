/* What the command line of `reprod check` asks for. */
#ifndef DAEMON_CLIENT_ASKED_H
#define DAEMON_CLIENT_ASKED_H

#include <jansson.h>

#include "daemon/base/err.h"
#include "daemon/client/gate.h"
#include "daemon/client/http.h"

/* Texts are borrowed from the command line; NULL: not given. */
struct asked {
    const char *url, *job, *workloads, *variants, *sizes, *runs, *iterations, *against,
        *cost, *localise, *junit, *markdown, *local, *config, *data;
    struct server server; /* not with --local */
    struct gate_limits limits;
    int localise_runs; /* for each case at most; 0: none is localised */
};

/* ERR_INVALID says what is wrong with the command line. */
enum err_code asked_read(int argc, char **argv, struct asked *ret_asked, struct err *err);

/* The body of the job that is asked for; caller frees.  NULL: ERR_INVALID says why. */
char *asked_body(const struct asked *asked, struct err *err);

/* "a,b" as a list; NULL: an empty one.  A new value. */
json_t *asked_list(const char *text);

/* A number as one; what is none goes as it is, and the service says what is wrong. */
json_t *asked_number(const char *text);

#endif
