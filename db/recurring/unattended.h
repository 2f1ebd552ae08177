/* What background evidence (daemon/jobs/background.h) needs to know of a device. */
#ifndef DB_RECURRING_UNATTENDED_H
#define DB_RECURRING_UNATTENDED_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/background.h"

struct tx;

/* The cells of the environment in which DEVICE last ran something with STACK, of the
 * newest version of each workload: controls, those with one digest, those of which it
 * cannot be told yet whether devices disagree, and those in which other devices dissent,
 * with the runs of the devices that agree.  What DEVICE is named for gains nothing by its
 * runs.  None if it never ran.  CELL is borrowed by VISIT for the call. */
enum err_code unattended_cells(struct tx *tx, const char *device, const char *stack,
                               void (*visit)(void *arg,
                                             const struct background_cell *cell),
                               void *arg, struct err *err);

/* Device time of the runs of job ID on DEVICE so far, in ms; 0 if there is no such job.
 */
enum err_code unattended_spent(struct tx *tx, const char *id, const char *device,
                               int64_t *ret_ms, struct err *err);

#endif
