/* Opening a database file: what is ours, what is refused, and how connections are set up.
 */
#ifndef DB_CONNECTION_H
#define DB_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "db/integrity/witness.h"

struct tx;

/* Which file systems may hold the database.  SQLite's write-ahead log needs shared memory
 * and locks that work between processes; over a network they do not, and the database is
 * destroyed in silence (sqlite.org/wal.html, sqlite.org/howtocorrupt.html).
 *
 * The name of the file system if it is refused, NULL if it is fine.  F_TYPE as in struct
 * statfs.  MOUNT_TYPE as in /proc/self/mountinfo ("fuse.sshfs"), "" if unknown: it
 * decides for FUSE, where only types known to be local are fine. */
const char *filesystem_refused(long f_type, const char *mount_type);

/* Whether the directory of PATH may hold a database: ERR_UNSUPPORTED, or ERR_IO if there
 * is no such directory. */
enum err_code filesystem_check(const char *path, struct err *err);

/* Looks at the file's header without SQLite, so that nothing is touched.  Not for a file
 * that this process has open: when any descriptor of it is closed, SQLite's locks are
 * gone (sqlite.org/howtocorrupt.html, 2.2).  Fine if there is no file, or an empty one;
 * ERR_CORRUPT if it is not a database, or another program's; ERR_NEWER if its schema is
 * newer than this program; ERR_CONFLICT if a restore was not finished; ERR_IO if it
 * cannot be read. */
enum err_code connection_check_file(const char *path, struct err *err);

/* The writing connection of PATH, created and migrated as needed: WAL, synchronous=FULL,
 * foreign keys.  After an unclean end (a write-ahead log was left behind) a database of
 * up to CONNECTION_CHECK_BYTES is read through for damage first; a larger one would take
 * too long, and `reprod fsck` is there.  Freed with tx_free. */
enum { CONNECTION_CHECK_BYTES = 64 << 20 };
enum err_code connection_open_writer(const char *path, int64_t busy_timeout_ms,
                                     struct tx **ret_tx, struct err *err);

/* A connection that can only read; its statements are interrupted at tx->deadline_ns.
 * Checks the file first, so this process must not have it open.  ERR_NOT_FOUND if there
 * is no file, ERR_CORRUPT if it is empty.  Freed with tx_free. */
enum err_code connection_open_reader(const char *path, int64_t busy_timeout_ms,
                                     struct tx **ret_tx, struct err *err);

/* A connection to a file that nobody changes, such as a backup: nothing is locked, and
 * nothing appears beside it.  ERR_CONFLICT: it has a log, so somebody may. */
enum err_code connection_open_frozen(const char *path, struct tx **ret_tx,
                                     struct err *err);

/* Asks the witness of PATH before anything is changed there, and the database itself,
 * which keeps a loss that was found; what cannot be read agrees, and is refused later.
 * RET_WITNESSED is the witness's word, whatever the answer; all 0: it has none. */
enum witness_word connection_ask_witness(const char *path, int64_t busy_timeout_ms,
                                         struct commits *ret_found,
                                         struct commits *ret_witnessed);

/* Keeps in the database PATH, which nobody serves, that WITNESSED was durable and FOUND
 * is its last commit, and the log that lost the others beside it (db/integrity/losses.h).
 */
enum err_code connection_keep_loss(const char *path, int64_t busy_timeout_ms,
                                   const struct commits *found,
                                   const struct commits *witnessed, int64_t now_ms,
                                   struct err *err);

/* A reader of a file that is known to be fine, beside a connection of this process. */
enum err_code connection_open_beside(const char *path, int64_t busy_timeout_ms,
                                     struct tx **ret_tx, struct err *err);

/* A connection that writes what fsck verified, or a loss, and nothing else, also beside a
 * service: what it writes need not be durable.  ERR_IO: the file cannot be written. */
enum err_code connection_open_to_mark(const char *path, int64_t busy_timeout_ms,
                                      struct tx **ret_tx, struct err *err);

#endif
