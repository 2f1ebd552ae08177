/* Opening a database file: what is ours, what is refused, and how connections are set up.
 */
#ifndef DB_CONNECTION_H
#define DB_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

/* Looks at the file's header without SQLite, so that nothing is touched: fine if there is
 * no file, or an empty one; ERR_CORRUPT if it is not a database, or another program's;
 * ERR_NEWER if its schema is newer than this program; ERR_IO if it cannot be read. */
enum err_code connection_check_file(const char *path, struct err *err);

/* The writing connection of PATH, created and migrated as needed: WAL, synchronous=FULL,
 * foreign keys.  After an unclean end (a write-ahead log was left behind) a database of
 * up to CONNECTION_CHECK_BYTES is read through for damage first; a larger one would take
 * too long, and `reprod fsck` is there.  Freed with tx_free. */
enum { CONNECTION_CHECK_BYTES = 64 << 20 };
enum err_code connection_open_writer(const char *path, int64_t busy_timeout_ms,
                                     struct tx **ret_tx, struct err *err);

/* A connection that can only read; its statements are interrupted at tx->deadline_ns.
 * ERR_NOT_FOUND if there is no file.  Freed with tx_free. */
enum err_code connection_open_reader(const char *path, int64_t busy_timeout_ms,
                                     struct tx **ret_tx, struct err *err);

#endif
