/* Which matrix is wanted: the query's table, environment, device and time. */
#ifndef API_MATRIX_CHOICE_H
#define API_MATRIX_CHOICE_H

#include <stdint.h>

#include "api/api.h"
#include "api/request.h"
#include "db/fleet.h"
#include "workloads/evidence/profile.h"

/* What stands for a device, or for the whole fleet, where no environment is named: a
 * device with its first stack.  "": nothing does. */
struct matrix_subject {
    char device[CASE_TITLE_SIZE], stack[CASE_NAME_SIZE];
};

struct matrix_choice {
    char environment[DIGEST_TEXT_SIZE]; /* "": the device's, else the subject's */
    char device[CASE_TITLE_SIZE];       /* "": any */
    struct matrix_subject subject;
    int64_t as_of_ms; /* 0: now */
};

/* DEVICE, or for "" the first GPU, or else the first device, with its first stack. */
void matrix_subject_find(const struct api_device *devices, int count, const char *device,
                         struct matrix_subject *ret_subject);

/* On a reader: the id of the environment that SUBJECT last reported, or "" for that of
 * whatever ran last. */
enum err_code matrix_subject_environment(struct tx *tx,
                                         const struct matrix_subject *subject,
                                         char ret_id[DIGEST_TEXT_SIZE], struct err *err);

/* The table the query names, or the first; adds to r->problems if there is none. */
const struct profile_table *matrix_choice_table(struct request *r,
                                                const struct profile_set *profiles);

/* The other parameters; what is wrong is added to r->problems. */
void matrix_choice_read(struct request *r, int64_t now_ms,
                        struct matrix_choice *ret_choice);

/* On a reader: the environment of CHOICE.  A device stands for the environment of its
 * first stack, or, before that ran there, for the one last used on its kind (backend and
 * model).  ERR_NOT_FOUND if there is none yet; an id or device
 * that does not exist is added to PROBLEMS.  ret_json: caller frees. */
enum err_code matrix_choice_environment(struct tx *tx, const struct matrix_choice *choice,
                                        struct problems *problems,
                                        struct environment *ret_environment,
                                        char **ret_json, struct err *err);

#endif
