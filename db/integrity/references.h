/* Rows that refer to a row that is missing: another program deleted it, and did not ask
 * SQLite to keep references whole. */
#ifndef DB_INTEGRITY_REFERENCES_H
#define DB_INTEGRITY_REFERENCES_H

#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

/* REPORT is told of each row that is missing and that rows of table CHILD refer to: in
 * words that stay the same while it is missing, and how many rows refer to it. */
enum err_code references_check(struct tx *tx, const char *child,
                               void (*report)(void *arg, const char *line, int64_t rows),
                               void *arg, struct err *err);

#endif
