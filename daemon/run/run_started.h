/* Stores which process a run is, so that it can be found after a crash. */
#ifndef DAEMON_RUN_RUN_STARTED_H
#define DAEMON_RUN_RUN_STARTED_H

#include <stdint.h>

#include "db/store.h"

/* RUN is the process PID that began at PROCESS_START, in ticks of the boot BOOT_ID.
 * Returns at once; a failure is logged, and the run goes on. */
void run_started_store(struct store *store, const char *run, const char *boot_id,
                       int64_t pid, int64_t process_start);

#endif
