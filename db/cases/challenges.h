/* Challenges (daemon/jobs/challenge.h) in the database: making one of a run, and which
 * cell learns of it.  Private to db/.
 *
 * What they add up to is counted again when the inputs of the case or the digests of the
 * cell change (db/cases/challenge_counts.h). */
#ifndef DB_CHALLENGES_H
#define DB_CHALLENGES_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/run.h"

struct tx;

/* Says in intent->challenge with which seed the run is asked if it is a challenge; 0: it
 * is none.  RET_CASE_KEY: the case (a number) that it computes then, stored if it is new.
 */
enum err_code challenges_begin(struct tx *tx, int64_t job, struct run_intent *intent,
                               int64_t *ret_case_key, struct err *err);

/* The cell that learns of the challenge RUN, which counts in run->cell, a cell of its own
 * case: the cell of the case of its item in the same environment.  It is made if there is
 * none and the run is an answer; 0: there is none. */
enum err_code challenges_place(struct tx *tx, int64_t job, const struct run_record *run,
                               int64_t *ret_cell, struct err *err);

/* Counts them again for all cells of the case SIBLINGS and its siblings: its inputs are
 * others.  Judges nothing. */
enum err_code challenges_recount(struct tx *tx, int64_t siblings, struct err *err);

#endif
