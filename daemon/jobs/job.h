/* Jobs and their items: what a person submitted, and how far it is; localisations, the
 * jobs that look for the place where their runs diverge. */
#ifndef DAEMON_JOBS_JOB_H
#define DAEMON_JOBS_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/id.h"
#include "daemon/evidence/subject.h"
#include "daemon/jobs/case.h"
#include "daemon/jobs/options.h"

enum {
    JOBS_STOP_RUNS = 3, /* answered runs of an item before stop_when_varies may end it: as
                           many as a cost needs */
    RUNS_LOST_MAX = 3   /* an item that was lost more often is given up */
};

enum job_state { JOB_QUEUED, JOB_RUNNING, JOB_FINISHED, JOB_CANCELLED };
const char *job_state_name(enum job_state state);
enum job_state job_state_parse(const char *name); /* of a name that is one */

/* Order of service: lower first. */
enum job_priority { JOB_INTERACTIVE, JOB_CONFIRMATION, JOB_SCHEDULED, JOB_BACKGROUND };
const char *job_priority_name(enum job_priority priority);
int job_priority_parse(const char *name, enum job_priority *ret_priority); /* 0, or -1 */

/* One item of a job: a case on one device with one stack, RUNS_WANTED times. */
struct job_item {
    int seq; /* 0 … within the job */
    struct case_key key;
    bool is_control;
    char kind[CASE_NAME_SIZE];        /* as in struct catalogue_variant; "": race */
    char no_control[CASE_TITLE_SIZE]; /* "" when the workload has a control */
    bool unseeded;                    /* its command has no seeded inputs */
    enum subject subject;
    char subject_name[SUBJECT_NAME_SIZE]; /* "" for a model */
    char device[CASE_TITLE_SIZE];
    char stack[CASE_NAME_SIZE];
    struct run_options options;
    int64_t timeout_ms; /* of each run; 0: the job's */
    int runs_wanted;
    int runs_answered;   /* outcome_is_answer */
    int runs_failed;     /* outcome_is_failure */
    int runs_unanswered; /* lost, infra: were run again, up to a bound */
    bool given_up;       /* no more runs: it varies already, is unsupported, or was lost
                            too often */
    char given_up_reason[CASE_TITLE_SIZE];
    int64_t milliseconds; /* device time of its finished runs */
    bool held; /* its runs wait for scheduler_release; not stored: a restart derives it
                  from when the job was made (daemon/recurring.h) */
};

struct job {
    char id[ID_SIZE];
    enum job_state state;
    enum job_priority priority;
    bool survey;
    bool stop_when_varies; /* an item ends as soon as its cell varies */
    int localise_runs;     /* 0: it does not localise; else it compares at least this many
                              runs to find the place where they diverge, and has the items
                              LOCALISATION_SEARCH and LOCALISATION_CAPTURE */
    int iterations;        /* of each run */
    int64_t timeout_ms;    /* of each run of the items that have none of their own */
    int64_t created_ms;
    int64_t finished_ms; /* 0: not yet */
    int runs_total;      /* sum of runs_wanted, less what given-up items will not run */
    int runs_done;
    int runs_failed;
    /* These are freed by job_release. */
    char *request;          /* the JSON that was posted, canonical */
    char *localisation;     /* JSON object, its state and place; NULL: it localises
                               nothing */
    struct job_item *items; /* only where the function says so */
    int item_count;
};

/* Frees what JOB points to. */
void job_release(struct job *job);

enum localisation_state {
    LOCALISATION_SEARCHING, /* item 0 makes traces */
    LOCALISATION_CAPTURING, /* the place is known; item 1 captures it */
    LOCALISATION_LOCALISED, /* the place is known, and what can be said of it */
    LOCALISATION_NOT_FOUND, /* no pair of runs diverged at a place that explains it */
    LOCALISATION_FAILED     /* the runs left nothing to look at */
};
const char *localisation_state_name(enum localisation_state state);

enum { LOCALISATION_REASON_SIZE = 512 };

/* The items of the job. */
enum { LOCALISATION_SEARCH = 0, LOCALISATION_CAPTURE = 1, LOCALISATION_ITEMS = 2 };

struct localisation {
    enum localisation_state state;
    int runs_min; /* at least so many before a place counts as the earliest */
    char reason[LOCALISATION_REASON_SIZE]; /* of the state; "" while searching */
    int64_t ended_ms;                      /* 0: not yet */
    char *search, *difference; /* JSON objects, or NULL; freed by localisation_release */
};

void localisation_release(struct localisation *localisation);

#endif
