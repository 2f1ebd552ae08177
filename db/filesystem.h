/* Which file systems may hold the database.  SQLite's write-ahead log needs shared memory
 * and locks that work between processes; over a network they do not, and the database is
 * destroyed in silence (sqlite.org/wal.html, sqlite.org/howtocorrupt.html). */
#ifndef DB_FILESYSTEM_H
#define DB_FILESYSTEM_H

#include "daemon/base/err.h"

/* The name of the file system if it is refused, NULL if it is fine.  F_TYPE as in struct
 * statfs.  MOUNT_TYPE as in /proc/self/mountinfo ("fuse.sshfs"), "" if unknown: it
 * decides for FUSE, where only types known to be local are fine. */
const char *filesystem_refused(long f_type, const char *mount_type);

/* Whether the directory of PATH may hold a database: ERR_UNSUPPORTED, or ERR_IO if there
 * is no such directory. */
enum err_code filesystem_check(const char *path, struct err *err);

#endif
