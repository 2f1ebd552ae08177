/* A case: what is computed.  Workload + version + variant + size + dtype + seed. */
#ifndef WORKLOADS_EVIDENCE_CASE_H
#define WORKLOADS_EVIDENCE_CASE_H

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

/* What a run of a case reported, collected and checked by the daemon (daemon/run_fold.h).
 * Texts are owned by whoever owns the struct unless stated otherwise. */
struct run_digest {
    char digest[DIGEST_TEXT_SIZE];
    int64_t iterations;      /* how many of the run's iterations showed it */
    int64_t first_iteration; /* the first of them */
};

#endif
