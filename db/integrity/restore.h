/* A backup that takes the place of a database, so that a kill at any moment leaves the
 * one or the other.
 *
 * The copy is made first, as PATH.restored.  Then PATH.restoring says under which name
 * what is there is kept, and from then on there is no way back: whoever takes the lock of
 * the database next finishes it.  The old file gets its second name before the copy takes
 * its first, so there is always a database at PATH, where the file system has such names.
 */
#ifndef DB_INTEGRITY_RESTORE_H
#define DB_INTEGRITY_RESTORE_H

#include <stdbool.h>

#include "daemon/base/err.h"

/* Finishes what a restore of PATH, which is locked, began, or takes away what one left
 * that did not come so far, and logs it.  RET_REPLACED: PATH is another file now, which
 * is not locked.  ERR_IO; ERR_CORRUPT: what it left cannot be read. */
enum err_code restore_resume(const char *path, bool *ret_replaced, struct err *err);

#endif
