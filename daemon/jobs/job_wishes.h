/* The members of a job request, read and checked one by one: what job_request_expand
 * works on.  Pure. */
#ifndef DAEMON_JOBS_JOB_WISHES_H
#define DAEMON_JOBS_JOB_WISHES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/jobs/job.h"
#include "daemon/jobs/problem.h"

/* A list of names; texts are borrowed from the request. */
struct name_list {
    const char **names;
    int count;
    bool given; /* the request has this member */
};

struct job_wishes {
    struct name_list workloads, variants, sizes, dtypes, devices, stacks;
    bool all_stacks; /* "stacks":"all" */
    uint64_t *seeds;
    int seed_count;
    int runs, iterations;
    int64_t timeout_ms;
    bool timeout_given;
    bool stop_when_varies, survey, localise;
    int runs_max; /* if localise: `runs` are the least, these the most */
    enum job_priority priority;
    json_t *options; /* the worker's further arguments (job_item.options), an object */
};

/* Reads REQUEST; what is wrong is added to PROBLEMS.  Caller releases in either case. */
void job_wishes_read(const json_t *request, struct job_wishes *ret_wishes,
                     struct problems *problems);
void job_wishes_release(struct job_wishes *wishes);

/* Whether LIST was not given or holds NAME. */
bool name_list_allows(const struct name_list *list, const char *name);

#endif
