/* The circumstances a run computed under, as its start event says them, against those
 * that were asked for (workloads/PROTOCOL.md).  Pure. */
#ifndef DAEMON_RUN_RUN_CIRCUMSTANCES_H
#define DAEMON_RUN_RUN_CIRCUMSTANCES_H

#include <jansson.h>

#include "daemon/base/err.h"
#include "daemon/jobs/run.h"

/* SAID is the member of the start event; NULL or JSON null: none.  ASKED is what was
 * asked for.  Writes the canonical object, "" for none, as it is
 * stored.  ERR_PROTOCOL says what is malformed, or is not as asked. */
enum err_code run_circumstances_take(const json_t *said,
                                     const struct run_circumstances *asked,
                                     char ret_text[RUN_CIRCUMSTANCES_SIZE],
                                     struct err *err);

#endif
