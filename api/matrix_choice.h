/* Which matrix is wanted: the query's table, environment, device and time. */
#ifndef API_MATRIX_CHOICE_H
#define API_MATRIX_CHOICE_H

#include <stdint.h>

#include "api/http/request.h"
#include "daemon/evidence/profile.h"
#include "db/matrix.h"

struct matrix_choice {
    char environment[DIGEST_TEXT_SIZE]; /* "": the device's, else the subject's */
    char device[CASE_TITLE_SIZE];       /* "": any */
    struct matrix_subject subject;
    int64_t as_of_ms; /* 0: now */
};

/* The table the query names, or the first; adds to r->problems if there is none. */
const struct profile_table *matrix_choice_table(struct request *r,
                                                const struct profile_set *profiles);

/* The other parameters; what is wrong is added to r->problems. */
void matrix_choice_read(struct request *r, int64_t now_ms,
                        struct matrix_choice *ret_choice);

/* On a reader: the environment of CHOICE.  A device stands for the environment of its
 * first stack, or, before that ran there, for the one last used on its kind (backend and
 * model).  "": that of whatever ran last.  ERR_NOT_FOUND if nothing was run on the
 * device; a device that does not exist is added to PROBLEMS. */
enum err_code matrix_choice_environment(struct tx *tx, const struct matrix_choice *choice,
                                        struct problems *problems,
                                        char ret_id[DIGEST_TEXT_SIZE], struct err *err);

#endif
