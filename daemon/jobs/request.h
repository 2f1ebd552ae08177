/* What a person asks for: a job request, its members read and checked one by one.  Pure.
 *
 *   {"workloads":[…], "variants":[…], "sizes":[…], "dtypes":[…], "seeds":[…] or "seed",
 *    "devices":[…], "stacks":[…], "runs":5, "iterations":10, "timeout_seconds":60,
 *    "stop_when_varies":false, "priority":"interactive", "survey":false, "note":"",
 *    "contention":4, "memory_poison":true, "allocation_jitter":true, "probes":true,
 *    "localise":false, "runs_max":200}
 *
 * "contention", "memory_poison", "allocation_jitter" and "probes" are the options of each
 * run (workloads/PROTOCOL.md).  "probes" is true (every step), a number (every so many
 * steps), false, or an object of which each member may be left out:
 *
 *   {"every":10, "names":"conv*", "steps":[100,199]}
 *
 * Every member may be left out.  Defaults: no options; all workloads (external ones if
 * their configuration says "survey"), all variants, all devices that are online; each
 * workload's first size and dtype; seed 1; for each workload, the first stack of a device
 * that has it; the timeout of the slowest workload, at least 60 s.  "stacks":"all" means
 * every stack.  "survey":true changes the defaults: stop_when_varies true, priority
 * background, stacks "all".  A variant, size or dtype that only some of the workloads
 * have applies to those, and a workload that a stack's worker lacks is left out there.
 *
 * "localise":true looks for the place where runs of one case diverge
 * (db/localisations.h).  The request must expand to exactly one item, which is run with
 * probes at least `runs` times and at most `runs_max` times; iterations default to 1. */
#ifndef DAEMON_JOBS_REQUEST_H
#define DAEMON_JOBS_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/jobs/job.h"
#include "daemon/jobs/problem.h"

enum {
    JOB_RUNS_DEFAULT = 5,
    JOB_ITERATIONS_DEFAULT = 10,
    JOB_TIMEOUT_SECONDS_DEFAULT = 60,
    JOB_RUNS_MAX = 100000,           /* of one item */
    JOB_LOCALISE_RUNS_DEFAULT = 200, /* runs_max */
    JOB_LOCALISE_RUNS_MAX = 10000,
    JOB_ITERATIONS_MAX = 1000,
    JOB_TIMEOUT_SECONDS_MAX = 86400,
    JOB_ITEMS_MAX = 10000,
    JOB_RUNS_TOTAL_MAX = 10000000,
    JOB_NOTE_MAX = 1000,
    JOB_CONTENTION_MAX = 64
};

/* What is requested.  JSON and texts are borrowed from the request. */
struct job_request {
    /* Arrays of names; NULL: not given. */
    const json_t *workloads, *variants, *sizes, *dtypes, *devices, *stacks;
    bool all_stacks; /* "stacks":"all" */
    uint64_t *seeds;
    int seed_count;
    int runs, iterations;
    int64_t timeout_ms;
    bool timeout_given;
    bool stop_when_varies, survey, localise;
    int runs_max; /* if localise: `runs` are the least, these the most */
    enum job_priority priority;
    struct run_options options;
};

/* Reads JSON, an object; what is wrong is added to PROBLEMS.  Caller releases in either
 * case. */
void job_request_read(const json_t *json, struct job_request *ret_request,
                      struct problems *problems);
void job_request_release(struct job_request *request);

/* Whether LIST, an array of names, was not given or holds NAME. */
bool name_list_allows(const json_t *list, const char *name);

#endif
