#include "db/store.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "db/connection.h"
#include "db/files.h"
#include "db/integrity/restore.h"
#include "db/integrity/witness.h"
#include "db/migrate.h"
#include "db/queue/lanes.h"
#include "db/tx.h"

/* What the threads share.
 *
 * Happy path of a write: store_write appends it to `writes`; the writer thread takes all
 * that is there, runs each inside a savepoint of one transaction, commits, and appends
 * them to `completed`; the loop thread finds store_fd readable and calls the callbacks.
 * Failure modes: a function fails: its savepoint is rolled back, it alone gets the error.
 * A statement makes SQLite give up the whole transaction (disk full, I/O error), or the
 * commit fails: every function of that transaction gets the error. */

/* One queued read or write. */
struct work {
    struct queued queued; /* the first member: see work_of; waited_for: in store_*_sync,
                             whose stack frame owns it */
    store_fn fn;
    void *arg;
    store_done done;
    struct err result;
    bool finished; /* if waited_for; under the lock */
};

static struct work *work_of(struct queued *queued)
{
    return (struct work *)queued;
}

static struct work *next_work(const struct work *work)
{
    return work_of(work->queued.next);
}

struct store {
    pthread_mutex_t lock; /* of the queues, their counts, and `stopping` */
    pthread_cond_t write_queued, read_queued, sync_finished;
    struct queue writes, completed;
    struct lanes reads;
    bool stopping;

    struct tx *writer_tx; /* these two: only the writer thread uses them */
    struct files files;
    pthread_t writer;
    struct reader {
        struct store *store;
        struct tx *tx; /* only this reader uses it */
        pthread_t thread;
    } * readers;
    int readers_open; /* elements of `readers` */
    int reader_count; /* of these, running */
    bool writer_started;
    int64_t read_deadline_ms;

    int event_fd;
    struct files_lock lock_files;
    struct witness witness; /* only the writer thread uses it */
    struct err refusal;     /* of all writes; ERR_OK: none */
    struct tx *background;
    atomic_int pending;
    atomic_bool failing; /* the last transaction met an I/O error */
    atomic_bool witness_gone;
    atomic_int_least64_t read_failed_ms;
    atomic_uint_least64_t generation;
};

/* Waits for CONDITION, or for a while: whoever waits looks again at what it waits for.
 * The C library can lose a wake-up where several threads wait for the same (sourceware's
 * bug 25847); then nobody would read, or store_close would wait for ever. */
static void wait_on(struct store *store, pthread_cond_t *condition)
{
    enum { LOOK_AGAIN_MS = 1000 };
    int64_t until_ms = clock_monotonic_ms() + LOOK_AGAIN_MS;
    const struct timespec until = { .tv_sec = until_ms / 1000,
                                    .tv_nsec = until_ms % 1000 * 1000000 };

    pthread_cond_timedwait(condition, &store->lock, &until);
}

static void condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Hands the finished LIST over; callbacks are called in its order. */
static void complete(struct store *store, struct work *list)
{
    bool wake = false;
    struct work *next;

    pthread_mutex_lock(&store->lock);
    for (struct work *w = list; w; w = next) {
        next = next_work(w);
        if (w->queued.waited_for) {
            w->finished = true;
            pthread_cond_broadcast(&store->sync_finished);
        } else {
            wake = wake || !store->completed.first;
            queue_push(&store->completed, &w->queued);
        }
    }
    pthread_mutex_unlock(&store->lock);
    if (wake) {
        eventfd_write(store->event_fd, 1);
    }
}

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
    struct err ignored;

    if (tx_run(tx, &w->result, "SAVEPOINT work") != ERR_OK) {
        return !sqlite3_get_autocommit(tx->db);
    }
    w->result.code = ERR_OK;
    if (w->fn(tx, w->arg, &w->result) == ERR_OK) {
        w->result.code = ERR_OK;
    } else if (!sqlite3_get_autocommit(tx->db)) {
        tx_run(tx, &ignored, "ROLLBACK TO work");
    }
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
static void keep_witness(struct store *store)
{
    enum witness_kept kept = witness_keep(&store->witness);
    bool was_gone = atomic_exchange(&store->witness_gone, kept == WITNESS_GONE);

    if (kept == WITNESS_REMADE) {
        log_warning(
            "%s was removed or changed while it is served: it was made anew, at "
            "commit %" PRId64,
            store->witness.path, store->witness.last.number);
    } else if (kept == WITNESS_GONE && !was_gone) {
        log_error("%s was removed or changed while it is served, and cannot be made anew",
                  store->witness.path);
    }
}

