/* What a person acknowledges of a damaged database. */
#ifndef DB_INTEGRITY_ACCEPT_H
#define DB_INTEGRITY_ACCEPT_H

#include <stdint.h>

#include "daemon/base/err.h"

/* In the database PATH, which nobody serves (ERR_BUSY): commits that were lost are no
 * longer missed; what is in quarantine is known, and stays there; rows that state facts,
 * but runs and cells, are taken as they are, and so are tables that have other rows than
 * were stored.  What fsck then still finds to contradict that (may_acknowledge of
 * db/fsck.h) is known, too: each fault as it is worded, so that another one is told.
 * A cell that
 * differs is built anew from its runs, or goes into quarantine.  REPORT is told each, and
 * each stays in table accepted_loss.  Errors as store_open has; ERR_CONFLICT if only the
 * service can say what contradicts what (fsck_file), and then all but that is
 * acknowledged. */
enum err_code accept_loss(const char *path, int64_t now_ms,
                          void (*report)(void *arg, const char *line), void *arg,
                          int64_t *ret_count, struct err *err);

#endif
