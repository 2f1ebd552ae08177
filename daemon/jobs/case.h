/* A case: what is computed.  Workload + version + variant + size + dtype + seed. */
#ifndef DAEMON_JOBS_CASE_H
#define DAEMON_JOBS_CASE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CASE_NAME_SIZE = 64,
    CASE_TITLE_SIZE = 256,
    DIGEST_TEXT_SIZE = 33,
    BITS_TEXT_SIZE = 17
};

struct case_key {
    char workload[CASE_NAME_SIZE];
    int version;
    char variant[CASE_NAME_SIZE];
    char size[CASE_NAME_SIZE];
    char dtype[CASE_NAME_SIZE];
    uint64_t seed;
};

#endif
