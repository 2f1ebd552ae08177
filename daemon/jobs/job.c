#include "daemon/jobs/job.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"

static const char *const states[] = {
    [JOB_QUEUED] = "queued",
    [JOB_RUNNING] = "running",
    [JOB_FINISHED] = "finished",
    [JOB_CANCELLED] = "cancelled",
};

static const char *const priorities[] = {
    [JOB_INTERACTIVE] = "interactive",
    [JOB_CONFIRMATION] = "confirmation",
    [JOB_SCHEDULED] = "scheduled",
    [JOB_BACKGROUND] = "background",
};

static const char *const localisation_states[] = {
    [LOCALISATION_SEARCHING] = "searching", [LOCALISATION_CAPTURING] = "capturing",
    [LOCALISATION_LOCALISED] = "localised", [LOCALISATION_NOT_FOUND] = "not_found",
    [LOCALISATION_FAILED] = "failed",
};

const char *job_state_name(enum job_state state)
{
    return states[state];
}

enum job_state job_state_parse(const char *name)
{
    enum job_state state = JOB_QUEUED;

    while (state < JOB_CANCELLED && strcmp(name, job_state_name(state)) != 0) {
        state++;
    }
    return state;
}

const char *job_priority_name(enum job_priority priority)
{
    return priorities[priority];
}

int job_priority_parse(const char *name, enum job_priority *ret_priority)
{
    for (int i = 0; i < COUNT_OF(priorities); i++) {
        if (strcmp(name, priorities[i]) == 0) {
            *ret_priority = (enum job_priority)i;
            return 0;
        }
    }
    return -1;
}

void job_release(struct job *job)
{
    free(job->request);
    free(job->localisation);
    free(job->items);
    job->request = NULL;
    job->localisation = NULL;
    job->items = NULL;
    job->item_count = 0;
}

const char *localisation_state_name(enum localisation_state state)
{
    return localisation_states[state];
}

void localisation_release(struct localisation *localisation)
{
    free(localisation->search);
    free(localisation->difference);
    localisation->search = NULL;
    localisation->difference = NULL;
}
