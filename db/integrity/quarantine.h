/* What a cell cannot stand on, because the database no longer has what was stored.
 *
 * A run whose row is not what was stored is not folded into a cell, and its cell is
 * inconclusive, with the run in its reason, until a backup is restored.  So is a cell
 * whose runs no longer give what it counted, though its own row is intact: runs were
 * taken away or changed.  A person may acknowledge it: then the service is ready again,
 * and the cell stays inconclusive. */
#ifndef DB_INTEGRITY_QUARANTINE_H
#define DB_INTEGRITY_QUARANTINE_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/evidence/verdict.h"

struct tx;

/* What is in quarantine of CELL, in words; "": nothing. */
enum err_code quarantine_words(struct tx *tx, int64_t cell,
                               char ret_words[DAMAGED_WORDS_SIZE], struct err *err);

/* Puts run ID of CELL there, if there is such a cell.  Judging is left to the caller. */
enum err_code quarantine_run(struct tx *tx, const char *id, int64_t cell, int64_t now_ms,
                             struct err *err);

/* Puts CELL there because of REASON, which is no single run's: RUN "". */
enum err_code quarantine_put(struct tx *tx, int64_t cell, const char *run,
                             const char *reason, int64_t now_ms, struct err *err);

/* How much nobody has acknowledged yet, and the first of it in words. */
enum err_code quarantine_open(struct tx *tx, int64_t *ret_count,
                              char ret_words[DAMAGED_WORDS_SIZE], struct err *err);

/* A person acknowledges all of it. */
enum err_code quarantine_accept(struct tx *tx, int64_t now_ms, int64_t *ret_count,
                                struct err *err);

#endif
