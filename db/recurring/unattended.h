/* What background evidence (daemon/jobs/background.h) needs to know of a device. */
#ifndef DB_RECURRING_UNATTENDED_H
#define DB_RECURRING_UNATTENDED_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/background.h"

struct tx;

/* The cells, with one digest or controls, of the environment in which DEVICE last ran
 * something with STACK, of the newest version of each workload.  None if it never did.
 * CELL is borrowed by VISIT for the call. */
enum err_code unattended_cells(struct tx *tx, const char *device, const char *stack,
                               void (*visit)(void *arg,
                                             const struct background_cell *cell),
                               void *arg, struct err *err);

/* Device time of the runs of job ID on DEVICE so far, in ms; 0 if there is no such job.
 */
enum err_code unattended_spent(struct tx *tx, const char *id, const char *device,
                               int64_t *ret_ms, struct err *err);

#endif
