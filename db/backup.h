/* Copies of a database that is in use, and a copy put in its place. */
#ifndef DB_BACKUP_H
#define DB_BACKUP_H

#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

/* Copies the database FROM, as it is at this instant, to the new file TO; a daemon that
 * serves FROM is not held up.  TO appears complete, whole and on disk, or not at all.
 * ERR_CONFLICT if TO exists; ERR_NOT_FOUND, ERR_CORRUPT or ERR_NEWER for FROM as
 * store_open would; ERR_CORRUPT too where the copy is damaged, as FROM is then; ERR_IO.
 */
enum err_code backup_database(const char *from, const char *to, struct err *err);

/* The backups that a service makes of its database PATH lie beside it, as
 * PATH.backup-TIME; at most BACKUPS_KEPT.
 *
 * First a copy of what FROM reads, as PATH.backup.partial, is made, unless there are no
 * runs yet: then RET_PARTIAL is NULL.  ERR_IO where the file
 * system has not twice the room of the database, and nothing is left then.  Whoever finds
 * the copy whole gives it its name, and else drops it. */
enum { BACKUPS_KEPT = 2 };
enum err_code backup_begin(struct tx *from, const char *path, char **ret_partial,
                           struct err *err);
enum err_code backup_keep(const char *path, const char *partial, int64_t now_ms,
                          struct err *err);
void backup_drop(const char *partial);

/* The newest of them: caller frees; NULL: there is none. */
char *backup_newest(const char *path);

/* When that was made; 0: there is none. */
int64_t backup_newest_ms(const char *path);

/* Puts a copy of BACKUP in the place of the database PATH, which nobody serves
 * (ERR_BUSY). What was there is kept beside it: ret_kept is its new path; caller frees.
 * After an error PATH is as it was.  Whoever is killed meanwhile leaves it as it was, or
 * what db/integrity/restore.h finishes.  Errors as backup_database has for BACKUP. */
enum err_code backup_restore(const char *backup, const char *path, int64_t now_ms,
                             char **ret_kept, struct err *err);

#endif
