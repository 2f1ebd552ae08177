/* Commits that were lost, kept in the database that lost them: the witness that told of
 * them may go, and the loss stays known until a person acknowledges it. */
#ifndef DB_INTEGRITY_LOSSES_H
#define DB_INTEGRITY_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "db/integrity/witness.h"

struct tx;

struct loss {
    bool open;         /* nobody acknowledged it; else the rest is 0 */
    int64_t witnessed; /* number of the last commit that was durable */
    int64_t found_ms;
};

/* The latest loss that nobody acknowledged.  A database of an older schema has none. */
enum err_code losses_read(struct tx *tx, struct loss *ret_loss, struct err *err);

/* Copies the log that lost them to PATH-wal.damaged, or -wal.damaged-2, -3 …: what is
 * written next takes the place of what stands behind the damage, and whoever knows how
 * may find there what was acknowledged.  The latest LOSSES_LOGS_KEPT stay, one whose
 * bytes are kept already is not copied again; the log says which came and went. */
enum { LOSSES_LOGS_KEPT = 8 };
enum err_code losses_set_log_aside(const char *path, struct err *err);

/* Whether the database of TX keeps a loss of WITNESSED already, or of more, that nobody
 * acknowledged: its log was set aside. */
enum err_code losses_are_kept(struct tx *tx, const struct commits *witnessed,
                              bool *ret_kept, struct err *err);

/* Keeps that WITNESSED was durable and FOUND is the last commit; counts no commit. */
enum err_code losses_keep(struct tx *tx, const struct commits *found,
                          const struct commits *witnessed, int64_t now_ms,
                          struct err *err);

/* A person acknowledges all of them. */
enum err_code losses_accept(struct tx *tx, int64_t now_ms, struct err *err);

#endif
