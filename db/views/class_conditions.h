/* The conditions (daemon/jobs/options.h) under which the cells of a row of digest classes
 * are compared.  Private to db/views/. */
#ifndef DB_VIEWS_CLASS_CONDITIONS_H
#define DB_VIEWS_CLASS_CONDITIONS_H

#include "daemon/base/err.h"
#include "daemon/evidence/classes.h"

struct tx;

/* What cells showed that were not only measured under plain conditions. */
struct class_conditions {
    struct class_shown *shown;
    int count;
};
enum err_code class_conditions_read(struct tx *tx,
                                    struct class_conditions *ret_conditions,
                                    struct err *err);
void class_conditions_release(struct class_conditions *conditions);

/* A cell of an environment. */
struct gathered {
    struct class_cell cell;
    char environment[DIGEST_TEXT_SIZE];
};

/* CELLS are those of one row.  They are compared under the conditions under which most of
 * them were measured, of equally many the plain ones: each has its digest under these,
 * and who has none is `apart`. */
void class_conditions_apply(const struct class_conditions *conditions,
                            struct gathered *cells, int count);

#endif
