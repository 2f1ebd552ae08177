/* Screening (daemon/evidence/screening.h) in the service: a device that is new, has
 * returned, was moved or upgraded gets a job of its own, with what a survey measures and
 * whatever was measured on devices like it.  Its priority is `confirmation`: behind what
 * people request, before schedules and background evidence.  When it is over, the device
 * is judged.
 *
 * Where no device was ever screened, all that are there are: this is the survey of a new
 * database, one job (survey_jobs.h: several, for a large fleet) with the priority of a
 * survey.  It waits until every host was heard, for SCREENING_SETTLE_MS at most.
 *
 * What is needed and what was done is in the store (db/screening/screenings.h), so it
 * happens once, whenever the service ends.  Loop thread only. */
#ifndef DAEMON_SCREENING_H
#define DAEMON_SCREENING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/evidence/catalogue.h"
#include "daemon/jobs/device.h"
#include "daemon/jobs/job.h"
#include "db/store.h"

struct screener;

enum {
    SCREENING_SETTLE_MS = 10 * 1000,   /* since the last host said hello */
    SCREENING_PRESENT_MS = 3600 * 1000 /* so often it is stored which devices are there */
};

struct screener_hooks {
    void *arg;
    const struct catalogue *(*catalogue)(void *arg); /* NULL: no agent said hello yet */
    int (*devices)(void *arg, const struct device_stack **ret_devices);
    bool (*recorded)(void *arg); /* what hosts that are online said is stored */
    bool (*complete)(void *arg); /* every host was heard */
    void (*accepted)(void *arg, const struct job *job); /* durable; borrowed */
    void (*nothing)(void *arg); /* after screener_look: no device has to be screened */
};

/* STORE is borrowed; freed after it was closed. */
struct screener *screener_new(struct store *store, const struct screener_hooks *hooks);
void screener_free(struct screener *screener); /* NULL is fine */

/* Devices may have changed, or whether ENABLED: else what is due stays so. */
void screener_look(struct screener *screener, bool enabled);

/* To be called about once a second, and after screener_look: does the next step. */
void screener_tick(struct screener *screener, int64_t now_wall_ms,
                   int64_t now_monotonic_ms);

#endif
