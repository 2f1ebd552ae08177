/* The state of a device: what may change its bits, is no part of its environment, and
 * changes only when somebody changes it (VBIOS, ECC mode, clock policy).  Its runs are
 * compared with those of devices in the same state.  A value that is not told for once
 * is as it was; when another one is told next, it is not known what it was since. Private
 * to db/. */
#ifndef DB_DISSENT_DEVICE_STATES_H
#define DB_DISSENT_DEVICE_STATES_H

#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

enum { DEVICE_STATE_SIZE = 1024 };

/* SQL: the state in which DEVICE computed the run with id RUN, "" if it is not known. */
#define DEVICE_STATE_OF(device_, run_)                                                   \
    "ifnull((SELECT z.state FROM device_state z WHERE z.device = " device_               \
    " AND z.since < " run_ " ORDER BY z.since DESC LIMIT 1), '')"
#define DEVICE_STATE_NOW(device_) DEVICE_STATE_OF(device_, "'~'")

/* DEVICE says at SEEN_MS what its ATTRIBUTES are, before they are stored: runs from now
 * on are of that state.  Cells follow where the state of earlier runs is not known any
 * more. */
enum err_code device_states_seen(struct tx *tx, const char *device,
                                 const char *attributes, int64_t seen_ms,
                                 struct err *err);

enum err_code device_state_load(struct tx *tx, const char *device, const char *run,
                                char ret_state[DEVICE_STATE_SIZE], struct err *err);

#endif
