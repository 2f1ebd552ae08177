#include "db/store_threads.h"

#include <signal.h>
#include <sys/eventfd.h>

#include "daemon/base/clock.h"
#include "db/tx.h"

void work_queue_push(struct work_queue *queue, struct work *work)
{
    work->next = NULL;
    if (queue->last) {
        queue->last->next = work;
    } else {
        queue->first = work;
    }
    queue->last = work;
}

/* Hands the finished LIST over; callbacks are called in its order. */
static void complete(struct store *store, struct work *list)
{
    bool wake = false;
    struct work *next;

    pthread_mutex_lock(&store->lock);
    for (struct work *w = list; w; w = next) {
        next = w->next;
        if (w->sync) {
            w->finished = true;
            pthread_cond_broadcast(&store->sync_finished);
        } else {
            wake = wake || !store->completed.first;
            work_queue_push(&store->completed, w);
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
    for (struct work *w = first; w != end; w = w->next) {
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

    if (tx_execute(tx, "SAVEPOINT work", &w->result) != ERR_OK) {
        return !sqlite3_get_autocommit(tx->db);
    }
    w->result.code = ERR_OK;
    if (w->fn(tx, w->arg, &w->result) == ERR_OK) {
        w->result.code = ERR_OK;
    } else if (!sqlite3_get_autocommit(tx->db)) {
        tx_execute(tx, "ROLLBACK TO work", &ignored);
    }
    if (sqlite3_get_autocommit(tx->db)) {
        if (w->result.code == ERR_OK) {
            err_set(&w->result, ERR_IO, "database: the transaction was abandoned");
        }
        return false;
    }
    tx_execute(tx, "RELEASE work", &ignored);
    return true;
}

/* Runs the functions from FIRST on in one transaction and commits.  Returns the first
 * that had no turn because the transaction was lost, or NULL. */
static struct work *run_commit(struct store *store, struct work *first)
{
    struct tx *tx = store->writer_tx;
    sqlite3_int64 changes = sqlite3_total_changes64(tx->db);
    struct err err;

    if (tx_execute(tx, "BEGIN IMMEDIATE", &err) != ERR_OK) {
        fail_all(first, NULL, &err);
        return NULL;
    }
    for (struct work *w = first; w; w = w->next) {
        if (!run_write(tx, w)) {
            fail_all(first, w, &w->result);
            return w->next;
        }
    }
    if (tx_execute(tx, "COMMIT", &err) != ERR_OK) {
        struct err ignored;

        fail_all(first, NULL, &err);
        if (!sqlite3_get_autocommit(tx->db)) {
            tx_execute(tx, "ROLLBACK", &ignored);
        }
        return NULL;
    }
    if (sqlite3_total_changes64(tx->db) != changes) {
        atomic_fetch_add(&store->generation, 1);
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
            pthread_cond_wait(&store->write_queued, &store->lock);
        }
        list = store->writes.first;
        store->writes = (struct work_queue){ NULL, NULL };
        pthread_mutex_unlock(&store->lock);
        if (!list) {
            return NULL;
        }
        for (struct work *rest = list; rest;) {
            rest = run_commit(store, rest);
        }
        complete(store, list);
    }
}

static void run_read(struct tx *tx, int64_t deadline_ms, struct work *w)
{
    struct err ignored;

    tx->deadline_ns = deadline_ms ? clock_monotonic_ns() + deadline_ms * 1000000 : 0;
    if (tx_execute(tx, "BEGIN", &w->result) == ERR_OK) {
        w->result.code = ERR_OK;
        if (w->fn(tx, w->arg, &w->result) == ERR_OK) {
            w->result.code = ERR_OK;
        }
    }
    tx->deadline_ns = 0;
    if (!sqlite3_get_autocommit(tx->db)) {
        tx_execute(tx, "ROLLBACK", &ignored);
    }
}

static void *reader_main(void *arg)
{
    struct reader *reader = arg;
    struct store *store = reader->store;

    for (;;) {
        struct work *w;
        bool stopping;

        pthread_mutex_lock(&store->lock);
        while (!store->reads.first && !store->stopping) {
            pthread_cond_wait(&store->read_queued, &store->lock);
        }
        stopping = store->stopping;
        w = store->reads.first;
        if (w) {
            store->reads.first = w->next;
            store->reads.last = w->next ? store->reads.last : NULL;
            store->reads_waiting--;
            w->next = NULL;
        }
        pthread_mutex_unlock(&store->lock);
        if (!w) {
            return NULL;
        }
        if (stopping) {
            err_set(&w->result, ERR_BUSY, "the database is being closed");
        } else {
            run_read(reader->tx, store->read_deadline_ms, w);
        }
        complete(store, w);
    }
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

enum err_code store_threads_start(struct store *store, struct err *err)
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

void store_threads_stop(struct store *store)
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
