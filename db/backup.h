/* Copies of a database that is in use. */
#ifndef DB_BACKUP_H
#define DB_BACKUP_H

#include "daemon/base/err.h"

/* Copies the database FROM, as it is at this instant, to the new file TO; a daemon that
 * serves FROM is not held up.  TO appears complete and on disk, or not at all.
 * ERR_CONFLICT if TO exists; ERR_NOT_FOUND, ERR_CORRUPT or ERR_NEWER for FROM as
 * store_open would; ERR_IO. */
enum err_code backup_database(const char *from, const char *to, struct err *err);

#endif
