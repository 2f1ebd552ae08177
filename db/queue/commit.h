/* Group commit: functions that write, many in one transaction.
 *
 * Each runs in a savepoint: one that fails is rolled back alone and gets its error. Where
 * a statement makes SQLite give up the whole transaction (disk full, I/O error), the
 * commit fails, or the files are no longer those that were opened, every function of that
 * transaction gets the error: nothing is reported as stored that is not. */
#ifndef DB_QUEUE_COMMIT_H
#define DB_QUEUE_COMMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "db/queue/lanes.h"

struct opened;
struct tx;

/* One queued read or write; its functions are as db/store.h says. */
struct work {
    struct queued queued; /* the first member: see work_of; waited_for: in store_*_sync,
                             whose stack frame owns it */
    enum err_code (*fn)(struct tx *tx, void *arg, struct err *err);
    void *arg;
    void (*done)(void *arg, const struct err *result);
    struct err result;
    bool finished; /* if waited_for; under the store's lock */
};

static inline struct work *work_of(struct queued *queued)
{
    return (struct work *)queued;
}

static inline struct work *next_work(const struct work *work)
{
    return work_of(work->queued.next);
}

/* Only the writer thread commits; any thread may look at the atomic members. */
struct committer {
    struct opened *opened;
    atomic_bool failing; /* the last transaction met an I/O error */
    atomic_bool witness_gone;
    atomic_uint_least64_t generation; /* grows with every commit that changed anything */
};

/* Runs all of LIST, in as few transactions as that takes, and commits: each has its
 * result then. */
void commit_all(struct committer *committer, struct work *list);

#endif