/* Runs the functions from FIRST on in one transaction and commits.  Returns the first
 * that had no turn because the transaction was lost, or NULL. */
static struct work *run_commit(struct store *store, struct work *first)
{
    struct tx *tx = store->writer_tx;
    sqlite3_int64 changes;
    bool changed;
    struct commits commits;
    struct err err;

    if (store->refusal.code != ERR_OK) {
        fail_all(first, NULL, &store->refusal);
        return NULL;
    }
    if (files_check(&store->files, &err) != ERR_OK) {
        fail_all(first, NULL, &err);
        return NULL;
    }
    keep_witness(store);
    if (tx_run(tx, &err, "BEGIN IMMEDIATE") != ERR_OK) {
        fail_all(first, NULL, &err);
        return NULL;
    }
    if (witness_follows(&store->witness, tx, &err) != ERR_OK) {
        fail_all(first, NULL, &err);
        give_up(tx);
        return NULL;
    }
    changes = sqlite3_total_changes64(tx->db);
    for (struct work *w = first; w; w = next_work(w)) {
        if (!run_write(tx, w)) {
            fail_all(first, w, &w->result);
            return next_work(w);
        }
    }
    changed = sqlite3_total_changes64(tx->db) != changes;
    if ((changed && commits_count(tx, &commits, &err) != ERR_OK) ||
        tx_run(tx, &err, "COMMIT") != ERR_OK) {
        fail_all(first, NULL, &err);
        give_up(tx);
        return NULL;
    }
    if (changed) {
        atomic_fetch_add(&store->generation, 1);
    }
    if (files_check_stored(&store->files, &err) != ERR_OK) {
        fail_all(first, NULL, &err); /* it may have gone while this was committed */
    } else if (changed) {
        witness_write(&store->witness, &commits);
    }
    return NULL;
}

static void *writer_main(void *arg)
{
    struct store *store = arg;

    for (;;) {
        struct work *list;

        pthread_mutex_lock(&store->lock);
        while (!store->writes.first && !store->stopping) {
            wait_on(store, &store->write_queued);
        }
        list = work_of(store->writes.first);
        store->writes = (struct queue){ NULL, NULL };
        pthread_mutex_unlock(&store->lock);
        if (!list) {
            return NULL;
        }
        for (struct work *rest = list; rest;) {
            struct work *first = rest;

            rest = run_commit(store, first);
            atomic_store(&store->failing, first->result.code == ERR_IO);
        }
        complete(store, list);
    }
}

static void run_read(struct tx *tx, int64_t deadline_ms, struct work *w)
{
    struct err ignored;

    tx->deadline_ns = deadline_ms ? clock_monotonic_ns() + deadline_ms * 1000000 : 0;
    if (tx_run(tx, &w->result, "BEGIN") == ERR_OK) {
        w->result.code = ERR_OK;
        if (w->fn(tx, w->arg, &w->result) == ERR_OK) {
            w->result.code = ERR_OK;
        }
    }
    tx->deadline_ns = 0;
    if (!sqlite3_get_autocommit(tx->db)) {
        tx_run(tx, &ignored, "ROLLBACK");
    }
}

/* The next read, after one that was HEAVY or not; NULL: the store is being closed. */
static struct work *next_read(struct store *store, bool heavy, bool *ret_stopping)
{
    struct work *work;

    pthread_mutex_lock(&store->lock);
    if (heavy) {
        lanes_done(&store->reads);
        pthread_cond_signal(&store->read_queued);
    }
    while (!(work = work_of(lanes_take(&store->reads, store->stopping))) &&
           !store->stopping) {
        wait_on(store, &store->read_queued);
    }
    *ret_stopping = store->stopping;
    pthread_mutex_unlock(&store->lock);
    return work;
}

