/* What the scheduler knows of open jobs: private to it.
 *
 * A fleet has many devices and a job many items, most of which differ in their device
 * only. So what there is to do is found by the device, and what an item computes is kept
 * once for all that compute the same. */
#ifndef DAEMON_JOBS_SCHEDULER_OPEN_H
#define DAEMON_JOBS_SCHEDULER_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/lookup.h"
#include "daemon/jobs/job.h"

/* What items compute, whichever device they are of. */
struct recipe {
    char *name; /* its key in `recipes` */
    struct case_key key;
    char stack[CASE_NAME_SIZE];
    struct run_options options;
    int64_t timeout_ms; /* 0: the job's */
    int uses;
};

struct open_item {
    struct recipe *recipe;
    struct part *part;
    int64_t milliseconds;
    int wanted, answered, failed, unanswered;
    int challenges; /* that were made since the job was added */
    bool given_up;
    bool in_flight;
    bool waits; /* not before it is released */
};

/* The items of a job on one device. */
struct part {
    struct open_job *job;
    struct open_device *device;
    int *items; /* ascending */
    int count;
    int first_open; /* those before it are done */
};

struct open_job {
    char id[ID_SIZE];
    enum job_priority priority;
    int iterations;
    int64_t timeout_ms;
    struct open_item *items;
    int count;
    struct part **parts;
    int part_count;
    bool localises;
    bool stops_when_varies;
    bool asks;            /* waits for the decision whether it goes on */
    int first_open;       /* items before it are done */
    uint64_t served;      /* serial of the last service; 0: never */
    int64_t ms, attempts; /* of all its items */
};

struct open_device {
    char id[CASE_TITLE_SIZE];
    struct part **parts; /* in the order in which their jobs came */
    int count;
};

struct open_jobs {
    struct open_job **jobs; /* in order of arrival */
    int count;
    struct lookup job_of;    /* an id */
    struct lookup device_of; /* likewise; a device stays when its jobs are done */
    struct open_device **devices;
    int device_count;
    struct lookup recipes;
};

void open_jobs_release(struct open_jobs *open);

/* Takes a copy of JOB and its items. */
void open_jobs_add(struct open_jobs *open, const struct job *job);
void open_jobs_remove(struct open_jobs *open, struct open_job *job);

/* ITEM computes with OPTIONS from now on. */
void open_jobs_change(struct open_jobs *open, struct open_item *item,
                      const struct run_options *options);

static inline bool open_item_done(const struct open_item *item)
{
    return item->given_up || item->answered >= item->wanted;
}

/* Runs of ITEM that ended, whatever came of them. */
static inline int open_item_attempts(const struct open_item *item)
{
    return item->answered + item->unanswered;
}

/* Device time until JOB is done; -1: no run of it has finished yet. */
int64_t open_job_eta(const struct open_job *job);

#endif
