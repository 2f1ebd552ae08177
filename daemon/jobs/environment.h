/* Environments: inside one, equal bits are expected. */
#ifndef DAEMON_JOBS_ENVIRONMENT_H
#define DAEMON_JOBS_ENVIRONMENT_H

#include <stdint.h>

#include "daemon/jobs/case.h"

struct environment {
    char id[DIGEST_TEXT_SIZE];
    char title[CASE_TITLE_SIZE];
    const char *json;                    /* canonical; borrowed for the call */
    int64_t first_seen_ms, last_seen_ms; /* of its runs */
    int64_t cells;
    int64_t number; /* of this file only */
};

#endif
