/* Rows that were taken away, or added, by another program: a row that is not there has no
 * sum (db/integrity/checksums.h) that could be wrong.
 *
 * So table_total has for each table that states facts how many rows there are and the
 * exclusive or of their sums (of cells, which change with each run, of their numbers),
 * kept by triggers of the writing connection in the transaction that
 * changes a row.  Not for runs, their digests and checks: what is missing there shows in
 * what it counts for, in cells and items; nor for what fsck compares with the runs. */
#ifndef DB_INTEGRITY_TOTALS_H
#define DB_INTEGRITY_TOTALS_H

#include <stdint.h>

#include <sqlite3.h>

#include "daemon/base/err.h"

struct tx;

/* The triggers, on the connection that writes, after its migrations. */
enum err_code totals_watch(struct tx *tx, struct err *err);

/* Those of one table, if the database, which may be of another version, has its total. */
enum err_code totals_watch_one(struct tx *tx, const char *table, struct err *err);

/* REPORT is told, in words, of each table that has other rows than were stored; RET_COUNT
 * of how many rows, at least.  Each table is a read of its own, unless TX is in a
 * transaction. */
enum err_code totals_check(struct tx *tx, void (*report)(void *arg, const char *line),
                           void *arg, int64_t *ret_count, struct err *err);

/* Takes the rows as they are, after a person acknowledged it. */
enum err_code totals_accept(struct tx *tx, struct err *err);

/* Around a migration, which may change rows and has no triggers: what holds before it is
 * made to hold after it.  RET_RENEW is SQL; caller frees it with free(). */
enum err_code totals_hold(sqlite3 *db, char **ret_renew, struct err *err);

#endif
