/* Runs: what is known of one fresh process that computed a case. */
#ifndef DAEMON_JOBS_RUN_H
#define DAEMON_JOBS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/id.h"
#include "daemon/evidence/subject.h"
#include "daemon/jobs/case.h"
#include "daemon/jobs/challenge.h"
#include "daemon/jobs/check.h"
#include "daemon/jobs/options.h"
#include "daemon/jobs/outcome.h"

struct trace;

/* A digest that a run showed. */
struct run_digest {
    char digest[DIGEST_TEXT_SIZE];
    int64_t iterations;      /* how many of the run's iterations showed it */
    int64_t first_iteration; /* the first of them */
};

/* What is stored before the agent gets the command to start a run. */
struct run_intent {
    char id[ID_SIZE];
    char job[ID_SIZE];
    int item; /* seq of the job's item */
    int64_t intent_ms;
    struct challenge_offer offer; /* what the scheduler drew */
    /* Filled by runs_begin: the seed of a challenge, 0: it is an ordinary run; whether
     * the run is asked to check itself, and the digest of its cell that passed already;
     * "": none. */
    uint64_t challenge;
    bool checks;
    char passed[DIGEST_TEXT_SIZE];
};

/* A run as stored.  Texts are "" and numbers 0 where the run never got so far; `finished`
 * tells whether `outcome` counts. */
struct run_record {
    char id[ID_SIZE];
    char job[ID_SIZE];
    int item;
    struct case_key key;
    char device[CASE_TITLE_SIZE];
    char stack[CASE_NAME_SIZE];
    enum subject subject;
    char subject_name[SUBJECT_NAME_SIZE]; /* "" for a model */
    char environment[DIGEST_TEXT_SIZE];
    int64_t cell;       /* where it counts, see runs_finish; 0: in none */
    bool is_challenge;  /* its case has another seed than its item's */
    int64_t challenged; /* then: the cell that learns how it answered; 0: none */
    bool finished;
    bool damaged; /* it is not what was stored (db/integrity/checksums.h): nothing follows
                     from it */
    enum outcome outcome;
    char cause[CASE_TITLE_SIZE * 2];
    int64_t intent_ms, started_ms, finished_ms; /* wall clock; 0: not (yet) */
    int64_t pid, process_start;                 /* with boot_id: which process it is */
    char boot_id[CASE_NAME_SIZE];
    int64_t iterations;            /* done */
    int64_t distinct_digests;      /* within the run */
    char digest[DIGEST_TEXT_SIZE]; /* of its first iteration */
    char input_digest[DIGEST_TEXT_SIZE];
    char weight_sum[BITS_TEXT_SIZE]; /* hex of the binary64 bits, last iteration */
    char loss[BITS_TEXT_SIZE];       /* "" where the workload has none */
    char algorithm[CASE_TITLE_SIZE];
    char claim[CASE_NAME_SIZE];
    int64_t min_ns, median_ns, max_ns; /* of its iterations */
    int64_t elements, bytes_hashed;
    char device_read_back[CASE_TITLE_SIZE];
    int64_t wall_ns;
    int64_t max_rss_kb;
    int64_t trace_records; /* kept; 0: it has no trace (db/traces.h) */
    int64_t trace_dropped; /* not kept, beyond the bound */
    char circumstances[RUN_CIRCUMSTANCES_SIZE]; /* canonical JSON object; "": none */
    struct run_check check;
};

enum { RUN_TELEMETRY_MAX = 4096 }; /* bytes of one sample */

/* Whether load computed on the device during RUN. */
bool run_is_contended(const struct run_record *run);

/* Whether nothing hashes so many BYTES in WALL_MS, the life of a process. */
bool run_hashed_too_fast(int64_t bytes, double wall_ms);

/* A tensor that a run captured: its place read or wrote it. */
struct captured_tensor {
    bool is_out;                /* written; else read */
    int index;                  /* among those that are read, or written */
    char name[CASE_TITLE_SIZE]; /* "": none */
    char dtype[CASE_NAME_SIZE];
    char *shape;   /* JSON array */
    int64_t total; /* bytes of the tensor */
    void *data;    /* its first `bytes`, little-endian */
    int64_t bytes;
};

/* Frees what TENSOR points to. */
void captured_tensor_release(struct captured_tensor *tensor);

/* A finished run: `run` with everything the store does not know yet filled in, its
 * distinct digests, its environment and its log tail.  All borrowed. */
struct run_result {
    const struct run_record
        *run; /* id, outcome and results; job, item, key, … are looked up */
    const struct run_digest *digests;
    int digest_count;
    const char *environment_json;          /* canonical; NULL if the run never said */
    const char *environment_title;         /* for people */
    const char *libraries_json;            /* array as reported, or NULL */
    const char *telemetry_start;           /* object as reported, or NULL */
    const char *telemetry_end;             /* likewise */
    const struct trace *trace;             /* NULL: none */
    const struct captured_tensor *tensors; /* captured; db/captures.h */
    int tensor_count;
    const char *log;               /* tail of stdout and stderr */
    int64_t log_length, log_bytes; /* kept and written */
};

#endif
