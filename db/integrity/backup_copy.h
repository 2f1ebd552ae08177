/* How a database is copied.  Private to db/. */
#ifndef DB_INTEGRITY_BACKUP_COPY_H
#define DB_INTEGRITY_BACKUP_COPY_H

#include "daemon/base/err.h"

struct tx;

/* All pages of FROM into the empty file TO. */
enum err_code backup_copy_pages(struct tx *from, const char *to, struct err *err);

/* Gives the file PARTIAL the name TO, durably.  ERR_CONFLICT: there is one. */
enum err_code backup_publish(const char *partial, const char *to, struct err *err);

#endif