static void *reader_main(void *arg)
{
    struct reader *reader = arg;
    struct store *store = reader->store;
    struct work *work;
    bool heavy = false;
    bool stopping;

    while ((work = next_read(store, heavy, &stopping)) != NULL) {
        heavy = work->queued.heavy;
        if (stopping) {
            err_set(&work->result, ERR_BUSY, "the database is being closed");
        } else {
            run_read(reader->tx, store->read_deadline_ms, work);
        }
        if (work->result.code == ERR_IO) {
            atomic_store(&store->read_failed_ms, clock_monotonic_ms());
        }
        complete(store, work);
    }
    return NULL;
}

static enum err_code start_all(struct store *store, struct err *err)
{
    int rc = pthread_create(&store->writer, NULL, writer_main, store);

    store->writer_started = rc == 0;
    while (rc == 0 && store->reader_count < store->readers_open) {
        struct reader *reader = &store->readers[store->reader_count];

        rc = pthread_create(&reader->thread, NULL, reader_main, reader);
        store->reader_count += rc == 0;
    }
    return rc == 0 ? ERR_OK : err_set_errno(err, rc, "cannot start a thread");
}

static enum err_code threads_start(struct store *store, struct err *err)
{
    sigset_t all;
    sigset_t before;
    enum err_code code;

    /* Signals are for the loop thread; the new threads inherit this mask. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    code = start_all(store, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

/* Commits the queued writes, answers waiting reads with ERR_BUSY and interrupts running
 * ones. */
static void threads_stop(struct store *store)
{
    pthread_mutex_lock(&store->lock);
    store->stopping = true;
    pthread_cond_broadcast(&store->write_queued);
    pthread_cond_broadcast(&store->read_queued);
    pthread_mutex_unlock(&store->lock);
    for (int i = 0; i < store->reader_count; i++) {
        sqlite3_interrupt(store->readers[i].tx->db);
        pthread_join(store->readers[i].thread, NULL);
    }
    if (store->writer_started) {
        pthread_join(store->writer, NULL);
    }
    store->reader_count = 0;
    store->writer_started = false;
}

/* A random start makes values of two lives of the daemon differ: they serve as ETags. */
static uint64_t first_generation(void)
{
    uint32_t random = 0;

    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        random = (uint32_t)getpid();
    }
    return (uint64_t)(random >> 1) << 32;
}

/* It reads at once: SQLite opens the log at the first read, and makes it anew if it was
 * removed by then. */
static enum err_code open_reader(const char *path, const struct store_options *options,
                                 struct tx **ret_tx, struct err *err)
{
    int64_t ignored;

    return connection_open_beside(path, options->busy_timeout_ms, ret_tx, err) == ERR_OK
               ? tx_fetch_int(*ret_tx, &ignored, err, "PRAGMA schema_version")
               : err->code;
}

static void refuse(struct store *store, const char *why)
{
    err_set(&store->refusal, ERR_CORRUPT, "%s", why);
}

/* Kept before anybody has the database open: from then on, the witness is not needed. */
static void keep_loss(const char *path, int64_t busy_timeout_ms,
                      const struct commits *found, const struct commits *witnessed)
{
    struct err err;

    if (connection_keep_loss(path, busy_timeout_ms, found, witnessed, clock_wall_ms(),
                             &err) != ERR_OK) {
        log_warning(
            "the loss is known from %s-seq alone, and could not be noted in the "
            "database: %s",
            path, err.message);
    }
}

/* A database that is gone is nothing to begin anew: its witness tells that there was
 * one. */
static enum err_code check_not_gone(const char *path, struct err *err)
{
    const struct commits none = { 0 };
    struct commits witnessed;
    struct stat st;

    if ((stat(path, &st) == 0 && st.st_size > 0) ||
        witness_ask(path, &none, &witnessed) != WITNESS_OF_ANOTHER ||
        witnessed.number == 0) {
        return ERR_OK;
    }
    return err_set(err, ERR_CORRUPT,
                   "%s is gone or empty, and %s-seq says that it had %" PRId64
                   " commits: put it back, restore a backup (reprod restore), or remove "
                   "%s-seq to begin anew",
                   path, path, witnessed.number, path);
}

