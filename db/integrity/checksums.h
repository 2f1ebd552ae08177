/* A checksum in each row that states a fact, kept in the transaction that changes the
 * row.
 *
 * SQLite's integrity_check sees damage to the structure of a file, not a flipped bit
 * inside a value; nor does anything else tell a row that somebody edited.  Column `sum`
 * is 64 bits over the other columns: equal values give the same sum, and a change within
 * one value of up to eight bytes, or within eight bytes of a longer one, always gives
 * another.  It is no secret: it shows damage and careless edits, not forgery.
 *
 * Three kinds of tables.  `run` and `cell`, which each run changes, are written with
 * their sum in the same statement (RUN_SUM of db/runs.h, CELL_SUM of db/cells_rows.h).
 * Rows that are only added to say it in their INSERT.  The others have triggers of the
 * writing connection, which see that a row is damaged already and leave it so.  Without a
 * sum, because fsck compares all of them with the runs: cell_digest, cell_device,
 * cell_alike, cell_time, case_input, device_stack_environment, device_environment, when
 * an environment was seen, how far items and jobs are; because nobody relies on them:
 * event, judged, cell_changes, cell_verified.
 *
 * A migration that changes columns with a sum, or adds one to a list here, carries the
 * sums of the rows that are intact.  Rows that are missing: db/integrity/totals.h. */
#ifndef DB_INTEGRITY_CHECKSUMS_H
#define DB_INTEGRITY_CHECKSUMS_H

#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

/* Private to db/.  What column `sum` of schedule is; COLUMN stands before each column. */
#define SCHEDULE_SUM(column)                                                             \
    "reprod_sum(" column "number, " column "id, " column "name, " column                 \
    "every_seconds, " column "calendar, " column "spread_seconds, " column               \
    "paused, " column "created_ms, " column "next_ms, " column "skipped, " column        \
    "problem, " column "problem_ms, " column "request, " column                          \
    "idempotency_key, " column "posted)"

/* The triggers, on the connection that writes, after its migrations. */
enum err_code checksums_watch(struct tx *tx, struct err *err);

/* Looks through the rows of all tables.  DAMAGED is told of each that is not what was
 * stored: its table, its key as text, and the cell that it counts in or is (0: none).
 * In slices, each a read of its own, unless TX is in a transaction. */
enum err_code checksums_check(struct tx *tx,
                              void (*damaged)(void *arg, const char *table,
                                              const char *key, int64_t cell),
                              void *arg, int64_t *ret_rows, struct err *err);

/* Seals what is damaged as it is, but cells and the runs that count in one, after a
 * person acknowledged it; tells of each as above. */
enum err_code checksums_accept(struct tx *tx,
                               void (*accepted)(void *arg, const char *table,
                                                const char *key, int64_t cell),
                               void *arg, struct err *err);

/* Whether the tables, indexes and views are those that the migrations make: DIFFERS is
 * told of each that is not. */
enum err_code checksums_check_schema(struct tx *tx,
                                     void (*differs)(void *arg, const char *line),
                                     void *arg, struct err *err);

#endif
