/* How a database is copied.  Private to db/. */
#ifndef DB_INTEGRITY_BACKUP_COPY_H
#define DB_INTEGRITY_BACKUP_COPY_H

#include <stdbool.h>

#include "daemon/base/err.h"

struct tx;

/* All pages of FROM into the empty file TO. */
enum err_code backup_copy_pages(struct tx *from, const char *to, struct err *err);

/* Gives the file PARTIAL the name TO, durably.  ERR_CONFLICT: there is one. */
enum err_code backup_publish(const char *partial, const char *to, struct err *err);

/* Removes a copy that did not become one, with what SQLite left beside it: whether there
 * was one. */
bool backup_remove(const char *partial);

/* What FROM reads, whole and durable, as the new file TO; as backup_database. */
enum err_code backup_copy_database(struct tx *from, const char *to, struct err *err);

/* Opens PATH, which somebody may serve, or else nobody changes. */
enum err_code backup_open(const char *path, struct tx **ret_tx, struct err *err);

/* ERR_CORRUPT names the first thing that is wrong with the database PATH. */
enum err_code backup_check_whole(const char *path, struct err *err);

/* Makes the file PATH durable, or with O_DIRECTORY in FLAGS the names in that folder. */
enum err_code backup_sync(const char *path, int flags, struct err *err);

enum { BACKUP_BUSY_TIMEOUT_MS = 5000 };

#endif
