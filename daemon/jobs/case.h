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

/* Whether A and B differ in their variant at most: workload, version, size, dtype and
 * seed are the same.  Siblings compute from the same inputs and share their controls; in
 * the database they have the same case_key.siblings. */
bool case_siblings(const struct case_key *a, const struct case_key *b);

#endif
