/* Matrices read from the store: every reader of one shows the same. */
#ifndef DB_MATRIX_H
#define DB_MATRIX_H

#include "daemon/evidence/matrix.h"
#include "daemon/jobs/device.h"
#include "db/store.h"

/* Whose matrix is shown where nobody chose an environment: a device with its first stack,
 * "" for whatever ran last.  Not always the latter: while a survey goes from stack to
 * stack, the page would change under its reader. */
struct matrix_default {
    char device[CASE_TITLE_SIZE], stack[CASE_NAME_SIZE];
};

/* DEVICE, or for "" the first GPU, or else the first device, with its first stack. */
void matrix_default_find(const struct device_stack *devices, int count,
                         const char *device, struct matrix_default *ret_default);

/* On a reader: the id of the environment that STANDARD last reported, or "" for that of
 * whatever ran last. */
enum err_code matrix_default_environment(struct tx *tx,
                                         const struct matrix_default *standard,
                                         char ret_id[DIGEST_TEXT_SIZE], struct err *err);

/* On a reader: fills MATRIX (of matrix_init) with the cells of ENVIRONMENT, "" for that
 * of whatever ran last, and settles it.  ERR_NOT_FOUND where there is none: then MATRIX
 * is settled without cells. */
enum err_code matrix_read(struct tx *tx, const char *environment, struct matrix *matrix,
                          struct err *err);

#endif
