/* What follows a change of a host (db/views/changes.h): the survey that begins by itself
 * gets the cases that only the environments before had, and when it is over, drift is
 * reported, as an event.  Where nothing is measured by itself, or nothing of the change
 * can be, the end of the next jobs on its host is waited for instead. */
#ifndef DAEMON_CHANGES_H
#define DAEMON_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/evidence/catalogue.h"
#include "daemon/jobs/device.h"
#include "daemon/jobs/job.h"
#include "db/store.h"

struct changes;

struct changes_hooks {
    void *arg;
    /* NULL: no agent was heard. */
    const struct catalogue *(*catalogue)(void *arg);
    int (*devices)(void *arg, const struct device_stack **ret_devices);
    bool (*surveys)(void *arg); /* whether changes are measured by themselves */
    /* JOB is durable: it is to be scheduled.  Borrowed for the call. */
    void (*accepted)(void *arg, const struct job *job);
};

/* STORE is borrowed. */
struct changes *changes_new(struct store *store, const struct changes_hooks *hooks);
void changes_free(struct changes *changes); /* NULL is fine */

/* To be called about once a second: does the next step of the oldest open change, if
 * there is one.  Loop thread. */
void changes_tick(struct changes *changes);

/* Whether nothing of it is in the store. */
bool changes_idle(const struct changes *changes);

#endif
