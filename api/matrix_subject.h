/* Whose matrix is shown where nobody chose an environment.  Not that of whatever ran
 * last: while a survey goes from stack to stack, the page would change under its reader.
 */
#ifndef API_MATRIX_SUBJECT_H
#define API_MATRIX_SUBJECT_H

#include "api/api.h"
#include "db/fleet.h"

/* What stands for a device, or for the whole fleet, where no environment is named: a
 * device with its first stack.  "": nothing does. */
struct matrix_subject {
    char device[CASE_TITLE_SIZE], stack[CASE_NAME_SIZE];
};

/* DEVICE, or for "" the first GPU, or else the first device, with its first stack. */
void matrix_subject_find(const struct device_stack *devices, int count,
                         const char *device, struct matrix_subject *ret_subject);

/* On a reader: the id of the environment that SUBJECT last reported, or "" for that of
 * whatever ran last. */
enum err_code matrix_subject_environment(struct tx *tx,
                                         const struct matrix_subject *subject,
                                         char ret_id[DIGEST_TEXT_SIZE], struct err *err);

#endif
