/* Where operations of frameworks were measured. */
#ifndef DB_VIEWS_OPERATIONS_H
#define DB_VIEWS_OPERATIONS_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/evidence/subject.h"
#include "daemon/jobs/case.h"

struct tx;

struct framework_environment {
    char framework[SUBJECT_NAME_SIZE];
    char environment[DIGEST_TEXT_SIZE];
};

/* The environments in which FRAMEWORK (a subject_name, in either case; NULL: any)
 * computed, ordered by framework, then by when they were first seen: at most LIMIT, the
 * newest of all; *ret_left_out is how many more there are.  Caller frees *ret_list. */
enum err_code operations_environments(struct tx *tx, const char *framework, int limit,
                                      struct framework_environment **ret_list,
                                      int *ret_count, int *ret_left_out, struct err *err);

/* The frameworks of which an operation was measured, by name. */
enum err_code operations_frameworks(struct tx *tx,
                                    void (*visit)(void *arg, const char *framework),
                                    void *arg, struct err *err);

/* Why the newest run of CELL that could not compute did not, "" if there is none. */
enum err_code operations_cause(struct tx *tx, int64_t cell,
                               char ret_cause[CASE_TITLE_SIZE], struct err *err);

#endif
