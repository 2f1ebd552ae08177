/* What `reprod check` says of a job that is over: whether each of its cases is equal in
 * all runs, and, where that is asked, to what another environment computed.  Pure: it
 * reads answers of the API.
 *
 * Equal is only what was shown.  A case passes where the runs of this job had one digest,
 * and its cell is reproducible: the control varied, the challenge was passed, nothing was
 * out of the bound of its reference.  It fails where something was seen to differ.
 * Everything else is unverified, and never passes. */
#ifndef DAEMON_CLIENT_GATE_H
#define DAEMON_CLIENT_GATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum gate_result { GATE_EQUAL, GATE_DIFFERENT, GATE_UNVERIFIED, GATE_RESULTS };

/* "equal", "different", "unverified". */
const char *gate_result_name(enum gate_result result);

/* What this job's runs of one item in one environment showed. */
struct gate_runs {
    int64_t seq;  /* of the item */
    int64_t cell; /* 0: none of its runs is in one */
    char environment[33];
    int64_t runs, completed;
    int64_t distinct; /* digests of all iterations; more than 2 count as 2 */
    char digest[33];
    char cause[256]; /* of the first run that did not complete: "crashed: …" */
    char failed[27]; /* its id; "": all completed */
};

/* Adds RUN, an item of GET /v1/runs, to LIST; caller frees *LIST. */
void gate_add_run(struct gate_runs **list, int *count, const json_t *run);

struct gate_case {
    char *title; /* "reduce_sum ordered (small, float32, seed 1) on cpu:vm, cpu" */
    char *name;  /* "ordered (small, float32, seed 1) on cpu:vm, cpu" */
    char *words; /* why */
    char *place; /* where its runs begin to diverge, or why that is not known; NULL: not
                    looked for */
    char *log;   /* the end of what the run FAILED printed; NULL: not read */
    char failed[27];      /* a run that did not complete; "": none */
    const json_t *item;   /* borrowed */
    const char *workload; /* borrowed from ITEM */
    enum gate_result result;
    int64_t cell;    /* 0: none */
    bool is_control; /* it was asked beside, and is no case to pass */
    bool diverges;   /* runs of it in one environment did */
};

/* What is asked beside that runs are equal. */
struct gate_limits {
    const char *against; /* an environment: the words it is named by; NULL: none */
    double cost;         /* the most that a case may cost; 0: whatever */
};

/* Judges ITEM, of GET /v1/jobs/{id}, by its RUNS (NULL: it has none), their CELL (NULL:
 * none) and, if LIMITS say against what, the case of GET /v1/drift that is theirs (NULL:
 * it has none).  gate_case_release frees what is in it. */
struct gate_case gate_judge(const json_t *item, const struct gate_runs *runs,
                            const json_t *cell, const json_t *drift,
                            const struct gate_limits *limits);
void gate_case_release(struct gate_case *one);

/* The case of DRIFT, an item of GET /v1/drift, that is ITEM's; NULL: there is none. */
const json_t *gate_drift_case(const json_t *drift, const json_t *item);

struct gate_counts {
    int of[GATE_RESULTS];
};

/* Of COUNT cases without controls: those of WORKLOAD, or, where that is NULL, all. */
struct gate_counts gate_count(const struct gate_case *cases, int count,
                              const char *workload);

/* GATE_DIFFERENT if any is, else GATE_UNVERIFIED if any is or there is none. */
enum gate_result gate_conclude(const struct gate_counts *counts);

#endif
