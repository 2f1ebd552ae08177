/* What `reprod serve` shows of surveys and screenings (daemon/screening.h) on the
 * terminal: progress and ETA while one runs, the matrix when it is over, the address of
 * the page. */
#ifndef DAEMON_SURVEY_H
#define DAEMON_SURVEY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/evidence/profile.h"
#include "daemon/fleet/fleet_facts.h"
#include "daemon/jobs/scheduler.h"
#include "db/matrix.h"
#include "db/store.h"

struct survey_watch;

/* Everything is borrowed for its life. */
struct survey_watch *survey_watch_new(struct store *store,
                                      const struct scheduler *scheduler,
                                      const struct profile_set *profiles,
                                      int64_t stale_after_ms);
void survey_watch_free(struct survey_watch *watch); /* NULL is fine */

/* Before anything is shown: whose workloads the matrix is about, and where the page is
 * served.  Borrowed. */
void survey_watch_open(struct survey_watch *watch, const struct fleet *fleet,
                       const char *address, int port);

/* The configuration was read again.  What was borrowed before is in use until
 * survey_watch_idle. */
void survey_watch_configure(struct survey_watch *watch,
                            const struct profile_set *profiles, int64_t stale_after_ms);
bool survey_watch_idle(const struct survey_watch *watch);

/* Whose matrix is printed; until told, that of whatever ran last. */
void survey_watch_default(struct survey_watch *watch,
                          const struct matrix_default *standard);

/* JOB is a survey, or one of its jobs, that is open: shows it from now on. */
void survey_watch_job(struct survey_watch *watch, const char *job);

/* Something changed: draws the progress, or prints the matrix once the survey is over. */
void survey_watch_update(struct survey_watch *watch);

/* Prints the matrix as it is. */
void survey_watch_print(struct survey_watch *watch);

/* Shows nothing more. */
void survey_watch_stop(struct survey_watch *watch);

#endif
