#include "db/queue/commit.h"

#include <inttypes.h>

#include "daemon/base/log.h"
#include "db/dissent/settle.h"
#include "db/dissent/unsettled.h"
#include "db/integrity/opening.h"
#include "db/jobs_progress.h"
#include "db/tx.h"

/* Everything of FIRST … before END whose function had succeeded shares the fate of the
 * transaction that is gone. */
static void fail_all(struct work *first, const struct work *end, const struct err *why)
{
    for (struct work *w = first; w != end; w = next_work(w)) {
        if (w->result.code == ERR_OK) {
            w->result = *why;
            err_wrap(&w->result, "not stored");
        }
    }
}

/* Runs W in a savepoint.  Returns whether the transaction is still there. */
static bool run_write(struct tx *tx, struct work *w)
{
    struct unsettled_mark mark;
    struct err ignored;

    if (tx_run(tx, &w->result, "SAVEPOINT work") != ERR_OK) {
        return !sqlite3_get_autocommit(tx->db);
    }
    unsettled_mark(tx, &mark);
    w->result.code = ERR_OK;
    if (w->fn(tx, w->arg, &w->result) == ERR_OK) {
        w->result.code = ERR_OK;
    } else if (!sqlite3_get_autocommit(tx->db)) {
        tx_run(tx, &ignored, "ROLLBACK TO work");
        unsettled_back(tx, &mark);
    }
    unsettled_release(&mark);
    if (sqlite3_get_autocommit(tx->db)) {
        if (w->result.code == ERR_OK) {
            err_set(&w->result, ERR_IO, "database: the transaction was abandoned");
        }
        return false;
    }
    tx_run(tx, &ignored, "RELEASE work");
    return true;
}

static void give_up(struct tx *tx)
{
    struct err ignored;

    if (!sqlite3_get_autocommit(tx->db)) {
        tx_run(tx, &ignored, "ROLLBACK");
    }
}

/* The witness is looked at where the files are: without it, a loss would not be seen. */
static void keep_witness(struct committer *committer)
{
    struct opened *opened = committer->opened;
    enum witness_kept kept = witness_keep(&opened->witness);
    bool was_gone = atomic_exchange(&committer->witness_gone, kept == WITNESS_GONE);

    if (kept == WITNESS_REMADE) {
        log_warning(
            "%s was removed or changed while it is served: it was made anew, at "
            "commit %" PRId64,
            opened->witness.path, opened->witness.last.number);
    } else if (kept == WITNESS_GONE && !was_gone) {
        log_error("%s was removed or changed while it is served, and cannot be made anew",
                  opened->witness.path);
    }
}

/* Runs the functions from FIRST on in one transaction and commits.  Returns the first
 * that had no turn because the transaction was lost, or NULL. */
static struct work *run_commit(struct committer *committer, struct work *first)
{
    struct opened *opened = committer->opened;
    struct tx *tx = opened->writer;
    sqlite3_int64 changes;
    bool changed;
    struct commits commits;
    struct err err;

    if (opened->refusal.code != ERR_OK) {
        fail_all(first, NULL, &opened->refusal);
        return NULL;
    }
    if (files_check(&opened->files, &err) != ERR_OK ||
        files_check_head(&opened->lock, opened->files.list[0].path, &err) != ERR_OK) {
        fail_all(first, NULL, &err);
        return NULL;
    }
    keep_witness(committer);
    if (tx_run(tx, &err, "BEGIN IMMEDIATE") != ERR_OK) {
        fail_all(first, NULL, &err);
        return NULL;
    }
    if (witness_follows(&opened->witness, tx, &err) != ERR_OK) {
        fail_all(first, NULL, &err);
        give_up(tx);
        return NULL;
    }
    unsettled_begin(tx);
    changes = sqlite3_total_changes64(tx->db);
    for (struct work *w = first; w; w = next_work(w)) {
        if (!run_write(tx, w)) {
            fail_all(first, w, &w->result);
            return next_work(w);
        }
    }
    changed = sqlite3_total_changes64(tx->db) != changes;
    if (cells_settle(tx, &err) != ERR_OK || jobs_tell_progress(tx, &err) != ERR_OK ||
        (changed && commits_count(tx, &commits, &err) != ERR_OK) ||
        tx_run(tx, &err, "COMMIT") != ERR_OK) {
        fail_all(first, NULL, &err);
        give_up(tx);
        return NULL;
    }
    if (changed) {
        atomic_fetch_add(&committer->generation, 1);
    }
    if (files_check_stored(&opened->files, &err) != ERR_OK) {
        fail_all(first, NULL, &err); /* it may have gone while this was committed */
    } else if (changed) {
        witness_write(&opened->witness, &commits);
    }
    return NULL;
}

void commit_all(struct committer *committer, struct work *list)
{
    for (struct work *rest = list; rest;) {
        struct work *first = rest;

        rest = run_commit(committer, first);
        atomic_store(&committer->failing, first->result.code == ERR_IO);
    }
}
