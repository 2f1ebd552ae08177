/* Localisations in the database.  What their runs show is read by
 * daemon/localise/localise.h, which also decides; here is what is kept. */
#ifndef DB_LOCALISATIONS_H
#define DB_LOCALISATIONS_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/job.h"

struct tx;

/* Job NUMBER is a localisation.  Private to db/: jobs_insert calls it. */
enum err_code localisations_insert(struct tx *tx, int64_t number, int runs_min,
                                   struct err *err);

/* ERR_NOT_FOUND: there is no such job, or it does not localise. */
enum err_code localisations_get(struct tx *tx, const char *job,
                                struct localisation *ret_localisation, struct err *err);

/* The completed runs of the job's ITEM with ids after AFTER ("": all), oldest first, at
 * most LIMIT. */
enum err_code localisations_each_run(struct tx *tx, const char *job, int item,
                                     const char *after, int limit,
                                     void (*visit)(void *arg, const char *run), void *arg,
                                     struct err *err);

/* With how many different digests the first iterations of these runs ended. */
enum err_code localisations_count_digests(struct tx *tx, const char *job, int item,
                                          int64_t *ret_digests, struct err *err);

/* The place is known: item 0 ends, and item 1 runs with OPTIONS.  ERR_CONFLICT: the job
 * is not open any more. */
struct localisations_found {
    const char *job, *reason, *search;
    const struct run_options *options; /* of item 1 */
    int64_t now_ms;
};
enum err_code localisations_capture(struct tx *tx,
                                    const struct localisations_found *found,
                                    struct err *err);

/* The localisation has ended in STATE, and with it the job.  ERR_CONFLICT as above. */
struct localisations_end {
    const char *job, *reason;
    enum localisation_state state;
    const char *search;     /* NULL: as it is */
    const char *difference; /* NULL: none */
    const char *runs[2];    /* whose tensors are kept; "": none */
    int64_t now_ms;
};
enum err_code localisations_conclude(struct tx *tx, const struct localisations_end *end,
                                     struct err *err);

#endif
