/* 64 bits over the values of a row, as functions of SQL (db/integrity/checksums.h). */
#ifndef DB_INTEGRITY_ROW_SUM_H
#define DB_INTEGRITY_ROW_SUM_H

#include <sqlite3.h>

/* Gives DB the functions reprod_sum(values...), of a row, and reprod_sums(values...), the
 * sum of several rows in any order, 0 for none; and reprod_xor(sum) of sums, and
 * reprod_xor(sum, sum), NULL as 0.  What SQLite returns. */
int row_sum_register(sqlite3 *db);

#endif
