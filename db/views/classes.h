/* What the views of digest classes are made of (daemon/evidence/classes.h). */
#ifndef DB_VIEWS_CLASSES_H
#define DB_VIEWS_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/evidence/classes.h"

struct tx;

enum { CLASSES_APART_MAX = 16 };

/* Which cells, and what time it is. */
struct classes_filter {
    const char *workload; /* NULL: all */
    enum subject subject; /* SUBJECT_COUNT: all */
    int64_t now_ms;
    int64_t stale_after_ms; /* as of verdict_at */
    bool each_host;         /* of devices: those that show what most show stay apart */
};

/* The cells of ENVIRONMENT (an id; NULL: of all) in any order, with that id.  CELL is
 * borrowed by VISIT for the call. */
enum err_code classes_each_cell(struct tx *tx, const struct classes_filter *filter,
                                const char *environment,
                                void (*visit)(void *arg, const struct class_cell *cell,
                                              const char *environment),
                                void *arg, struct err *err);

/* Cases by environments, first the one that was first used last.  Settled; the caller
 * releases it, also after an error. */
enum err_code classes_read_environments(struct tx *tx,
                                        const struct classes_filter *filter,
                                        struct classes *ret_classes, struct err *err);

/* Cases by devices in ENVIRONMENT, devices of a host beside each other and merged where
 * they agree.  Where these are more columns than CLASSES_APART_MAX, those that show what
 * most show are merged, too, unless each host is asked for.  Settled by size; released as
 * above. */
enum err_code classes_read_devices(struct tx *tx, const struct classes_filter *filter,
                                   const char *environment, struct classes *ret_classes,
                                   struct err *err);

#endif
