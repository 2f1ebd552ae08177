/* How far a job is: what a finished run adds to its item and job.  Private to db/.
 *
 * An item is open until it has as many answers as were wanted or is given up.  A job ends
 * with its last open item; one that localises, when it is concluded too
 * (db/localisations.h).  runs_total counts, for each item, the runs wanted, or the
 * answers of an item that was given up; so runs_done = runs_total when a job is finished.
 */
#ifndef DB_JOBS_PROGRESS_H
#define DB_JOBS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/evidence/verdict.h"
#include "daemon/jobs/outcome.h"

struct tx;

/* A run that ended, as its job sees it. */
struct jobs_answer {
    int64_t job; /* number */
    int item;
    enum outcome outcome;
    const char *cause;
    enum verdict verdict; /* of the run's cell, now; unmeasured if it has none */
    int64_t wall_ns;
    int64_t now_ms;
};

/* A job with answers of which no event tells yet. */
struct progressed {
    int64_t job, now_ms; /* of the answer that ended it, or of the last */
    bool ended;
};

/* Counts ANSWER, and closes item and job where that is due.  The event of the job is
 * added by jobs_tell_progress, once for all answers of a commit; without a commit
 * (db/dissent/unsettled.h), at once. */
enum err_code jobs_count_answer(struct tx *tx, const struct jobs_answer *answer,
                                bool *ret_item_given_up, bool *ret_job_finished,
                                struct err *err);

/* Adds the events of jobs that got answers: before a commit. */
enum err_code jobs_tell_progress(struct tx *tx, struct err *err);

/* Item SEQ of job NUMBER gets no more runs, if it is open yet. */
enum err_code jobs_give_up(struct tx *tx, int64_t number, int seq, const char *reason,
                           int64_t now_ms, struct err *err);

/* Ends job NUMBER if it is open and none of its items is. */
enum err_code jobs_finish_if_done(struct tx *tx, int64_t number, int64_t now_ms,
                                  struct err *err);

/* Adds the event of job NUMBER as it is now. */
enum err_code jobs_add_event(struct tx *tx, int64_t number, int64_t now_ms,
                             struct err *err);

/* Counts the failures of an item, and of its job, from the stored runs: after outcomes
 * changed. */
enum err_code jobs_recount_failed(struct tx *tx, int64_t number, int seq,
                                  struct err *err);

#endif
