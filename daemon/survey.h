/* The survey: the built-in job (survey_jobs.h: jobs, for a large fleet) that measures
 * every variant of every workload on every device.  A database gets one for every set of
 * environments it has not surveyed yet, so a new database, a new driver and a new worker
 * build start one by themselves. */
#ifndef DAEMON_SURVEY_H
#define DAEMON_SURVEY_H

#include "api/api.h"
#include "db/store.h"

/* Stores a survey for the devices that are online unless one with FINGERPRINT was stored
 * before, and hands each of its jobs to ACCEPTED(arg, job) (borrowed for the call) once
 * all are durable; NULL when there was one.  Loop thread; logs what goes wrong. */
void survey_start(struct store *store, const struct catalogue *catalogue,
                  const struct device_stack *devices, int device_count,
                  const char *fingerprint,
                  void (*accepted)(void *arg, const struct job *job), void *arg);

#endif
