/* Bringing a database to the current schema: the numbered files of db/migrations, each in
 * one transaction.  PRAGMA user_version is the number of the last one that was applied,
 * PRAGMA application_id tells that the file is reprod's. */
#ifndef DB_MIGRATE_H
#define DB_MIGRATE_H

#include <sqlite3.h>

#include "daemon/base/err.h"

enum { MIGRATE_APPLICATION_ID = 0x52505244 }; /* "RPRD" */

struct migration {
    const char *name; /* "db/migrations/0001-initial.sql" */
    const char *sql;  /* statements; no BEGIN or COMMIT of its own */
};

/* The schema of this program: how many migrations are built in. */
int migrate_current(void);

/* Applies those of LIST (numbered 1 … COUNT) that DB lacks.  ret_from: where it stood.
 * ERR_NEWER if it stands beyond COUNT.  A failing migration leaves DB as the one before
 * it left it.  What is not new is announced in the log.  Foreign keys must be off on DB;
 * they are checked after the last migration. */
enum err_code migrate_apply(sqlite3 *db, const struct migration *list, int count,
                            int *ret_from, struct err *err);

/* The same with the built-in ones; a new database is made of db/schema.sql, which is what
 * they arrive at, in one transaction. */
enum err_code migrate_latest(sqlite3 *db, struct err *err);

#endif
