/* Where cases are computed: hosts, their devices, environments. */
#ifndef DAEMON_JOBS_DEVICE_H
#define DAEMON_JOBS_DEVICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/jobs/case.h"

struct host {
    char name[CASE_TITLE_SIZE];
    char boot_id[CASE_NAME_SIZE];
    int64_t first_seen_ms, last_seen_ms;
};

struct device {
    char id[CASE_TITLE_SIZE]; /* "cpu:host" or a GPU's UUID */
    char host[CASE_TITLE_SIZE];
    char backend[CASE_NAME_SIZE];
    char model[CASE_TITLE_SIZE];
    const char *attributes_json; /* object as probed; borrowed for the call */
    int64_t first_seen_ms, last_seen_ms;
};

/* A device with one of the stacks that serve it, as the agents last reported them: one
 * entry a pair. */
struct device_stack {
    const char *id;      /* "cpu:host-a" */
    const char *backend; /* "cpu" */
    const char *stack;
    const char *host;
    bool is_default;         /* its first stack */
    bool online;             /* its agent is connected */
    bool released;           /* it is not, but comes when there is something to do */
    const char *state;       /* of its host, as the API names it; NULL: not known */
    const char *cause;       /* why it is not online; "" or NULL */
    const json_t *catalogue; /* what the stack's worker computes, as --catalogue prints
                                it; NULL: all there is for the backend */
};

/* Whether what is asked of DEVICE will be done. */
static inline bool device_is_there(const struct device_stack *device)
{
    return device->online || device->released;
}

/* Inside one, equal bits are expected. */
struct environment {
    char id[DIGEST_TEXT_SIZE];
    char title[CASE_TITLE_SIZE];
    const char *json;                    /* canonical; borrowed for the call */
    int64_t first_seen_ms, last_seen_ms; /* of its runs */
    int64_t cells;
    int64_t number; /* of this file only */
};

#endif