/* A database whose count was taken away looks like one that never had any. */
static void refuse_uncounted(struct store *store, const char *path,
                             const struct commits *witnessed)
{
    char why[320], said[64] = "";

    if (witnessed->number > 0) {
        snprintf(said, sizeof said, ", and %" PRId64 " were durable", witnessed->number);
    }
    snprintf(
        why, sizeof why,
        "the count of commits was taken out of the database (table commits is "
        "empty%s): whether any are missing is not known; nothing runs and nothing is "
        "accepted until a backup is restored (reprod restore), or this is "
        "acknowledged (reprod fsck --accept-loss)",
        said);
    log_error("%s: %s", path, why);
    refuse(store, why);
}

/* A database that lost commits counts none: one would make it look as if it had not lost
 * any. */
static enum err_code open_writer(struct store *store, const char *path,
                                 int64_t busy_timeout_ms, struct err *err)
{
    struct commits found, witnessed;
    char why[256];
    enum witness_word word =
        connection_ask_witness(path, busy_timeout_ms, &found, &witnessed);

    if (word == WITNESS_UNCOUNTED) {
        refuse_uncounted(store, path, &witnessed);
        return connection_open_beside(path, busy_timeout_ms, &store->writer_tx, err);
    }
    if (word != WITNESS_AHEAD) {
        if (word != WITNESS_AGREES && found.number > 0) {
            log_warning("%s-seq %s: whether commits were lost before now is not known",
                        path,
                        word == WITNESS_MISSING      ? "is missing"
                        : word == WITNESS_UNREADABLE ? "cannot be read"
                                                     : "is of another database");
        }
        return connection_open_writer(path, busy_timeout_ms, &store->writer_tx, err);
    }
    snprintf(
        why, sizeof why,
        "commits that were acknowledged are missing: the last of the database is %" PRId64
        ", and %" PRId64
        " was durable; nothing runs and nothing is accepted until a "
        "backup is restored (reprod restore), or the loss is acknowledged (reprod "
        "fsck --accept-loss)",
        found.number, witnessed.number);
    refuse(store, why);
    keep_loss(path, busy_timeout_ms, &found, &witnessed);
    return connection_open_beside(path, busy_timeout_ms, &store->writer_tx, err);
}

/* Readers of a file that nobody changes; its writer is one, too. */
static enum err_code open_frozen(struct store *store, const char *path,
                                 const struct store_options *options, struct err *err)
{
    enum err_code code = connection_open_frozen(path, &store->writer_tx, err);
    int64_t version = 0;

    for (int i = 0; i < options->readers && code == ERR_OK; i++) {
        store->readers[i].store = store;
        code = connection_open_frozen(path, &store->readers[i].tx, err);
    }
    if (code == ERR_OK) {
        code = connection_open_frozen(path, &store->background, err);
    }
    if (code == ERR_OK) {
        code = tx_fetch_int(store->writer_tx, &version, err, "PRAGMA user_version");
    }
    if (code == ERR_OK && version != migrate_current()) {
        code = err_set(err, ERR_CONFLICT,
                       "%s has schema %d, this program needs %d: restore it", path,
                       (int)version, migrate_current());
    }
    refuse(store, "this service only reads");
    return code;
}

static enum err_code open_connections(struct store *store, const char *path,
                                      const struct store_options *options,
                                      struct err *err)
{
    enum err_code code = check_not_gone(path, err);

    if (code == ERR_OK) {
        code = open_writer(store, path, options->busy_timeout_ms, err);
    }
    for (int i = 0; i < options->readers && code == ERR_OK; i++) {
        store->readers[i].store = store;
        code = open_reader(path, options, &store->readers[i].tx, err);
    }
    return code == ERR_OK ? open_reader(path, options, &store->background, err) : code;
}

/* Which files they are is known once they were opened. */
static enum err_code open_files(struct store *store, const char *path,
                                const struct store_options *options, struct err *err)
{
    struct commits commits;

    if ((options->read_only ? open_frozen : open_connections)(store, path, options,
                                                              err) != ERR_OK) {
        return err->code;
    }
    files_init(&store->files, path);
    if (store->refusal.code == ERR_OK &&
        commits_read(store->writer_tx, &commits, err) == ERR_OK) {
        witness_open(&store->witness, path, &commits);
    }
    return ERR_OK;
}

