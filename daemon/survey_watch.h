/* What `reprod serve` tells on the terminal: progress and ETA while a survey runs, the
 * matrix when it is filled, the address of the page. */
#ifndef DAEMON_SURVEY_WATCH_H
#define DAEMON_SURVEY_WATCH_H

#include <stdint.h>

#include "api/matrix_subject.h"
#include "daemon/evidence/profile.h"
#include "daemon/jobs/scheduler.h"
#include "db/store.h"

struct survey_watch;

/* Everything is borrowed for its life. */
struct survey_watch *survey_watch_new(struct store *store,
                                      const struct scheduler *scheduler,
                                      const struct profile_set *profiles,
                                      int64_t stale_after_ms);
void survey_watch_free(struct survey_watch *watch); /* NULL is fine */

/* Where the page is served; borrowed. */
void survey_watch_address(struct survey_watch *watch, const char *address, int port);

/* Whose matrix is printed; until told, that of whatever ran last. */
void survey_watch_subject(struct survey_watch *watch,
                          const struct matrix_subject *subject);

/* JOB is a survey, or one of its jobs, that is open: shows it from now on. */
void survey_watch_job(struct survey_watch *watch, const char *job);

/* Something changed: draws the progress, or prints the matrix once the survey is over. */
void survey_watch_update(struct survey_watch *watch);

/* Prints the matrix as it is. */
void survey_watch_print(struct survey_watch *watch);

/* Shows nothing more. */
void survey_watch_stop(struct survey_watch *watch);

#endif
