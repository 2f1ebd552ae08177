/* The names by which runs can be filtered, as far as the database has them: also those
 * that no worker knows any more. */
#ifndef DB_NAMES_H
#define DB_NAMES_H

#include <stdbool.h>

#include "daemon/base/choices.h"
#include "daemon/base/err.h"

struct tx;

/* NAME_VARIANT: of the workload OF, or, for "", of any.  OF is "" for the others. */
enum name_kind { NAME_WORKLOAD, NAME_VARIANT, NAME_DEVICE, NAME_JOB };

/* Whether there is one called NAME: in a case that was asked for, or a device that was
 * seen. */
enum err_code names_has(struct tx *tx, enum name_kind kind, const char *of,
                        const char *name, bool *ret_has, struct err *err);

/* Adds each to RET_CHOICES.  Not for NAME_JOB: jobs are too many. */
enum err_code names_list(struct tx *tx, enum name_kind kind, const char *of,
                         struct choices *ret_choices, struct err *err);

#endif
