/* The store: one SQLite database, one writer thread, a small pool of readers.
 *
 * The loop thread never touches SQLite.  It hands functions to the store: store_write
 * runs them on the writer thread, many in one transaction (group commit: whatever is
 * queued when the previous commit ends, no timed window, synchronous=FULL), store_read on
 * a reader thread with its own read-only connection.  When a write is durable, or a read
 * is done, its `done` callback is called on the loop thread, from store_dispatch: poll
 * store_fd for readability and call store_dispatch.  Writes are called back in their
 * order, reads before them, and a call of it takes about a millisecond.
 *
 * Inside those functions the tables are spoken to through struct tx and the functions of
 * db/jobs.h, db/runs.h, db/cells.h, db/fleet.h and db/events.h, in domain terms. */
#ifndef DB_STORE_H
#define DB_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

struct store;
struct tx; /* a transaction on one connection; valid only inside the function it is given
              to */

/* Work inside a transaction.  A write function that fails is rolled back alone; the other
 * functions of the same commit are not affected.  Only where SQLite gives up the whole
 * transaction (disk full, I/O error) do those before it in the same commit get the error
 * too: nothing is reported as stored that is not.  Nor is what went to a file that is no
 * longer where it was opened (db/files.h): all of that commit get ERR_IO. */
typedef enum err_code (*store_fn)(struct tx *tx, void *arg, struct err *err);

/* The result, on the loop thread.  RESULT->code is ERR_OK when the write is durable or
 * the read complete; a read over its deadline gets ERR_TIMEOUT. */
typedef void (*store_done)(void *arg, const struct err *result);

struct store_options {
    int readers;              /* reader threads, >= 1 */
    int64_t read_deadline_ms; /* a read is interrupted after this; 0: never */
    bool read_only;           /* a backup, which nobody changes: every write is refused */
    int64_t busy_timeout_ms;  /* waiting for the lock of another process, such as fsck */
};

/* Opens or creates the database PATH, migrates it, and starts the threads.  Refuses, with
 * nothing changed: a newer schema (ERR_NEWER), a damaged or foreign file (ERR_CORRUPT),
 * a network file system (ERR_UNSUPPORTED), an unwritable place (ERR_IO), a database that
 * another reprod serves (ERR_BUSY; it holds locks on the database and, where others
 * cannot read that, on its folder).  A new database can be read by its owner alone. */
enum err_code store_open(const char *path, const struct store_options *options,
                         struct store **ret_store, struct err *err);

/* Why every write is refused with ERR_CORRUPT, for as long as the store is open: it was
 * opened read-only, or commits were lost (db/integrity/witness.h).  NULL: none is. */
const char *store_refusal(const struct store *store);

/* Commits the queued writes, interrupts reads, calls all callbacks that are due (waiting
 * reads, and writes that these callbacks add, get ERR_BUSY), stops the threads and
 * closes. NULL is fine. */
void store_close(struct store *store);

/* A connection for one thread at a time that reads for long, and of which the others take
 * no notice.  It was opened with them: one that is opened later would make files anew
 * that somebody removed.  Borrowed until store_close. */
struct tx *store_background(struct store *store);

/* Queues FN(tx, ARG).  ARG belongs to the caller until DONE(ARG, result) was called on
 * the loop thread.  DONE may be NULL only for ARG == NULL. */
void store_write(struct store *store, store_fn fn, void *arg, store_done done);

/* Asks whether the database takes writes: its files are still those that were opened, the
 * disk has room, and, if COMMITS, a commit gets through, which changes nothing that
 * anybody reads.  Queued behind the writes; DONE as above. */
void store_probe(struct store *store, bool commits, void *arg, store_done done);

/* The last transaction met an error of the disk or of the files.  Any thread. */
bool store_failing(const struct store *store);

/* The witness of the last commit (db/integrity/witness.h) was taken away and cannot be
 * made anew: a loss would not be seen.  Looked at with each write and probe.  Any thread.
 */
bool store_witness_gone(const struct store *store);

/* When a read last met an error of the disk, which SQLite calls damage where a page
 * cannot be read, or damage; monotonic; 0: never.  Any thread. */
int64_t store_read_failed_ms(const struct store *store);

/* Queues a read; returns ERR_BUSY (and calls nothing) when over 256 are waiting.  A heavy
 * one, which may take more than a few milliseconds, leaves a reader to the others, and
 * 64 may wait (db/queue/lanes.h). */
enum err_code store_read(struct store *store, store_fn fn, void *arg, store_done done,
                         struct err *err);
enum err_code store_read_heavy(struct store *store, store_fn fn, void *arg,
                               store_done done, struct err *err);

/* As above, waiting for the result; for start-up, commands and tests, not for the loop.
 */
enum err_code store_write_sync(struct store *store, store_fn fn, void *arg,
                               struct err *err);
enum err_code store_read_sync(struct store *store, store_fn fn, void *arg,
                              struct err *err);

int store_fd(const struct store *store);  /* readable when store_dispatch has work */
void store_dispatch(struct store *store); /* calls due callbacks; loop thread only */
void store_dispatch_reads(
    struct store *store);                     /* those of reads alone: these are short */
int store_pending(const struct store *store); /* queued or unfinished writes and reads */

/* Grows with every commit that changed anything; equal values mean equal contents, so it
 * serves as ETag and cache key.  Any thread. */
uint64_t store_generation(const struct store *store);

#endif
