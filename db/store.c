#include "db/store.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "db/files.h"
#include "db/integrity/opening.h"
#include "db/queue/commit.h"
#include "db/queue/lanes.h"
#include "db/tx.h"

enum {
    DISPATCH_NS = 1000000, /* that callbacks of writes take of a turn of the loop */
    MANY_WRITES = 64,      /* in a commit: the next one waits for more */
    GATHER_NS = 20000000
};

/* What the threads share.
 *
 * Happy path of a write: store_write appends it to `writes`; the writer thread takes all
 * that is there and commits it (db/queue/commit.h), and appends it to `completed`; the
 * loop thread finds store_fd readable and calls the callbacks. */
struct store {
    pthread_mutex_t lock; /* of the queues, their counts, and `stopping` */
    pthread_cond_t write_queued, read_queued, sync_finished;
    struct queue writes, completed, read; /* the last two are to be called back */
    struct lanes reads;
    bool stopping;

    struct opened opened;
    struct committer committer;
    pthread_t writer;
    struct reader {
        struct store *store;
        struct tx *tx; /* only this reader uses it */
        pthread_t thread;
    } * readers;
    int reader_count; /* of these, running */
    bool writer_started;
    int64_t read_deadline_ms;

    int event_fd;
    atomic_int pending;
    atomic_int_least64_t read_failed_ms;
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
static void complete(struct store *store, struct work *list, struct queue *queue)
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
            wake = wake || !queue->first;
            queue_push(queue, &w->queued);
        }
    }
    pthread_mutex_unlock(&store->lock);
    if (wake) {
        eventfd_write(store->event_fd, 1);
    }
}

static bool is_many(const struct work *list)
{
    int count = 0;

    for (; list && count < MANY_WRITES; list = next_work(list)) {
        count++;
    }
    return count == MANY_WRITES;
}

/* Where many write at a time, more of them share what a commit costs besides: the disk,
 * and the pages that all of them change. */
static void *writer_main(void *arg)
{
    const struct timespec gather = { .tv_nsec = GATHER_NS };
    struct store *store = arg;

    for (;;) {
        struct work *list;
        bool many;

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
        commit_all(&store->committer, list);
        many = is_many(list);
        complete(store, list, &store->completed);
        if (many) {
            nanosleep(&gather, NULL);
        }
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
        if (work->result.code == ERR_IO || work->result.code == ERR_CORRUPT) {
            atomic_store(&store->read_failed_ms, clock_monotonic_ms());
        }
        complete(store, work, &store->read);
    }
    return NULL;
}

static enum err_code start_all(struct store *store, struct err *err)
{
    int rc = pthread_create(&store->writer, NULL, writer_main, store);

    store->writer_started = rc == 0;
    while (rc == 0 && store->reader_count < store->opened.reader_count) {
        struct reader *reader = &store->readers[store->reader_count];

        reader->store = store;
        reader->tx = store->opened.readers[store->reader_count];
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

static void release(struct store *store)
{
    threads_stop(store);
    opening_close(&store->opened);
    free(store->readers);
    if (store->event_fd >= 0) {
        close(store->event_fd);
    }
    pthread_cond_destroy(&store->write_queued);
    pthread_cond_destroy(&store->read_queued);
    pthread_cond_destroy(&store->sync_finished);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

static struct store *store_new(const struct store_options *options)
{
    struct store *store = xcalloc(1, sizeof *store);

    pthread_mutex_init(&store->lock, NULL);
    condition_init(&store->write_queued);
    condition_init(&store->read_queued);
    condition_init(&store->sync_finished);
    atomic_init(&store->pending, 0);
    atomic_init(&store->read_failed_ms, 0);
    store->committer.opened = &store->opened;
    atomic_init(&store->committer.failing, false);
    atomic_init(&store->committer.witness_gone, false);
    atomic_init(&store->committer.generation, first_generation());
    store->readers = xcalloc((size_t)options->readers, sizeof *store->readers);
    store->reads.readers = options->readers;
    store->read_deadline_ms = options->read_deadline_ms;
    store->opened.lock = FILES_UNLOCKED;
    store->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return store;
}

enum err_code store_open(const char *path, const struct store_options *options,
                         struct store **ret_store, struct err *err)
{
    const struct opening opening = { .readers = options->readers,
                                     .read_only = options->read_only,
                                     .busy_timeout_ms = options->busy_timeout_ms };
    struct store *store = store_new(options);

    if (store->event_fd < 0) {
        err_set_errno(err, errno, "eventfd");
    } else if (opening_open(path, &opening, &store->opened, err) == ERR_OK &&
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

static struct queue take(struct store *store, struct queue *queue)
{
    struct queue taken;

    pthread_mutex_lock(&store->lock);
    taken = *queue;
    *queue = (struct queue){ NULL, NULL };
    pthread_mutex_unlock(&store->lock);
    return taken;
}

/* LEFT comes before what was completed since. */
static void put_back(struct store *store, struct queue left)
{
    pthread_mutex_lock(&store->lock);
    left.last->next = store->completed.first;
    store->completed.first = left.first;
    store->completed.last = store->completed.last ? store->completed.last : left.last;
    pthread_mutex_unlock(&store->lock);
    eventfd_write(store->event_fd, 1);
}

/* Until UNTIL_NS; at least one.  Returns those that are left. */
static struct work *call_back(struct store *store, struct work *list, int64_t until_ns)
{
    struct work *next;

    for (struct work *w = list; w; w = next) {
        next = next_work(w);
        atomic_fetch_sub(&store->pending, 1);
        if (w->done) {
            w->done(w->arg, &w->result);
        }
        free(w);
        if (next && clock_monotonic_ns() > until_ns) {
            return next;
        }
    }
    return NULL;
}

void store_dispatch_reads(struct store *store)
{
    call_back(store, work_of(take(store, &store->read).first), INT64_MAX);
}

/* Takes what is there now: what callbacks add is for the next turn of the loop, except
 * while closing, when there is no next turn.  Somebody waits for a read; a commit can end
 * thousands of writes, and then the loop has other turns in between. */
void store_dispatch(struct store *store)
{
    eventfd_t ignored;
    struct queue reads, writes;

    do {
        int64_t until_ns =
            store->stopping ? INT64_MAX : clock_monotonic_ns() + DISPATCH_NS;
        struct work *left;

        eventfd_read(store->event_fd, &ignored);
        reads = take(store, &store->read);
        writes = take(store, &store->completed);
        call_back(store, work_of(reads.first), INT64_MAX);
        left = call_back(store, work_of(writes.first), until_ns);
        if (left) {
            put_back(store, (struct queue){ &left->queued, writes.last });
        }
    } while (store->stopping && (reads.first || writes.first));
}

int store_pending(const struct store *store)
{
    return atomic_load(&store->pending);
}

const char *store_refusal(const struct store *store)
{
    return store->opened.refusal.code == ERR_OK ? NULL : store->opened.refusal.message;
}

bool store_failing(const struct store *store)
{
    return atomic_load(&store->committer.failing);
}

bool store_witness_gone(const struct store *store)
{
    return atomic_load(&store->committer.witness_gone);
}

int64_t store_read_failed_ms(const struct store *store)
{
    return atomic_load(&store->read_failed_ms);
}

uint64_t store_generation(const struct store *store)
{
    return atomic_load(&store->committer.generation);
}

struct tx *store_background(struct store *store)
{
    return store->opened.background;
}
