/* Larger sizes of surveys on GPUs in the service (daemon/jobs/larger.h): when a survey of
 * a device is over, or a screening, the workloads that were too short there for a cost
 * get a job of their own in the next larger size, and so on.  It is a survey, too, with
 * its priority.
 *
 * What is needed follows from what is stored: which surveys there were, and what was
 * measured.  A larger size is asked for once after each survey, whenever the service
 * ends; where it was cancelled, or tells nothing, not again until the next survey.  Loop
 * thread only. */
#ifndef DAEMON_LARGER_H
#define DAEMON_LARGER_H

#include <stdint.h>

#include "daemon/evidence/catalogue.h"
#include "daemon/jobs/device.h"
#include "daemon/jobs/job.h"
#include "db/store.h"

struct larger;

struct larger_hooks {
    void *arg;
    const struct catalogue *(*catalogue)(void *arg); /* NULL: no agent said hello yet */
    int (*devices)(void *arg, const struct device_stack **ret_devices);
    void (*accepted)(void *arg, const struct job *job); /* durable; borrowed */
};

/* STORE is borrowed; freed after it was closed. */
struct larger *larger_new(struct store *store, const struct larger_hooks *hooks);
void larger_free(struct larger *larger); /* NULL is fine */

/* Devices may have changed. */
void larger_look(struct larger *larger);

/* To be called about once a second. */
void larger_tick(struct larger *larger);

#endif
