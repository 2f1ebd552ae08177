/* What `reprod preflight` does within its deadline: a service of its own measures a short
 * list of workloads on each device. */
#ifndef DAEMON_CLIENT_PREFLIGHT_MEASURE_H
#define DAEMON_CLIENT_PREFLIGHT_MEASURE_H

#include <jansson.h>
#include <stdint.h>

#include "daemon/client/http.h"

/* Texts are borrowed from the command line; NULL: not given. */
struct preflight_asked {
    const char *workloads, *variants, *sizes, *runs, *iterations, *seconds, *gpus, *url,
        *against, *config, *node, *condition, *node_object, *event, *cpu;
    int seconds_wanted, gpus_expected; /* 0: any number */
    struct server server;              /* if url */
    json_t *baseline;                  /* of AGAINST; NULL: none was given */
    int64_t until_ms; /* of clock_monotonic_ms: what is measured then counts */
};

/* Measures in FOLDER, and sends what is known over FD (preflight_watch.h), where ARG is a
 * struct preflight_asked.  Whenever it is stopped, what it sent last holds. */
void preflight_measure(void *arg, const char *folder, int fd);

#endif