static void release(struct store *store)
{
    threads_stop(store);
    for (int i = 0; i < store->readers_open; i++) {
        tx_free(store->readers[i].tx);
    }
    tx_free(store->background);
    tx_free(store->writer_tx); /* the last one: writes the log back and removes it */
    files_release(&store->files);
    witness_close(&store->witness);
    free(store->readers);
    if (store->event_fd >= 0) {
        close(store->event_fd);
    }
    files_unlock(&store->lock_files); /* SQLite's own locks are gone by now */
    pthread_cond_destroy(&store->write_queued);
    pthread_cond_destroy(&store->read_queued);
    pthread_cond_destroy(&store->sync_finished);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

/* What a restore left is finished first, and the database may be another file then. */
static enum err_code lock_files(struct store *store, const char *path, struct err *err)
{
    bool replaced;

    if (files_lock(path, &store->lock_files, err) != ERR_OK ||
        restore_resume(path, &replaced, err) != ERR_OK) {
        return err->code;
    }
    if (!replaced) {
        return ERR_OK;
    }
    files_unlock(&store->lock_files);
    return files_lock(path, &store->lock_files, err);
}

enum err_code store_open(const char *path, const struct store_options *options,
                         struct store **ret_store, struct err *err)
{
    struct store *store = xcalloc(1, sizeof *store);

    pthread_mutex_init(&store->lock, NULL);
    condition_init(&store->write_queued);
    condition_init(&store->read_queued);
    condition_init(&store->sync_finished);
    atomic_init(&store->pending, 0);
    atomic_init(&store->failing, false);
    atomic_init(&store->witness_gone, false);
    atomic_init(&store->read_failed_ms, 0);
    atomic_init(&store->generation, first_generation());
    store->readers = xcalloc((size_t)options->readers, sizeof *store->readers);
    store->readers_open = store->reads.readers = options->readers;
    store->read_deadline_ms = options->read_deadline_ms;
    store->lock_files = FILES_UNLOCKED;
    store->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (store->event_fd < 0) {
        err_set_errno(err, errno, "eventfd");
    } else if ((options->read_only || (filesystem_check(path, err) == ERR_OK &&
                                       lock_files(store, path, err) == ERR_OK)) &&
               open_files(store, path, options, err) == ERR_OK &&
               threads_start(store, err) == ERR_OK) {
        *ret_store = store;
        return ERR_OK;
    }
    release(store);
    return err->code;
}

void store_close(struct store *store)
{
    if (!store) {
        return;
    }
    threads_stop(store);
    store_dispatch(store);
    release(store);
}

static struct work *work_new(store_fn fn, void *arg, store_done done)
{
    struct work *work = xcalloc(1, sizeof *work);

    work->fn = fn;
    work->arg = arg;
    work->done = done;
    return work;
}

/* Once the threads are gone a write can only be refused, through its callback. */
static void queue_write(struct store *store, struct work *work)
{
    pthread_mutex_lock(&store->lock);
    if (store->stopping) {
        err_set(&work->result, ERR_BUSY, "the database is being closed");
        work->finished = true;
        if (!work->queued.waited_for) {
            queue_push(&store->completed, &work->queued);
        }
    } else {
        queue_push(&store->writes, &work->queued);
        pthread_cond_signal(&store->write_queued);
    }
    pthread_mutex_unlock(&store->lock);
}

static enum err_code probe(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return files_check_room(sqlite3_db_filename(tx->db, "main"), err);
}

/* Writes the first page as it is: no row changes, so caches stay valid. */
static enum err_code probe_commit(struct tx *tx, void *arg, struct err *err)
{
    int64_t version;
    char *sql;
    enum err_code code;

    if (probe(tx, arg, err) != ERR_OK ||
        tx_fetch_int(tx, &version, err, "PRAGMA user_version") != ERR_OK) {
        return err->code;
    }
    sql = xasprintf("PRAGMA user_version = %d", (int)version);
    code = sqlite3_exec(tx->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? ERR_OK
               : tx_error(tx->db, sqlite3_errcode(tx->db), err);
    free(sql);
    return code;
}

void store_probe(struct store *store, bool commits, void *arg, store_done done)
{
    store_write(store, commits ? probe_commit : probe, arg, done);
}

static enum err_code queue_read(struct store *store, struct work *work, struct err *err)
{
    enum err_code code;

    pthread_mutex_lock(&store->lock);
    if (store->stopping) {
        code = err_set(err, ERR_BUSY, "the database is being closed");
    } else {
        code = lanes_add(&store->reads, &work->queued, err);
        pthread_cond_signal(&store->read_queued);
    }
    pthread_mutex_unlock(&store->lock);
    return code;
}

void store_write(struct store *store, store_fn fn, void *arg, store_done done)
{
    atomic_fetch_add(&store->pending, 1);
    queue_write(store, work_new(fn, arg, done));
}

static enum err_code add_read(struct store *store, struct work *work, struct err *err)
{
    atomic_fetch_add(&store->pending, 1);
    if (queue_read(store, work, err) != ERR_OK) {
        atomic_fetch_sub(&store->pending, 1);
        free(work);
        return err->code;
    }
    return ERR_OK;
}

enum err_code store_read(struct store *store, store_fn fn, void *arg, store_done done,
                         struct err *err)
{
    return add_read(store, work_new(fn, arg, done), err);
}

enum err_code store_read_heavy(struct store *store, store_fn fn, void *arg,
                               store_done done, struct err *err)
{
    struct work *work = work_new(fn, arg, done);

    work->queued.heavy = true;
    return add_read(store, work, err);
}

static enum err_code wait_for(struct store *store, struct work *work, struct err *err)
{
    pthread_mutex_lock(&store->lock);
    while (!work->finished) {
        wait_on(store, &store->sync_finished);
    }
    pthread_mutex_unlock(&store->lock);
    if (work->result.code != ERR_OK) {
        *err = work->result;
    }
    return work->result.code;
}

enum err_code store_write_sync(struct store *store, store_fn fn, void *arg,
                               struct err *err)
{
    struct work work = { .fn = fn, .arg = arg, .queued.waited_for = true };

    queue_write(store, &work);
    return wait_for(store, &work, err);
}

enum err_code store_read_sync(struct store *store, store_fn fn, void *arg,
                              struct err *err)
{
    struct work work = { .fn = fn, .arg = arg, .queued.waited_for = true };
    enum err_code code = queue_read(store, &work, err);

    return code == ERR_OK ? wait_for(store, &work, err) : code;
}

int store_fd(const struct store *store)
{
    return store->event_fd;
}

/* Takes what is there now: what callbacks add is for the next turn of the loop, except
 * while closing, when there is no next turn. */
void store_dispatch(struct store *store)
{
    struct work *list;
    eventfd_t ignored;
    bool again;

    do {
        struct work *next;

        eventfd_read(store->event_fd, &ignored);
        pthread_mutex_lock(&store->lock);
        list = work_of(store->completed.first);
        store->completed = (struct queue){ NULL, NULL };
        again = store->stopping && list;
        pthread_mutex_unlock(&store->lock);
        for (struct work *w = list; w; w = next) {
            next = next_work(w);
            atomic_fetch_sub(&store->pending, 1);
            if (w->done) {
                w->done(w->arg, &w->result);
            }
            free(w);
        }
    } while (again);
}

int store_pending(const struct store *store)
{
    return atomic_load(&store->pending);
}

const char *store_refusal(const struct store *store)
{
    return store->refusal.code == ERR_OK ? NULL : store->refusal.message;
}

bool store_failing(const struct store *store)
{
    return atomic_load(&store->failing);
}

bool store_witness_gone(const struct store *store)
{
    return atomic_load(&store->witness_gone);
}

int64_t store_read_failed_ms(const struct store *store)
{
    return atomic_load(&store->read_failed_ms);
}

uint64_t store_generation(const struct store *store)
{
    return atomic_load(&store->generation);
}

struct tx *store_background(struct store *store)
{
    return store->background;
}
