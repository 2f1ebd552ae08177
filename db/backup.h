/* Copies of a database that is in use, and a copy put in its place. */
#ifndef DB_BACKUP_H
#define DB_BACKUP_H

#include <stdint.h>

#include "daemon/base/err.h"

/* Copies the database FROM, as it is at this instant, to the new file TO; a daemon that
 * serves FROM is not held up.  TO appears complete, whole and on disk, or not at all.
 * ERR_CONFLICT if TO exists; ERR_NOT_FOUND, ERR_CORRUPT or ERR_NEWER for FROM as
 * store_open would; ERR_CORRUPT too where the copy is damaged, as FROM is then; ERR_IO.
 */
enum err_code backup_database(const char *from, const char *to, struct err *err);

/* Puts a copy of BACKUP in the place of the database PATH, which nobody serves
 * (ERR_BUSY). What was there is kept beside it: ret_kept is its new path; caller frees.
 * After an error PATH is as it was.  Errors as backup_database has for BACKUP. */
enum err_code backup_restore(const char *backup, const char *path, int64_t now_ms,
                             char **ret_kept, struct err *err);

#endif
