/* What a list of runs is filtered by, where the list is empty: a name that nothing known
 * has is refused, with the nearest that something has. */
#ifndef API_RUNS_NAMES_H
#define API_RUNS_NAMES_H

#include "api/http/request.h"
#include "daemon/base/choices.h"
#include "db/runs.h"

enum { RUNS_NAMES = 3 }; /* workload, variant, device */

/* Zero-initialised is empty. */
struct runs_names {
    bool unknown[RUNS_NAMES];         /* FILTER has one that the database has not */
    struct choices known[RUNS_NAMES]; /* then: those that it has */
};
void runs_names_release(struct runs_names *names);

/* On a reader: what the database knows of FILTER's names.  A job or a cell that is not
 * there is added to PROBLEMS. */
enum err_code runs_names_read(struct tx *tx, const struct runs_filter *filter,
                              struct problems *problems, struct runs_names *ret_names,
                              struct err *err);

/* On the loop: adds to r->problems what neither the database nor any agent has; nothing
 * before the first agent said what there is. */
void runs_names_check(struct request *r, const struct runs_filter *filter,
                      struct runs_names *names);

#endif
